package engine

import (
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
)

// Context measures what of all the context of a run was sent.
type Context = event.Context

// measured counts a model call, with the calls that translated context for it, in
// the form for the caller: of a value that the caller may not see it counts the
// size class, and nothing that was found in it.
func (v callView) measured() (c Context) {
	delivered := 0
	for _, ruling := range v.rulings {
		d := v.run.decided(ruling)
		c.Redacted += d.Redacted.Total()
		c.Revealed += d.Revealed.Total()
		c.Withheld += len(d.Parts().Dropped)
		if d.Verdict != gate.Passed && len(d.Parts().Dropped) == 0 {
			c.Withheld++
		}
		delivered += d.BytesAfter
		c.TokensSaved += d.TokensSaved()
	}
	for _, s := range v.spent {
		for _, ruling := range s.rulings {
			d := v.run.decided(ruling)
			c.Redacted += d.Redacted.Total()
			c.Revealed += d.Revealed.Total()
			c.TokensSaved += d.TokensSaved()
		}
		if s.sent == 0 {
			continue
		}
		c.Prompts++
		c.Sent += s.sent
		c.Shared += s.sent
	}
	if !v.called {
		return c
	}
	c.Prompts++
	c.Truncated = len(v.truncated())
	c.Sent += v.sent
	c.Shared += max(v.sent-delivered, 0) + max(v.existed, delivered)
	return c
}
