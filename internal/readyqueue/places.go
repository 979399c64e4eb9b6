package readyqueue

// HasPlace reports whether the limit of an agent leaves a place for one more task.
func HasPlace(q *Queue, agent string) bool {
	l := q.order.loadOf(agent)
	return l == nil || !l.full()
}

// Occupy counts work of an agent that is no task of the queue against its limit, also beyond it, until
// [Vacate].
func Occupy(q *Queue, agent string) {
	if l := q.order.loadOf(agent); l != nil {
		l.running++
	}
}

// Vacate gives back a place: that of work that was counted, or that of a running task which does nothing
// for a while and occupies one again before it continues.
func Vacate(q *Queue, agent string) {
	l := q.order.loadOf(agent)
	if l == nil {
		return
	}
	if l.running--; !l.full() && len(l.parked) > 0 {
		q.order.heap.push(l.parked.pop())
	}
}

// loadOf returns what an agent does; nil if no agent has a limit.
func (s *schedule) loadOf(agent string) *load {
	if s.agentOf == nil {
		return nil
	}
	return &s.agents[s.agentIndex(agent)]
}
