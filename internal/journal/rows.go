package journal

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/runteam/runteam/label"
)

// errRunExists reports that there is a run with this id.
var errRunExists = errors.New("exists")

// A runRow is a run.
type runRow struct {
	n       int64  // in its file, from 1
	id      string // unique
	name    string
	command string
	started time.Time
	session string // of which the run is a turn; empty if it is none
	place   int    // which turn, from 1

	label *label.Classification // nil if it is not stored with the run
}

// A row is what is known of a run without reading its lines.
type row struct {
	runRow
	held  *lease // nil if no process has it
	turn  turn   // the last
	turns int    // how many there are
}

// A turn records that a process began or resumed a run, or that the run ended.
type turn struct {
	at     time.Time
	status string // empty: a process began or resumed it
	tasks  string // how many have which status, as JSON

	label *label.Classification // of the run, as this process began or resumed it; nil if it is not known
}

// isIdle reports whether the process that ended the run did nothing; see [Run.isIdle].
func (t *turn) isIdle() bool { return strings.Contains(t.tasks, `"`+string(countIdle)+`"`) }

// A batch is what one commit adds to one run.
type batch struct {
	run     int64
	lease   lease // must be unchanged
	at      time.Time
	lines   bundle
	empty   bool   // there are no lines
	state   []byte // of the chain after them
	answers [][32]byte
	taken   []int64 // commands that the lines carry out
	turns   []turn
	marks   []byte // which tasks the lines are about
	release bool   // end the lease

	lost bool // set by the database: another process has the lease, and nothing was added
}

// A batchRow is a batch as it is read.
type batchRow struct {
	n     int64 // higher than those of all batches before it
	run   int64
	id    string // of the run; only of an answer
	lines bundle
	text  []byte // the unpacked lines: all of them, or those of the history
}

// pageSize is how many rows are read and unpacked at a time.
const pageSize = 16

// pageBytes is how many bytes of lines are unpacked at a time. It is more than 16 usual rows have.
const pageBytes = 64 << 20

// rows yields the rows of a run behind one in order, unpacked: with all lines if whole, else with those
// of the history. An error ends them.
func (s *store) rows(ctx context.Context, run, after int64, whole bool) iter.Seq2[*batchRow, error] {
	return func(yield func(*batchRow, error) bool) {
		for {
			page, more, err := s.page(ctx, run, after, whole)
			if err != nil {
				yield(nil, err)
				return
			}
			for i, err := range unpacked(page, whole) {
				if !yield(&page[i], err) || err != nil {
					return
				}
				after = page[i].n
			}
			if !more {
				return
			}
		}
	}
}

// unpacked unpacks the rows of a page in parallel, and returns the error of each.
func unpacked(page []batchRow, whole bool) []error {
	errs := make([]error, len(page))
	var all sync.WaitGroup
	for i := range page {
		all.Go(func() { errs[i] = page[i].unpack(whole) })
	}
	all.Wait()
	return errs
}

// unpack sets the text of a row.
func (l *batchRow) unpack(whole bool) (err error) {
	if whole {
		l.text, err = l.lines.unpack()
	} else {
		l.text, err = decompress(l.lines.kept)
	}
	return err
}

// Lines yields the stored lines of a run, which is named as for [Journal.Find], in the form
// of a trace with more kinds of lines.
func (a *archive) Lines(ctx context.Context, run string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		r, err := a.find(ctx, run)
		if err != nil {
			yield(nil, err)
			return
		}
		for l, err := range a.store.rows(ctx, r.n, 0, true) {
			if err != nil {
				yield(nil, a.fail("read", err))
				return
			}
			for line := range bytes.Lines(l.text) {
				if !yield(line, nil) {
					return
				}
			}
		}
	}
}
