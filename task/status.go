package task

import "slices"

// Statuses returns all statuses, in the order of a task's life.
func Statuses() []Status {
	return []Status{Pending, Blocked, InProgress, Completed, Failed, Skipped}
}

// Terminal reports whether s is final: completed, failed or skipped.
func (s Status) Terminal() bool { return s == Completed || s == Failed || s == Skipped }

// Valid reports whether s is a status.
func (s Status) Valid() bool { return slices.Contains(Statuses(), s) }

func (p Payload) valid() bool { return p == "" || p == Output || p == Structured || p == Both }

func (m MemoryScope) valid() bool { return m == "" || m == ScopeDependencies || m == ScopeAll }

func (r Reuse) valid() bool { return r == "" || r == ReuseNever }

func (p Priority) valid() bool {
	return p == "" || p == Low || p == Normal || p == High || p == Critical
}
