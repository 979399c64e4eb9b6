package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
)

// A Tail reads the lines of a run as they become durable, whichever process writes them. [Journal.Tail]
// returns one. It is not safe for concurrent use.
type Tail struct {
	c     *catalog
	run   string
	n     int64
	after int64 // the last row that was read
}

// Tail returns a Tail before the first line of a run, which is named as for [Journal.Find].
func (c *catalog) Tail(ctx context.Context, run string) (*Tail, error) {
	r, err := c.find(ctx, run)
	if err != nil {
		return nil, err
	}
	return &Tail{c: c, run: r.id, n: r.n}, nil
}

// Run returns the ID of the run.
func (t *Tail) Run() string { return t.run }

// Next returns the next rows that are durable, each with whole lines; it may return only some of them, and
// does not wait. If ended is true, the run has ended or its process has, and there are no rows left, unless
// the run is resumed later. The error wraps [ErrUnknownRun] if the run was removed.
func (t *Tail) Next(ctx context.Context) (rows [][]byte, ended bool, err error) {
	page, err := t.c.store.page(ctx, t.n, t.after, true)
	if err != nil {
		return nil, false, t.c.fail("read", err)
	}
	if len(page) == 0 {
		now, err := t.c.find(ctx, t.run)
		if err == nil && now.n != t.n {
			err = &UnknownRunError{Prefix: t.run} // removed, and made again
		}
		if err != nil {
			return nil, false, err
		}
		if now.turn.status == "" && t.c.live(now.held) {
			return nil, false, nil
		}
		if page, err = t.c.store.page(ctx, t.n, t.after, true); err != nil { // what came with the end
			return nil, false, t.c.fail("read", err)
		}
		ended = len(page) == 0
	}
	for i, err := range unpacked(page, true) {
		if err != nil {
			return nil, false, t.c.fail("read", err)
		}
		rows = append(rows, page[i].text)
		t.after = page[i].n
	}
	return rows, ended, nil
}

// LinesOf yields the lines of a row of a [Tail], with their kinds.
func LinesOf(row []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for line := range bytes.Lines(row) {
			if kind, _ := record.SplitLine(line); !yield(kind, line) {
				return
			}
		}
	}
}

// Clearance returns the highest clearance of the callers of the processes of a run, which is the highest
// label in the stored texts for the caller. It is [label.Secret] if one is unknown, as in runs that an
// earlier version wrote.
func (c *catalog) Clearance(ctx context.Context, run string) (label.Classification, error) {
	r, err := c.find(ctx, run)
	if err != nil {
		return label.Secret, err
	}
	rows, err := c.store.marked(ctx, r.n)
	if err != nil {
		return label.Secret, c.fail("read", err)
	}
	var h record.History
	for i := range rows {
		if !rows[i].about() {
			continue
		}
		l, err := c.store.batchRow(ctx, rows[i].n, false)
		if err != nil {
			return label.Secret, c.fail("read", err)
		}
		for kind, value := range record.SplitLines(l.text) {
			if kind != record.KindRunStart {
				continue
			}
			var begin record.RunStart
			if err := json.Unmarshal(value, &begin); err != nil {
				return label.Secret, c.fail("read", err)
			}
			h.Begins = append(h.Begins, begin)
		}
	}
	return h.Clearance(), nil
}

// LastRow returns the number of the last row of a run. It changes when a row is added.
func (c *catalog) LastRow(ctx context.Context, run string) (int64, error) {
	r, err := c.find(ctx, run)
	if err != nil {
		return 0, err
	}
	n, _, _, err := c.store.last(ctx, r.n)
	return n, c.fail("read", err)
}
