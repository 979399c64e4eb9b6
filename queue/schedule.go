package queue

import "github.com/runteam/runteam/task"

// schedule is the order in which ready tasks are handed out.
//
// Every task has a rank, computed once: ready tasks wait in a heap of ranks.
// The tasks of an agent that may run no more of them at once are parked in a
// heap of its own when their turn comes, and the best of them returns when
// the agent has a slot again. So a busy agent costs others nothing, and each
// task is parked at most once for each slot that it is passed over for.
type schedule struct {
	stale   bool    // ranks and heaps must be made anew before use
	order   []int32 // by rank, the task
	heap    heap
	agents  []agentLoad      // those with tasks, once any of them has a limit
	agentOf map[string]int32 // index into agents; nil as long as there are no limits
}

// agentLoad is what one agent does.
type agentLoad struct {
	limit   int // tasks at once; zero means no bound
	running int
	parked  heap
}

func (a *agentLoad) full() bool { return a.limit > 0 && a.running >= a.limit }

// Limit bounds how many tasks of an agent [Queue.NextReady] has in progress at
// once; n < 1 takes the bound away. What runs already is counted. A task that
// is handed out counts from then until it ends, waits for a retry or is
// requeued; one that is started without NextReady counts too, whatever the bound.
func (q *Queue) Limit(agent string, n int) {
	if q.agentOf == nil {
		q.agentOf = map[string]int32{}
		for i := range q.tasks {
			e := &q.tasks[i]
			e.agent = q.agentIndex(q.def(i).Assignee)
			if e.flags&slotted != 0 {
				q.agents[e.agent].running++
			}
		}
	}
	a := &q.agents[q.agentIndex(agent)]
	a.limit = max(n, 0)
	for len(a.parked) > 0 {
		q.heap.push(a.parked.pop()) // those for which there is no slot are parked again
	}
}

// agentIndex returns an agent's place in agents, where it has one from then on.
func (q *Queue) agentIndex(name string) int32 {
	k, ok := q.agentOf[name]
	if !ok {
		k = int32(len(q.agents))
		q.agentOf[name] = k
		q.agents = append(q.agents, agentLoad{})
	}
	return k
}

// NextReady hands out the best ready task whose agent has a free slot: the one
// with the longest path to a sink, then with more direct dependents, then of
// higher priority, then the earlier one. It is not handed out again: the
// caller starts it, ends it, or gives it back with [Queue.Requeue].
func (q *Queue) NextReady() (i int, ok bool) {
	if q.stale {
		q.rank()
	}
	for len(q.heap) > 0 {
		rank := q.heap.pop()
		i := q.order[rank]
		e := &q.tasks[i]
		if e.flags&queued == 0 || e.state != pending {
			q.unpark(e) // started or ended on another way, it may have stood for another one
			continue
		}
		if q.agentOf != nil && q.agents[e.agent].full() {
			q.agents[e.agent].parked.push(rank)
			continue
		}
		e.flags = e.flags&^queued | taken
		q.hold(int(i))
		return int(i), true
	}
	return 0, false
}

// ready puts a pending task into the heap and tells of it.
func (q *Queue) ready(i int) {
	e := &q.tasks[i]
	if e.flags&queued == 0 {
		e.flags |= queued
		if !q.stale {
			q.heap.push(e.rank)
		}
	}
	q.emit(Ready, i)
}

// hold counts a task against its agent's limit.
func (q *Queue) hold(i int) {
	e := &q.tasks[i]
	if e.flags&slotted == 0 {
		e.flags |= slotted
		if q.agentOf != nil {
			q.agents[e.agent].running++
		}
	}
}

// release gives a task's slot back.
func (q *Queue) release(i int) {
	e := &q.tasks[i]
	if e.flags&slotted == 0 {
		return
	}
	e.flags &^= slotted
	if q.agentOf != nil {
		q.agents[e.agent].running--
		q.unpark(e)
	}
}

// unpark lets the best parked task of a task's agent compete, if there is a slot for it.
func (q *Queue) unpark(e *entry) {
	if q.agentOf == nil {
		return
	}
	if a := &q.agents[e.agent]; !a.full() && len(a.parked) > 0 {
		q.heap.push(a.parked.pop())
	}
}

// Next returns the first pending task of an agent, in the order of the input;
// an empty name means [Queue.NextAvailable]. It hands nothing out.
func (q *Queue) Next(assignee string) (task.Task, bool) {
	if assignee == "" {
		return q.NextAvailable()
	}
	return q.first(func(t *task.Task) bool { return t.Assignee == assignee })
}

// NextAvailable returns the first pending task without an assignee, or else
// the first pending one. It hands nothing out.
func (q *Queue) NextAvailable() (task.Task, bool) {
	if t, ok := q.first(func(t *task.Task) bool { return t.Assignee == "" }); ok {
		return t, true
	}
	return q.first(func(*task.Task) bool { return true })
}

func (q *Queue) first(fits func(*task.Task) bool) (task.Task, bool) {
	if q.counts[pending] == 0 {
		return task.Task{}, false
	}
	for q.low < len(q.tasks) && q.tasks[q.low].state != pending {
		q.low++
	}
	for i := q.low; i < len(q.tasks); i++ {
		if e := &q.tasks[i]; e.state == pending && e.flags&taken == 0 && fits(q.def(i)) {
			return q.Task(i), true
		}
	}
	return task.Task{}, false
}

// Upcoming returns up to n tasks that [Queue.NextReady] would hand out next if
// nothing changed, the best first, without those whose agents have no slot. It
// hands nothing out, looks at 4n tasks at most, and takes O(n²).
func (q *Queue) Upcoming(n int) []int {
	if q.stale {
		q.rank()
	}
	var found []int
	edge := []int{0} // places in the heap; what stands above them has been looked at
	for looked := 0; len(found) < n && looked < 4*n; looked++ {
		best := -1
		for k, at := range edge {
			if at < len(q.heap) && (best < 0 || q.heap[at] < q.heap[edge[best]]) {
				best = k
			}
		}
		if best < 0 {
			break
		}
		at := edge[best]
		edge[best] = 2*at + 1
		edge = append(edge, 2*at+2)
		i := int(q.order[q.heap[at]])
		e := &q.tasks[i]
		if e.flags&queued == 0 || e.state != pending || q.agentOf != nil && q.agents[e.agent].full() || len(found) > 0 && found[len(found)-1] == i {
			continue
		}
		found = append(found, i)
	}
	return found
}
