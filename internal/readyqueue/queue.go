// Package readyqueue decides which tasks of a run are ready, running and done, and what
// failed because of what.
//
// A [Queue] starts from a [graph.Graph]. Its owner asks [Queue.Next] for the best
// task to run, says how it ended, and so makes others ready or, when it failed,
// fails what depended on it. Times come in as arguments; nothing here waits, and
// the same calls always lead to the same state.
package readyqueue

import (
	"errors"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/task"
)

// The conditions that this package reports in addition to those of package task.
var (
	ErrTransition = errors.New("illegal transition")
	ErrWaiting    = errors.New("task waits for its retry")
	ErrResult     = errors.New("result of another task")
	ErrSnapshot   = errors.New("unreadable snapshot")
)

// A Queue keeps the status and the result of every task of a run. Tasks are named
// by index: the place in the graph, then in the order of [Queue.Add]. Queries
// panic on an index that is none; transitions return an error.
//
// A Queue has one owner; it is not safe for concurrent use. The zero value is
// an empty queue, ready for Add.
type Queue struct {
	board
	order  schedule
	events events
}

// New returns a queue of a graph's tasks: pending, or blocked by their
// dependencies. The status that the graph's tasks carry does not count; see
// [Restore]. The queue shares the graph and never changes it, so any
// number of queues may run one graph.
func New(g *graph.Graph) *Queue {
	n := g.Len()
	q := &Queue{board: board{tasks: definitions{g: g}, states: make([]state, n), results: make([]*envelope.Envelope, n)}}
	q.order.grow(n)
	for i := range q.states {
		s := &q.states[i]
		s.updated = g.Task(i).UpdatedAt
		if s.open = int32(len(g.Upstream(i))); s.open > 0 {
			s.status = blocked
		} else {
			q.order.push(i)
		}
		q.counts[s.status]++
	}
	return q
}

// Limit bounds how many tasks of an agent [Queue.Next] has in progress at
// once; n < 1 takes the bound away. What runs already is counted. A task that
// is handed out counts from then until it ends, waits for a retry or is
// requeued; one that is started without Next counts too, whatever the bound.
func (q *Queue) Limit(agent string, n int) {
	if q.order.agentOf == nil {
		q.order.limitAgents(func(i int) string { return q.tasks.at(i).Assignee })
	}
	q.order.limit(agent, n)
}

// LimitGroup bounds how many of some tasks, each of which is in no other group, [Queue.Next] has in
// progress at once, as [Queue.Limit] does for those of an agent.
func (q *Queue) LimitGroup(tasks []int32, n int) { q.order.limitGroup(tasks, n) }

// Next hands out the best ready task whose agent has a free slot: the one
// with the longest path to a sink, then with more direct dependents, then of
// higher priority, then the earlier one. It is not handed out again: the
// caller starts it, ends it, or gives it back with [Queue.Requeue].
func (q *Queue) Next() (i int, ok bool) {
	q.rank()
	return q.order.next()
}

// Upcoming returns up to n tasks that [Queue.Next] would hand out next if
// nothing changed, the best first, without those whose agents have no slot. It
// hands nothing out, looks at 4n tasks at most, and takes O(n²).
func (q *Queue) Upcoming(n int) []int {
	q.rank()
	return q.order.upcoming(n)
}

// rank orders the tasks for dispatch, if that was not done since the last Add. The
// criteria go from the least to the most important one.
func (q *Queue) rank() {
	if !q.order.stale {
		return
	}
	q.order.rank(
		func(key []int32) {
			for i := range key {
				key[i] = priorityRank(q.tasks.at(i).Priority)
			}
		},
		func(key []int32) {
			for i := range key {
				key[i] = q.tasks.dependents(i)
			}
		},
		q.tasks.heights,
	)
}

// priorityRank orders priorities: higher is more urgent, normal and anything unknown is 0.
func priorityRank(p task.Priority) int32 {
	switch p {
	case task.Low:
		return -1
	case task.High:
		return 1
	case task.Critical:
		return 2
	}
	return 0
}
