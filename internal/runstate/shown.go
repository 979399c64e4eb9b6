package runstate

import (
	"cmp"
	"slices"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// The statuses that only stored tasks have.
const (
	Interrupted task.Status = "interrupted" // in progress when the process of its run was gone
	Removed     task.Status = "removed"     // the spec no longer has it, or a later plan of the coordinator replaced it
)

// Shown returns the status of a task as people see it: of one that was in progress, [Interrupted] once no process works
// on the run, and of one that the run attempted and no longer has, [Removed].
func (s *State) Shown(t *Task) task.Status {
	status := s.Status(t)
	switch {
	case s.isRemoved(t):
		return Removed
	case status == task.InProgress && !s.Live && (s.End == nil || t.Step):
		return Interrupted
	}
	return status
}

// Count counts the tasks of the run by status, as [State.Shown] returns it, and by how they ended or were interrupted. A
// task that the last process has not reached is pending, and has not ended.
func (s *State) Count() (n map[task.Status]int, o record.Outcomes) {
	n = map[task.Status]int{}
	for _, t := range s.order {
		if !s.IsTask(t) {
			continue
		}
		status := s.Shown(t)
		if n[status]++; status == Interrupted {
			o.Interrupted++
		}
		end := s.EndOf(t)
		o.Add(status, end.Root, t.Started, end.Accepted)
	}
	return n, o
}

// IsTask reports whether t is a task that the run still has, and no step of the coordinator.
func (s *State) IsTask(t *Task) bool { return !t.Step && s.Has(t) }

// Listed returns what there is to show: the tasks of the run, then those that it no longer has and attempted, then the
// steps of the coordinator. Tasks with an ID in first come first, in that order.
func (s *State) Listed(first []task.ID) (list []*Task) {
	place := make(map[task.ID]int, len(first))
	for i, id := range first {
		if _, known := place[id]; !known {
			place[id] = i - len(first)
		}
	}
	for _, t := range s.order {
		if s.IsListed(t) {
			list = append(list, t)
		}
	}
	rank := func(t *Task) int {
		switch {
		case t.Step:
			return 2
		case !s.Has(t):
			return 1
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b *Task) int {
		return cmp.Or(rank(a)-rank(b), place[a.ID]-place[b.ID])
	})
	return list
}

// IsListed reports whether a list of the tasks has it: the run has it, or attempted it.
func (s *State) IsListed(t *Task) bool { return t.Step || s.Has(t) || s.isRemoved(t) }

// isRemoved reports whether the run attempted a task that it no longer has.
func (s *State) isRemoved(t *Task) bool {
	if t.Step || s.Has(t) {
		return false
	}
	made := s.Attempts(t)
	return made.Begun()+made.Running > 0
}

// Usage returns the tokens of a task as the caller may see them. For calls that were interrupted it estimates those of
// the prompts.
func (s *State) Usage(t *Task) llm.Usage {
	u := t.Usage()
	for _, c := range s.Interrupted(t) {
		u = u.Add(Estimate(c))
	}
	return u
}

// Context measures the context of the attempts that ended, as the caller may see it.
func (t *Task) Context() (c event.Context) {
	for _, x := range t.Calls {
		c = c.Add(x.Context)
	}
	return c
}

// Estimate returns what a call without an end took at least, as the caller may see it.
func Estimate(c *record.CallStart) (u llm.Usage) {
	if !c.Partial {
		u.InputTokens = gate.Tokens(c.Bytes)
	}
	return u
}

// Transfers returns the calls that transferred the conversation of the last attempt at which any did.
func (t *Task) Transfers() (list []*record.AgentCall) {
	for _, x := range t.Results {
		if x.TransferredTo == "" || t.Result(x.Session) != x {
			continue
		}
		if len(list) > 0 && list[0].Attempt != x.Attempt {
			list = nil
		}
		list = append(list, x)
	}
	return list
}

// OutputFiles returns the output files that belong to the result; nil if there are none.
func (t *Task) OutputFiles() *record.AgentCall {
	x := t.Accepted()
	if x == nil {
		return nil
	}
	for _, f := range t.Files {
		if f.Session == x.Session {
			return f
		}
	}
	return nil
}
