// Package audit detects changes to the record of decisions.
//
// A [Chain] writes each decision of the gate as one line of JSON with the digest of the line
// before it, and the digest of all other lines of the file between the two. The opening line
// names the [Head] of the run before, and the closing line counts the decisions. [Verify]
// reads the file: editing, inserting, removing or moving a line of any kind breaks the chain
// there, and cutting off its end is detected by a head that was stored elsewhere.
//
// Another process can continue a chain: [Continue] needs only a [State], stored with the
// lines.
//
// Without a key anyone can compute a new chain, so that the record is as safe as the place
// of its head. With a key only its owner can.
package audit

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Version is the version of the record. It is part of each digest.
const Version = "runteam/audit/1"

// MinKey is the least length of a key in bytes. A shorter one can be guessed.
const MinKey = 16

// ErrClosed reports an append to a closed chain.
var ErrClosed = errors.New("the record of decisions is closed")

// errUnfinished is the error of a chain whose writer panicked.
var errUnfinished = errors.New("the record of decisions is broken: writing it was not finished")

// Options configure a chain. The zero value is a chain without a key, of a run without an
// ID, that follows no other.
type Options struct {
	Run      string    // the ID of the run
	Key      []byte    // of HMAC-SHA-256, at least MinKey bytes; empty means SHA-256
	Previous Head      // of the run before; zero if there is none
	Time     time.Time // of the opening line
	Before   []byte    // whole lines before the opening line, after the chain before if the file has one
}

// A Chain writes decisions as hash-chained lines. It is safe for concurrent use, starts no
// goroutine and reads no clock.
type Chain struct {
	mu     sync.Mutex // guards all below
	w      io.Writer  // nil discards the lines
	hash   *digester
	run    string
	head   Head
	beside stretch // the other lines that the next line covers
	counts counts
	text   []byte // of the last decisions; its memory is used again
	closed bool
	err    error // the first; nothing is written after it
}

// syncer is a writer that can make its data durable, such as an [os.File].
type syncer interface{ Sync() error }

// New writes the opening line to w and returns the chain. A nil w discards the lines. Each
// write to w is of whole lines, so that the caller can write others between them, which it
// passes to [Chain.Beside]. If w has a method Sync() error, as a file has, it is called after
// each write. Truncate a file that ends within a line before you continue a chain in it.
func New(w io.Writer, o Options) (*Chain, error) {
	if n := len(o.Key); n > 0 && n < MinKey {
		return nil, fmt.Errorf("the key has length %d; use at least %d bytes", n, MinKey)
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

// write writes lines, and syncs the writer.
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

// Head returns the head of the last line that was written. Stored apart from the record, it
// anchors the chain.
func (c *Chain) Head() Head {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.head
}

// Close writes the closing line, with the counts, and returns the head of the chain. It does
// not close the writer. A second call writes nothing; for a broken chain Close returns the
// error and the last head.
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

// utc removes the zone and the monotonic clock, so that equal times are equal text.
func utc(t time.Time) time.Time { return t.UTC().Round(0) }

// valid replaces invalid UTF-8 as the encoding of JSON does, so that a name is equal after it
// was read.
func valid(name string) string { return string([]rune(name)) }
