package engine

import (
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/handoff"
)

// Context measures what of all the context of a run was sent.
type Context = event.Context

// measured counts an exchange, with the calls that translated context for it, in
// the form for the caller: of a value that the caller may not see it counts the
// size class, and nothing that was found in it.
func (x *exchange) measured() (c Context) {
	delivered := 0
	for i := range x.rulings {
		d := x.run.decided(&x.rulings[i])
		c.Redacted += d.Redacted.Total()
		c.Revealed += d.Revealed.Total()
		c.Withheld += len(d.Dropped)
		if d.Verdict != handoff.Passed && len(d.Dropped) == 0 {
			c.Withheld++
		}
		delivered += d.BytesAfter
	}
	for _, s := range x.spent {
		for i := range s.rulings {
			d := x.run.decided(&s.rulings[i])
			c.Redacted += d.Redacted.Total()
			c.Revealed += d.Revealed.Total()
		}
		if s.sent == 0 {
			continue
		}
		c.Prompts++
		c.Sent += s.sent
		c.Shared += s.sent
	}
	if !x.asked {
		return c
	}
	c.Prompts++
	c.Truncated = len(x.truncated())
	c.Sent += x.sent
	c.Shared += max(x.sent-delivered, 0) + max(x.existed, delivered)
	return c
}
