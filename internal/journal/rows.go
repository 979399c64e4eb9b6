package journal

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runteam/runteam/label"
)

// errRunExists reports that there is a run with this id.
var errRunExists = errors.New("exists")

// A runRow is a run.
type runRow struct {
	n       int64  // in its journal, from 1
	id      string // unique
	name    string
	command string
	starter string // see [Info]
	spec    string
	started time.Time
	session string // of which the run is a turn; empty if it is none
	place   int    // which turn, from 1

	label *label.Classification // nil if it is not stored with the run
}

// A row is what is known of a run without reading its lines.
type row struct {
	runRow
	held  *lease      // nil if no process has it
	queue *QueuePlace // nil if it was not submitted, or needs no worker
	turn  turn        // the last
	turns int         // how many there are
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
	empty   bool    // there are no lines
	state   []byte  // of the chain after them
	answers []byte  // their keys, one after the other
	taken   []int64 // commands that the lines carry out
	turns   []turn
	marks   []byte // which tasks the lines are about
	release bool   // end the lease
	queue   string // the state of the run in the queue after that
	spent   int64  // what the lines cost, if it counts for who submitted the run, in millionths of a US dollar

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
const pageSize = 64

// pageBytes is how many bytes of lines are unpacked at a time. It is more than 64 usual rows have.
const pageBytes = 64 << 20

// undecoded is how rows are read whose lines are not decoded in parallel.
func undecoded(l *batchRow) (*batchRow, error) { return l, nil }

// rows yields what decode makes of the rows of a run behind one, in order; they are unpacked, with all lines if whole, else
// with those of the history. Several rows are decoded at the same time. An error ends them.
func rows[T any](ctx context.Context, s *store, run, after int64, whole bool, decode func(*batchRow) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			page, more, err := s.page(ctx, run, after, whole)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, l := range decodedPage(page, whole, decode) {
				if !yield(l.value, l.err) || l.err != nil {
					return
				}
			}
			if !more {
				return
			}
			after = page[len(page)-1].n
		}
	}
}

// A decodedRow is what was made of a row, or why it could not be.
type decodedRow[T any] struct {
	value T
	err   error
}

// decodedPage unpacks the rows of a page, and decodes them, in parallel.
func decodedPage[T any](page []batchRow, whole bool, decode func(*batchRow) (T, error)) []decodedRow[T] {
	out := make([]decodedRow[T], len(page))
	var all sync.WaitGroup
	var next atomic.Int32
	for range min(runtime.GOMAXPROCS(0), len(page)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(page); i = int(next.Add(1)) - 1 {
				of := &out[i]
				if of.err = page[i].unpack(whole); of.err == nil {
					of.value, of.err = decode(&page[i])
				}
			}
		})
	}
	all.Wait()
	return out
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
		for l, err := range rows(ctx, a.store, r.n, 0, true, undecoded) {
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
