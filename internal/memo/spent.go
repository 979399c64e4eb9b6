package memo

import (
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// Attempts counts the attempts at a task that earlier processes of this run made. A replay without calls repeats what was
// interrupted as it was.
func (m *Memo) Attempts(id task.ID) (a runstate.Attempts) {
	if m.Is(Own) {
		a = m.State.Attempts(m.Counted(id).Task)
	}
	if m.Is(Strict) {
		a.Interrupted = 0
	}
	return a
}

// Interrupted returns the calls for a task that have no end, unless a replay without calls repeats them as they were.
func (m *Memo) Interrupted(t *runstate.Task) []*record.CallStart {
	if m.Is(Strict) {
		return nil
	}
	return m.State.Interrupted(t)
}

// Usage returns the tokens of a task in earlier processes of this run, as the caller may see them. Those of calls that
// were interrupted are estimates.
func (m *Memo) Usage(id task.ID) (u llm.Usage) {
	if !m.Is(Own) {
		return u
	}
	if t := m.State.Find(id); t != nil {
		u = m.usageOf(t)
	}
	return u
}

func (m *Memo) usageOf(t *runstate.Task) llm.Usage {
	if m.Is(Strict) {
		return t.Usage()
	}
	return m.State.Usage(t)
}

// Spent returns what the run had taken before, as the caller may see it.
func (m *Memo) Spent() (u llm.Usage, c event.Context) {
	if !m.Is(Own) {
		return u, c
	}
	for _, t := range m.State.Tasks() {
		u = u.Add(m.usageOf(t))
		for _, x := range t.Calls {
			c = c.Add(x.Context)
		}
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
	for _, c := range m.Interrupted(t.Task) {
		if c.Effect != "" && !c.Repeatable {
			uncertain = max(uncertain, c.Attempt)
		}
	}
	return uncertain > ended
}
