package task

import "slices"

// transitions are all legal steps from one status to another. Every other one
// is an error of whoever asks for it.
var transitions = map[Status][]Status{
	Pending: {
		Blocked,    // found to have unfinished dependencies
		InProgress, // dispatched
		Failed,     // a dependency failed, or the task may not run
		Skipped,
	},
	Blocked: {
		Pending, // the last dependency is done
		Failed,
		Skipped,
	},
	InProgress: {
		Pending, // to run again: a retry, or a run that was interrupted
		Completed,
		Failed,
		Skipped,
	},
	Completed: nil,
	Failed:    nil,
	Skipped:   nil,
}

// Statuses returns all statuses, in the order of a task's life.
func Statuses() []Status {
	return []Status{Pending, Blocked, InProgress, Completed, Failed, Skipped}
}

// CanBecome reports whether the step from s to next is legal. A status never
// becomes itself, and one that does not exist becomes nothing.
func (s Status) CanBecome(next Status) bool {
	return slices.Contains(transitions[s], next)
}

// Terminal reports whether s is final: completed, failed or skipped.
func (s Status) Terminal() bool { return s == Completed || s == Failed || s == Skipped }

// Valid reports whether s is a status.
func (s Status) Valid() bool {
	_, ok := transitions[s]
	return ok
}

// Valid reports whether p is a form, or empty.
func (p Payload) Valid() bool { return p == "" || p == Output || p == Structured || p == Both }

// Valid reports whether m is a scope, or empty.
func (m MemoryScope) Valid() bool { return m == "" || m == ScopeDependencies || m == ScopeAll }

// Valid reports whether r is ReuseNever, or empty.
func (r Reuse) Valid() bool { return r == "" || r == ReuseNever }

// Valid reports whether p is a priority, or empty.
func (p Priority) Valid() bool { return p == "" || p.Rank() != 0 || p == Normal }

// Rank orders priorities: higher is more urgent, Normal and anything unknown is 0.
func (p Priority) Rank() int {
	switch p {
	case Low:
		return -1
	case High:
		return 1
	case Critical:
		return 2
	}
	return 0
}
