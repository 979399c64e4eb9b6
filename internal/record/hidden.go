package record

import (
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/task"
)

// Hidden are the tasks of a run of whose prompts and answers the caller may not see all. How many inner calls they have
// depends on that, so the caller learns nothing of these.
type Hidden map[task.ID]bool

// Visible returns the decisions of which the caller may know, and adds the tasks that they show to be hidden. It may change
// the list.
func (t Hidden) Visible(list []event.Handoff) []event.Handoff {
	for i := range list {
		t.Learn(&list[i])
	}
	return slices.DeleteFunc(list, func(h event.Handoff) bool { return !t.Knows(&h) })
}

// Learn adds the task of a decision if that is about a hidden value which its agent reads, or which is its answer. What
// is withheld from the agent hides nothing that the agent does.
func (t Hidden) Learn(h *event.Handoff) {
	if h.IsHidden() && (h.Verdict == gate.Passed || h.To == handoff.User) {
		t[h.Task] = true
	}
}

// Knows reports whether the caller may know of a decision.
func (t Hidden) Knows(h *event.Handoff) bool {
	return IsKnown(h) && !(t[h.Task] && IsInner(h.Session))
}
