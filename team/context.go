package team

import "github.com/runteam/runteam/handoff"

// Context measures what of all the context of a run was sent. Sizes are in
// bytes of UTF-8.
type Context struct {
	Prompts  int `json:"prompts"`       // that were sent
	Sent     int `json:"bytesSent"`     // of both texts of all of them
	Shared   int `json:"bytesIfShared"` // the same if each prompt had held every input and every result that there was
	Redacted int `json:"redacted"`      // values that a placeholder took the place of
	Revealed int `json:"revealed"`      // personal values that crossed in clear by a rule
	Withheld int `json:"withheld"`      // parts of values, and whole ones, that were granted or asked for and stayed behind
}

// add counts an exchange, with what was retold for it.
func (c *Context) add(x *exchange) {
	delivered := 0
	for i := range x.rulings {
		d := &x.rulings[i]
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
			c.Redacted += s.rulings[i].Redacted.Total()
			c.Revealed += s.rulings[i].Revealed.Total()
		}
		if s.sent == 0 {
			continue
		}
		c.Prompts++
		c.Sent += s.sent
		c.Shared += s.sent
	}
	if !x.asked {
		return
	}
	c.Prompts++
	c.Sent += x.sent
	c.Shared += max(x.sent-delivered, 0) + max(x.existed, delivered)
}
