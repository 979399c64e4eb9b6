package journal

import (
	"bytes"
	"context"
	"iter"

	"github.com/runteam/runteam/internal/record"
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
	page, _, err := t.c.store.page(ctx, t.n, t.after, true)
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
		if page, _, err = t.c.store.page(ctx, t.n, t.after, true); err != nil { // what came with the end
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

// LastRow returns the number of the last row of a run. It changes when a row is added.
func (c *catalog) LastRow(ctx context.Context, run string) (int64, error) {
	r, err := c.find(ctx, run)
	if err != nil {
		return 0, err
	}
	n, _, _, err := c.store.last(ctx, r.n)
	return n, c.fail("read", err)
}
