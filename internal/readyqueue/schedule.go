package readyqueue

import "slices"

// A schedule is the order in which ready tasks are handed out.
//
// Every task has a rank, computed once: ready tasks wait in a heap of ranks.
// The tasks of an agent that may run no more of them at once are parked in a
// heap of its own when their turn comes, and the best of them returns when
// the agent has a slot again. So a busy agent costs others nothing, and each
// task is parked at most once for each slot that it is passed over for.
type schedule struct {
	places  []place
	stale   bool    // ranks and heaps must be made anew before use
	ranked  []int32 // by rank, the task
	heap    heap
	agents  []load           // those with tasks, once any of them has a limit
	groups  []load           // of tasks that share a limit; the first one stands for none
	agentOf map[string]int32 // index into agents; nil as long as there are no limits
}

// A place is that of one task in the schedule.
type place struct {
	rank  int32
	agent int32 // index into agents, once there are limits
	group int32 // index into groups; zero means none
	flags flags
}

type flags uint8

const (
	queued  flags = 1 << iota // in a heap, or will be once ranks are known
	taken                     // handed out by next, not started yet
	slotted                   // counts against the limits of its agent and its group
)

// A load is what one agent, or one group of tasks, does.
type load struct {
	limit   int // tasks at once; zero means no bound
	running int
	parked  heap
}

func (a *load) full() bool { return a.limit > 0 && a.running >= a.limit }

// grow adds n tasks, which are not ready. Ranks are made anew.
func (s *schedule) grow(n int) {
	s.places = append(s.places, make([]place, n)...)
	s.stale = true
}

// limitAgents makes the loads of agents known, before the first limit.
func (s *schedule) limitAgents(agentOf func(i int) string) {
	s.agentOf = map[string]int32{}
	for i := range s.places {
		s.assign(i, agentOf(i))
	}
}

// assign says which agent has task i, once there are limits.
func (s *schedule) assign(i int, agent string) {
	if s.agentOf == nil {
		return
	}
	p := &s.places[i]
	p.agent = s.agentIndex(agent)
	if p.flags&slotted != 0 {
		s.agents[p.agent].running++
	}
}

// agentIndex returns an agent's place in agents, where it has one from then on.
func (s *schedule) agentIndex(name string) int32 {
	k, ok := s.agentOf[name]
	if !ok {
		k = int32(len(s.agents))
		s.agentOf[name] = k
		s.agents = append(s.agents, load{})
	}
	return k
}

func (s *schedule) limit(agent string, n int) {
	a := &s.agents[s.agentIndex(agent)]
	a.limit = max(n, 0)
	for len(a.parked) > 0 {
		s.heap.push(a.parked.pop()) // those for which there is no slot are parked again
	}
}

// limitGroup lets some tasks share a limit.
func (s *schedule) limitGroup(tasks []int32, n int) {
	if s.groups == nil {
		s.groups = []load{{}}
	}
	of := load{limit: n}
	for _, i := range tasks {
		if s.places[i].group = int32(len(s.groups)); s.places[i].flags&slotted != 0 {
			of.running++
		}
	}
	s.groups = append(s.groups, of)
}

// loads returns what the agent and the group of a task do; nil stands for one without a limit.
func (s *schedule) loads(p *place) (all [2]*load) {
	if s.agentOf != nil {
		all[0] = &s.agents[p.agent]
	}
	if p.group > 0 {
		all[1] = &s.groups[p.group]
	}
	return all
}

// fullLoad returns the load for which a task has to wait; nil if it may start.
func (s *schedule) fullLoad(p *place) *load {
	for _, l := range s.loads(p) {
		if l != nil && l.full() {
			return l
		}
	}
	return nil
}

// push makes task i ready, if it is not.
func (s *schedule) push(i int) {
	p := &s.places[i]
	if p.flags&queued == 0 {
		p.flags |= queued
		if !s.stale {
			s.heap.push(p.rank)
		}
	}
}

// next hands out the best ready task whose agent and group have a free slot.
func (s *schedule) next() (i int, ok bool) {
	for len(s.heap) > 0 {
		rank := s.heap.pop()
		i := s.ranked[rank]
		p := &s.places[i]
		if p.flags&queued == 0 {
			s.unpark(p) // started or ended on another way, it may have stood for another one
			continue
		}
		if l := s.fullLoad(p); l != nil {
			l.parked.push(rank)
			s.unpark(p) // it may have stood for another task of the other load
			continue
		}
		p.flags = p.flags&^queued | taken
		s.hold(p)
		return int(i), true
	}
	return 0, false
}

// start takes task i out of the schedule and counts it against its limits.
func (s *schedule) start(i int) {
	p := &s.places[i]
	p.flags &^= queued | taken
	s.hold(p)
}

// remove takes task i out of the schedule and gives its slot back.
func (s *schedule) remove(i int) {
	p := &s.places[i]
	p.flags &^= queued | taken
	if p.flags&slotted == 0 {
		return
	}
	p.flags &^= slotted
	for _, l := range s.loads(p) {
		if l != nil {
			l.running--
		}
	}
	s.unpark(p)
}

// isTaken reports whether task i was handed out and not started yet.
func (s *schedule) isTaken(i int) bool { return s.places[i].flags&taken != 0 }

// hold counts a task against its limits.
func (s *schedule) hold(p *place) {
	if p.flags&slotted == 0 {
		p.flags |= slotted
		for _, l := range s.loads(p) {
			if l != nil {
				l.running++
			}
		}
	}
}

// unpark lets the best parked tasks of a task's agent and group compete, if there is a slot for
// them.
func (s *schedule) unpark(p *place) {
	for _, l := range s.loads(p) {
		if l != nil && !l.full() && len(l.parked) > 0 {
			s.heap.push(l.parked.pop())
		}
	}
}

// upcoming returns what next would hand out; see [Queue.Upcoming].
func (s *schedule) upcoming(n int) []int {
	var found []int
	edge := []int{0} // places in the heap; those above them were looked at
	for looked := 0; len(found) < n && looked < 4*n; looked++ {
		best := -1
		for k, at := range edge {
			if at < len(s.heap) && (best < 0 || s.heap[at] < s.heap[edge[best]]) {
				best = k
			}
		}
		if best < 0 {
			break
		}
		at := edge[best]
		edge[best] = 2*at + 1
		edge = append(edge, 2*at+2)
		i := int(s.ranked[s.heap[at]])
		p := &s.places[i]
		if p.flags&queued == 0 || s.fullLoad(p) != nil || len(found) > 0 && found[len(found)-1] == i {
			continue
		}
		found = append(found, i)
	}
	return found
}

// rank orders all tasks for dispatch and fills the heap. Each criterion fills in the
// keys of all tasks; the last one is the most important. Stable counting passes keep
// it linear in tasks and edges.
func (s *schedule) rank(criteria ...func(key []int32)) {
	n := len(s.places)
	slab := make([]int32, 3*n)
	order, spare, key := slab[:n:n], slab[n:2*n:2*n], slab[2*n:]
	for i := range order {
		order[i] = int32(i)
	}
	for _, fill := range criteria {
		fill(key)
		order, spare = sortDown(order, spare, key)
	}
	s.ranked, s.stale = order, false
	for k := range s.agents {
		s.agents[k].parked = s.agents[k].parked[:0]
	}
	for k := range s.groups {
		s.groups[k].parked = s.groups[k].parked[:0]
	}
	ready := 0
	for i := range s.places {
		if s.places[i].flags&queued != 0 {
			ready++
		}
	}
	s.heap = slices.Grow(s.heap[:0], ready)
	for rank, i := range s.ranked { // ranks that rise are a heap
		p := &s.places[i]
		p.rank = int32(rank)
		if p.flags&queued != 0 {
			s.heap = append(s.heap, int32(rank))
		}
	}
}

// sortDown sorts tasks by key, the highest first and equal ones as they are,
// and returns the result and the other slice, which it has used as well.
func sortDown(tasks, spare, key []int32) (sorted, other []int32) {
	if len(tasks) == 0 {
		return tasks, spare
	}
	low, high := slices.Min(key), slices.Max(key)
	if low == high {
		return tasks, spare
	}
	next := make([]int32, high-low+1) // where the next task with this key goes, from the top
	for _, k := range key {
		next[high-k]++
	}
	sum := int32(0)
	for k := range next {
		next[k], sum = sum, sum+next[k]
	}
	for _, i := range tasks {
		slot := &next[high-key[i]]
		spare[*slot] = i
		*slot++
	}
	return spare, tasks
}
