package journal

import (
	"context"
	"errors"
	"time"
)

// A store keeps the rows of a journal. Rows are added and never changed, but
// for leases; only whole runs are removed. It is safe for concurrent use.
type store interface {
	head(ctx context.Context) (state []byte, err error)                                                  // of the chain of the newest run; nil if there is none
	begin(ctx context.Context, r *runRow, b *batch) error                                                // adds a run with its lease and sets its number; errTaken if there is one with this id
	commit(ctx context.Context, list []*batch) error                                                     // adds, at once, all whose leases stand
	runs(ctx context.Context, prefix string, most int) ([]row, error)                                    // whose IDs begin with prefix, newest first; at most so many, or all if most is negative
	page(ctx context.Context, run, after int64, whole bool) ([]batchRow, error)                          // of a run, behind one; without the rest of their lines unless they are to be whole
	marked(ctx context.Context, run int64) ([]markedRow, error)                                          // all rows of a run, in order
	batchRow(ctx context.Context, n int64) (batchRow, error)                                             // one row
	last(ctx context.Context, run int64) (n int64, at time.Time, state []byte, err error)                // the number of the last batch, the newest time of one, and the state after the last
	answers(ctx context.Context, key [32]byte, before int64) ([]batchRow, error)                         // newest first, of batches with a lower number; without the rest of their lines
	lease(ctx context.Context, run int64) (*lease, error)                                                // nil if nobody has it
	swapLease(ctx context.Context, run int64, old, now *lease) (ok bool, err error)                      // false if it is not the old one any more; nil is none
	remove(ctx context.Context, runs []row, idle func(*lease) bool) (gone []row, bytes int64, err error) // those whose leases, nil if nobody has one, are idle when they go; gone also with an error
	close() error
}

// errTaken reports that there is a run with this id.
var errTaken = errors.New("there is a run with this id")

// A runRow is a run.
type runRow struct {
	n       int64  // in its file, from 1
	id      string // unique
	name    string
	command string
	started time.Time
}

// A row is what is known of a run without reading what it kept.
type row struct {
	runRow
	held *lease // nil if nobody has it
	turn turn   // the last
}

// A turn is that a process took a run up, or that the run came to its end.
type turn struct {
	at     time.Time
	status string // empty: it was taken up
	tasks  string // how many came to which status, as JSON
}

// A batch is what one commit adds to one run.
type batch struct {
	run     int64
	lease   lease // that must still stand
	at      time.Time
	lines   bundle
	empty   bool   // there are no lines
	state   []byte // of the chain after them
	answers [][32]byte
	turns   []turn
	marks   []byte // of what the lines are about
	release bool   // the lease ends with it

	lost bool // set by the store: the lease is somebody else's, and nothing was added
}

// A batchRow is a batch as it is read.
type batchRow struct {
	n     int64 // higher than those of all batches before it
	run   int64
	id    string // of the run; only of an answer
	lines bundle
	text  []byte // the lines, once they are unpacked
}

// pageSize is how many rows are read at a time.
const pageSize = 64
