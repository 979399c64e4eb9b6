package task

// Terminal reports whether s is final: completed, failed, skipped or not needed.
func (s Status) Terminal() bool {
	return s == Completed || s == Failed || s == Skipped || s == NotNeeded
}

// valid reports whether s is a status.
func (s Status) valid() bool {
	return s == Pending || s == Blocked || s == InProgress || s.Terminal()
}

func (p Payload) valid() bool { return p == "" || p == Output || p == Structured || p == Both }

func (m MemoryScope) valid() bool { return m == "" || m == ScopeDependencies || m == ScopeAll }

func (p Priority) valid() bool {
	return p == "" || p == Low || p == Normal || p == High || p == Critical
}
