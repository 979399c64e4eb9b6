package journals

import (
	"slices"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// hideFromCaller leaves out of a stored run what its caller may not learn: calls that are hidden, and the digest of a
// spec or input files that the caller may not see, which tells whether they equal those of another run.
func hideFromCaller(s *journal.Stored) {
	if s.Info.Label > s.History.Clearance() {
		s.Info.Fingerprint = ""
	}
	hideCalls(&s.History)
}

// hideCalls leaves out of a history what its caller may not learn of calls that are hidden: all
// that they took, and the turns, tools and children of their tasks. Documents read what is left,
// and need not know which calls are hidden. The log that it had does not change.
func hideCalls(h *record.History) {
	hidden := map[task.ID]bool{}
	h.Log = slices.Clone(h.Log)
	for i := range h.Log {
		e := &h.Log[i]
		for _, of := range []**record.AgentCall{&e.Exchange, &e.Turn, &e.Rejected} {
			if *of != nil && (*of).Partial {
				x := new(**of)
				*of, hidden[x.Task] = x, true
				x.Spent, x.SavedTokens, x.From = record.Spent{Partial: true}, record.SavedTokens{}, ""
				x.Context = event.Context{Withheld: x.Context.Withheld}
				x.Call, x.Warnings = llm.CallInfo{}, nil
			}
		}
		if e.Asked != nil && e.Asked.Partial {
			hidden[e.Asked.Task] = true
		}
	}
	h.Log = slices.DeleteFunc(h.Log, func(e record.Entry) bool {
		switch {
		case e.Exchange != nil:
			return hidden[e.Exchange.Task] && record.IsInner(e.Exchange.Session)
		case e.Asked != nil:
			return hidden[e.Asked.Task] && record.IsInner(e.Asked.Session)
		case e.Turn != nil:
			return hidden[e.Turn.Task]
		case e.Rejected != nil:
			return hidden[e.Rejected.Task]
		case e.ToolCall != nil:
			return hidden[e.ToolCall.Task]
		case e.Sent != nil:
			return !e.Sent.Shown
		case e.ToolResult != nil:
			return hidden[e.ToolResult.Task]
		case e.Files != nil:
			return hidden[e.Files.Task] && record.IsInner(e.Files.Session)
		}
		return false
	})
}
