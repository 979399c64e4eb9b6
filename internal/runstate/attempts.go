package runstate

import (
	"slices"
	"time"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
)

// Attempts are how many attempts at a task there were. One that waits for the approval of a person is not counted.
type Attempts struct {
	Ended       int
	Interrupted int // because the process was gone
	Running     int // in the process that works on the run
}

// Begun returns how many attempts ended or were interrupted.
func (a Attempts) Begun() int { return a.Ended + a.Interrupted }

// Attempts counts the attempts at a task. What a later turn or a child of an attempt does belongs to it.
func (s *State) Attempts(t *Task) (a Attempts) {
	var counted []int // the numbers of attempts
	for _, x := range t.Calls {
		if x.Part == "" {
			a.Ended, counted = a.Ended+1, append(counted, x.Attempt)
		}
	}
	count := func(attempt, process int) {
		switch {
		case slices.Contains(counted, attempt):
			return
		case s.works(process):
			a.Running++
		default:
			a.Interrupted++
		}
		counted = append(counted, attempt)
	}
	for i := range t.open {
		if c := &t.open[i]; !c.waits {
			count(c.Attempt, c.process)
		}
	}
	for _, x := range t.turns {
		if !x.ended && !x.continued && x.call.Attempt != t.waiting {
			count(x.call.Attempt, x.process)
		}
	}
	if s.Repeats {
		a.Interrupted = 0
	}
	return a
}

// works reports whether a process still works on the run.
func (s *State) works(process int) bool { return s.Live && process == len(s.Begins) }

// Running returns how many calls for a task are in progress.
func (s *State) Running(t *Task) (n int) {
	for i := range t.open {
		if c := &t.open[i]; !c.waits && s.works(c.process) {
			n++
		}
	}
	return n
}

// Interrupted returns the calls for a task that began and have no end, in their order, but for those in progress.
func (s *State) Interrupted(t *Task) (list []*record.CallStart) {
	for i := range t.open {
		if c := &t.open[i]; !c.waits && !s.Repeats && !s.works(c.process) {
			list = append(list, c.CallStart)
		}
	}
	return list
}

// Answered returns the calls of a task that were answered: those that ended, and the turns of attempts that have no
// end so far.
func (t *Task) Answered() []*record.AgentCall {
	list := slices.Clip(t.Calls)
	for _, x := range t.turns {
		if !x.ended {
			list = append(list, x.call)
		}
	}
	return list
}

// Completions returns how often the task completed.
func (t *Task) Completions() (n int) {
	for _, x := range t.Calls {
		if x.Part == "" && x.Completed() {
			n++
		}
	}
	return n
}

// LastNumber returns the highest number of an attempt; zero if there was none.
func (t *Task) LastNumber() (n int) {
	for _, x := range t.Answered() {
		n = max(n, x.Attempt)
	}
	for i := range t.open {
		n = max(n, t.open[i].Attempt)
	}
	for _, q := range t.list {
		if !q.Approves() { // else its attempt has begun only if it has a call
			n = max(n, q.Attempt)
		}
	}
	return n
}

// Usage returns the tokens of the calls that were answered, as the caller may see them.
func (t *Task) Usage() (u llm.Usage) {
	for _, x := range t.Answered() {
		u = u.Add(x.Usage())
	}
	return u
}

// IsPartial reports whether the caller may not see all of a call for the task.
func (t *Task) IsPartial() bool {
	return slices.ContainsFunc(t.Answered(), (*record.AgentCall).IsPartial) ||
		slices.ContainsFunc(t.open, func(c openCall) bool { return !c.waits && c.Partial })
}

// Span returns when the first call for a task began and when the last one ended; zero times if none did.
func (t *Task) Span() (start, end time.Time) {
	begins := func(at time.Time) {
		if start.IsZero() || at.Before(start) {
			start = at
		}
	}
	for i := range t.open {
		if !t.open[i].waits {
			begins(t.open[i].Time)
		}
	}
	for _, x := range t.Answered() {
		begins(x.Start)
		if x.End.After(end) {
			end = x.End
		}
	}
	return start, end
}

// Worked returns for how long calls for a task were in progress, from the first to the last of each process: between
// two processes none does. How long a call took that has no end is not known.
func (s *State) Worked(t *Task) (sum time.Duration) {
	for i := 0; i < len(t.Calls); {
		process, start, end := t.processes[i], t.Calls[i].Start, t.Calls[i].End
		for ; i < len(t.Calls) && t.processes[i] == process; i++ {
			start, end = earlier(start, t.Calls[i].Start), later(end, t.Calls[i].End)
		}
		for j := range t.open { // a call that was cut off says when work began
			if t.open[j].process == process && !t.open[j].waits {
				start = earlier(start, t.open[j].Time)
			}
		}
		if process > 0 { // a question may have been asked before the process began
			start = later(start, s.Begins[process-1].Time)
		}
		sum += max(end.Sub(start), 0)
	}
	return sum
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// AgentIn returns the agent that was given a prompt in a session; empty if none was.
func (t *Task) AgentIn(session string) string {
	for _, of := range slices.Backward(t.agents) {
		if of.session == session {
			return of.agent
		}
	}
	return ""
}

// FirstTurn returns what an agent said in the first turn of a session that had more; nil if there were no more.
func (t *Task) FirstTurn(session string) *record.AgentCall {
	for _, x := range t.turns {
		if x.call.Session == session {
			return x.call
		}
	}
	return nil
}
