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

// hideCalls leaves out of a history what its caller may not learn of tasks with calls that are hidden: their turns, tools
// and children, and all that their attempts took, which are partial. Documents read what is left, and need not know which
// calls are hidden. The log that it had does not change.
func hideCalls(h *record.History) {
	hidden := map[task.ID]bool{}
	for i := range h.Log {
		e := &h.Log[i]
		for _, x := range []*record.AgentCall{e.Exchange, e.Turn, e.Rejected} {
			if x != nil && x.Partial {
				hidden[x.Task] = true
			}
		}
		if e.Asked != nil && e.Asked.Partial {
			hidden[e.Asked.Task] = true
		}
	}
	h.Log = slices.DeleteFunc(slices.Clone(h.Log), func(e record.Entry) bool {
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
	for i := range h.Log {
		e := &h.Log[i]
		if e.Asked != nil && hidden[e.Asked.Task] {
			e.Asked = new(*e.Asked)
			e.Asked.Partial = true
		}
		if e.Exchange != nil && hidden[e.Exchange.Task] {
			e.Exchange = new(*e.Exchange)
			hideCost(e.Exchange)
		}
	}
}

// hideCost leaves out of the end of an attempt what the attempt took, and what its last turn says of the model.
func hideCost(x *record.AgentCall) {
	x.Spent, x.SavedTokens, x.From = record.Spent{Partial: true}, record.SavedTokens{}, ""
	x.Context = event.Context{Withheld: x.Context.Withheld}
	x.Call, x.Warnings = llm.CallInfo{}, nil
}
