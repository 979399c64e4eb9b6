package memo

import (
	"sync"

	"github.com/runteam/runteam/internal/record"
)

// Approvals are those that calls of tools have spent, over all processes of a run. They are safe for concurrent use.
type Approvals struct {
	mu     sync.Mutex
	starts map[string]int // of each call, by its session
	always map[everyCall]bool
}

// everyCall says of which calls a person approved all.
type everyCall struct{ tool, definition, person string }

// Approvals returns those that the run has spent so far: those of its earlier processes, to which it adds.
func (m *Memo) Approvals() *Approvals {
	if m.Is(Own) {
		return m.spent
	}
	return newApprovals()
}

func newApprovals() *Approvals {
	return &Approvals{starts: map[string]int{}, always: map[everyCall]bool{}}
}

// Spend records that a call begins.
func (a *Approvals) Spend(c *record.CallStart) {
	if c.ApprovedBy == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.starts[c.Session]++
	if c.Always {
		a.always[everyCall{c.Agent, c.Definition, c.ApprovedBy}] = true
	}
}

// Of returns how often a call has begun with an approval, and whether the person approved each call of its tool.
func (a *Approvals) Of(c *record.CallStart) (starts int, always bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.starts[c.Session], a.always[everyCall{c.Agent, c.Definition, c.ApprovedBy}]
}
