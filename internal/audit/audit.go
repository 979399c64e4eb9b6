// Package audit says whether the record of decisions has been altered.
//
// A [Chain] writes each decision of the gate as one line of JSON that holds the
// digest of the line before it, and that of all other lines of the file which
// stand between the two. The opening line names the [Head] of the run before,
// the closing line counts the decisions. [Verify] reads the file again: whoever
// edits, inserts, removes or moves a line, of whatever kind, breaks the chain
// there, and whoever cuts its end off is found by the head that was kept
// elsewhere.
//
// A chain may outlive its process: a [State], kept with what is written, is all
// that [Continue] needs.
//
// Without a key anybody can compute a whole new chain, so that it is worth as
// much as the place where its head is kept. With a key only who has it can.
package audit

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Version is the form of the record. It is part of each digest.
const Version = "runteam/audit/1"

// MinKey is how many bytes a key has at least: what is shorter can be guessed.
const MinKey = 16

// ErrClosed reports that something was appended to a chain that is closed.
var ErrClosed = errors.New("the record of decisions is closed")

// errUnfinished is the error of a chain whose writer panicked.
var errUnfinished = errors.New("the record of decisions is broken: writing it was not finished")

// Options say what a chain continues and who can compute it. The zero value is
// a chain without a key, of a run without a name, that continues nothing.
type Options struct {
	Run      string    // the id of the run
	Key      []byte    // digests are HMAC-SHA-256 with it; nil and empty mean SHA-256. MinKey bytes at least
	Previous Head      // of the run before; zero if there is none
	Time     time.Time // of the opening line
	Before   []byte    // whole lines that stand before the opening line, and after the chain before if the file has one
}

// A Chain writes decisions as hash-chained lines. It is safe for concurrent
// use; it starts no goroutine and reads no clock.
type Chain struct {
	mu     sync.Mutex // guards all below
	w      io.Writer  // nil keeps no lines
	hash   *digester
	run    string
	head   Head
	beside stretch // what the next line covers
	counts counts
	closed bool
	err    error // the first; nothing is written after it
}

// syncer is a writer that can make durable what was written, such as an [os.File].
type syncer interface{ Sync() error }

// New writes the opening line to w and returns the chain. A nil w keeps no
// lines, and the head all the same. Each write to w is of whole lines, so that
// others may stand in between, of which [Chain.Beside] is told; if w has a method Sync() error, as a file
// has, it is called after each write. A file that ends within a line must be cut
// before a chain is continued in it.
func New(w io.Writer, o Options) (*Chain, error) {
	if n := len(o.Key); n > 0 && n < MinKey {
		return nil, fmt.Errorf("a key of %d bytes can be guessed: give one of %d or more", n, MinKey)
	}
	if o.Previous != (Head{}) && o.Previous.Lines < 1 {
		return nil, fmt.Errorf("the previous head has %d lines: give one that a chain returned", o.Previous.Lines)
	}
	c := &Chain{w: w, hash: newDigester(o.Key), run: valid(o.Run), beside: newStretch()}
	if err := c.beside.add(o.Before); err != nil {
		return nil, err
	}
	text, head, err := c.hash.encode(entry{Seq: 1, Kind: opening, Previous: o.Previous, Beside: c.beside.take(), Run: c.run, Keyed: len(o.Key) > 0, Time: utc(o.Time)})
	if err == nil {
		err = c.write(text)
	}
	if err != nil {
		return nil, fmt.Errorf("open the record of decisions: %w", err)
	}
	c.head = head
	return c, nil
}

// write passes lines on, all of them or with an error.
func (c *Chain) write(text []byte) error {
	if c.w == nil {
		return nil
	}
	n, err := c.w.Write(text)
	if err == nil && n < len(text) {
		err = io.ErrShortWrite
	}
	if s, ok := c.w.(syncer); ok && err == nil {
		err = s.Sync()
	}
	return err
}

// Head returns what the chain has come to: the head of the last line that is
// known to be written. Kept where the record is not, it anchors the chain.
func (c *Chain) Head() Head {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.head
}

// Close writes the closing line, with the counts, and returns the head of the
// whole. It does not close the writer. It may be called again, and then writes
// nothing; of a broken chain it returns the error and the last head.
func (c *Chain) Close(at time.Time) (Head, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.err != nil {
		return c.head, c.err
	}
	c.err = errUnfinished
	text, head, err := c.hash.encode(entry{Seq: c.head.Lines + 1, Kind: closing, Previous: c.head, Beside: c.beside.take(), Time: utc(at), Counts: &c.counts})
	if err == nil {
		err = c.write(text)
	}
	if err != nil {
		c.err = fmt.Errorf("close the record of decisions: %w", err)
		return c.head, c.err
	}
	c.head, c.closed, c.err = head, true, nil
	return c.head, nil
}

// utc drops what a clock adds to a time, so that equal times are equal text.
func utc(t time.Time) time.Time { return t.UTC().Round(0) }

// valid replaces what is not UTF-8 as the encoding of JSON does, so that a name
// reads the same when the line is read.
func valid(name string) string { return string([]rune(name)) }
