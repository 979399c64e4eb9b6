package engine

import (
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/event"
)

// Context measures what of all the context of a run was sent.
type Context = event.Context

// measureContext counts the context of a model call, with the calls that translated context for it, in
// the form for the caller: of a value that the caller may not see it counts only that it was
// withheld, and of a hidden call nothing else.
func (x *modelCall) measureContext() (c Context) {
	delivered, hidden := 0, x.isPartial()
	for _, ruling := range x.rulings {
		d := x.run.decided(ruling)
		if d.Coarse && d.Source.Kind == handoff.Message {
			continue // the caller does not know of it
		}
		c.Redacted += d.Redacted.Total()
		c.Revealed += d.Revealed.Total()
		c.Withheld += d.WithheldParts()
		delivered += d.BytesAfter
		c.TokensSaved += d.TokensSaved()
	}
	if hidden {
		return Context{Withheld: c.Withheld}
	}
	for _, s := range x.spent {
		for _, ruling := range s.rulings {
			d := x.run.decided(ruling)
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
	if x.stage != givenPrompt {
		return c
	}
	c.Prompts++
	c.Truncated = len(x.truncatedContext())
	c.Sent += x.sent
	c.Shared += max(x.sent-delivered, 0) + max(x.existed, delivered)
	return c
}
