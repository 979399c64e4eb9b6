package memo

import (
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// Attempts counts the attempts at a task that earlier processes of this run made.
func (m *Memo) Attempts(id task.ID) (a runstate.Attempts) {
	if m.Is(Own) {
		a = m.State.Attempts(m.Counted(id).Task)
	}
	return a
}

// Usage returns the tokens of a task in earlier processes of this run, as the caller may see them. Those of calls that
// were interrupted are estimates.
func (m *Memo) Usage(id task.ID) (u llm.Usage) {
	if !m.Is(Own) {
		return u
	}
	if t := m.State.Find(id); t != nil {
		u = m.State.Usage(t)
	}
	return u
}

// Spent returns what the run had taken before, as the caller may see it.
func (m *Memo) Spent() (u llm.Usage, c event.Context) {
	if !m.Is(Own) {
		return u, c
	}
	for _, t := range m.State.Tasks() {
		u = u.Add(m.State.Usage(t))
		c = c.Add(t.Context())
	}
	return u, c
}

// MayHaveActed reports whether the last attempt at a task was a command that was interrupted, or whose effects are not
// known, and that cannot be repeated.
func (m *Memo) MayHaveActed(id task.ID) bool {
	if m == nil {
		return false
	}
	t := m.Counted(id)
	ended, uncertain := 0, 0 // the highest numbers of such attempts
	for _, x := range t.Calls {
		switch {
		case x.Part != "":
		case x.Code == codes.Effects:
			uncertain = max(uncertain, x.Attempt)
		default:
			ended = max(ended, x.Attempt)
		}
	}
	for _, c := range m.State.Interrupted(t.Task) {
		if c.Effect != "" && !c.Repeatable {
			uncertain = max(uncertain, c.Attempt)
		}
	}
	return uncertain > ended
}
