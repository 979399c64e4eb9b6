package assign

// A line is the agents one behind another, as a ring of links through the
// place after the last agent.
type line struct {
	next, prev []int32
}

// newLine returns the line of n agents in the order of the roster.
func newLine(n int) *line {
	l := &line{next: make([]int32, n+1), prev: make([]int32, n+1)}
	for i := range l.next {
		l.next[i], l.prev[i] = int32((i+1)%(n+1)), int32((i+n)%(n+1))
	}
	return l
}

// take returns the first in the line who is among the eligible, of
// whom there is one, and sends that one to the end.
func (l *line) take(eligible set) int32 {
	end := int32(len(l.next) - 1)
	i := l.next[end]
	for !eligible.has(i) {
		i = l.next[i]
	}
	l.next[l.prev[i]], l.prev[l.next[i]] = l.next[i], l.prev[i]
	last := l.prev[end]
	l.next[last], l.prev[i] = i, last
	l.next[i], l.prev[end] = end, i
	return i
}
