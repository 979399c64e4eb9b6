package audit

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/runteam/runteam/internal/event"
)

// Decisions are encoded decisions, for [Chain.AppendEncoded].
type Decisions []encoded

// encoded is one encoded decision.
type encoded struct {
	text          []byte // of an event.Handoff
	verdict, rule string
}

// Encode encodes decisions. It needs no chain, so that a goroutine that does not append
// them can call it.
func Encode(list ...event.Handoff) (Decisions, error) {
	out := make(Decisions, len(list))
	for i := range list {
		h := &list[i]
		text, err := json.Marshal(h)
		if err != nil {
			return nil, err
		}
		if bytes.Contains(text, []byte(`\ufffd`)) { // names that are not UTF-8 may have become equal
			if name, twice := duplicate(text); twice {
				return nil, fmt.Errorf("%q occurs twice in a decision: write names in UTF-8", name)
			}
		}
		out[i] = encoded{text, h.Verdict.String(), string(h.Rule)}
	}
	return out, nil
}

// Append writes one line for each decision, all in one write, and returns when the writer has
// synced them. After an error the chain is broken, since half of a line may have been
// written: each later Append returns the same error and writes nothing.
func (c *Chain) Append(list ...event.Handoff) error {
	d, err := Encode(list...)
	return c.add(d, err)
}

// AppendEncoded does what Append does with encoded decisions.
func (c *Chain) AppendEncoded(list Decisions) error { return c.add(list, nil) }

// add appends decisions, unless they could not be encoded.
func (c *Chain) add(list Decisions, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return c.err
	case c.closed:
		return ErrClosed
	case len(list) == 0 && err == nil:
		return nil
	}
	c.err = errUnfinished
	if err == nil {
		err = c.append(list)
	}
	if c.err = err; err != nil {
		c.err = fmt.Errorf("record decisions: %w", err)
	}
	return c.err
}

// append writes decisions, and then sets the head.
func (c *Chain) append(list Decisions) (err error) {
	text, head := c.text[:0], c.head
	for i := range list {
		d := &list[i]
		if text, head, err = c.hash.decision(text, head, c.beside.take(), d.text); err != nil {
			return err
		}
		c.counts.add(d.verdict, d.rule)
	}
	if err := c.write(text); err != nil {
		return err
	}
	if c.head = head; cap(text) <= maxScratch {
		c.text = text
	}
	return nil
}

// maxScratch is how much memory a chain keeps for its next decisions.
const maxScratch = 64 << 10
