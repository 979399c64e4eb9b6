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
	"fmt"
	"iter"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/task"
)

// The conditions that this package reports beside those of package task.
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
	tasks   definitions
	states  []state
	results []*envelope.Envelope
	ends    []end // parallel to states once something failed or was skipped
	counts  [skipped + 1]int
	low     int // no pending task comes before it

	order  schedule
	events events
}

// status is a [task.Status] in one byte.
type status uint8

const (
	pending status = iota
	blocked
	running
	completed
	failed
	skipped
)

var statuses = [...]task.Status{task.Pending, task.Blocked, task.InProgress, task.Completed, task.Failed, task.Skipped}

func (s status) terminal() bool { return s >= completed }

func statusOf(name task.Status) status {
	for s := range statuses {
		if statuses[s] == name {
			return status(s)
		}
	}
	return pending
}

// A state is what changes about a task.
type state struct {
	updated time.Time
	open    int32 // dependencies that must still end
	status  status
	waiting bool // in progress, between two attempts
}

// An end says why a task failed or was skipped.
type end struct {
	text string
	root int32 // the task that the cascade started from
	via  int32 // the direct dependency through which it came; none for the root itself
}

// none is the index of no task and of no agent.
const none int32 = -1

// New returns a queue of a graph's tasks: pending, or blocked by their
// dependencies. The status that the graph's tasks carry does not count; see
// [Restore]. The queue shares the graph and never changes it, so any
// number of queues may run one graph.
func New(g *graph.Graph) *Queue {
	n := g.Len()
	q := &Queue{tasks: definitions{g: g}, states: make([]state, n), results: make([]*envelope.Envelope, n)}
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

// Len returns the number of tasks.
func (q *Queue) Len() int { return len(q.states) }

// Index returns the index of the task with this ID.
func (q *Queue) Index(id task.ID) (i int, ok bool) { return q.tasks.index(id) }

// Task returns task i as it stands: its definition with the status and the
// time of its last change. It shares slices and maps with the queue, which
// must not be written to.
func (q *Queue) Task(i int) task.Task {
	t := *q.tasks.at(i)
	t.Status, t.UpdatedAt = statuses[q.states[i].status], q.states[i].updated
	return t
}

// Status returns the status of task i, without a copy of the rest.
func (q *Queue) Status(i int) task.Status { return statuses[q.states[i].status] }

// Waiting reports whether task i is in progress and waits between two attempts.
func (q *Queue) Waiting(i int) bool { return q.states[i].waiting }

// Result returns the result of task i, if it is completed and has one.
func (q *Queue) Result(i int) (*envelope.Envelope, bool) { return q.results[i], q.results[i] != nil }

// Reason returns why task i failed or was skipped: the text that it was ended
// with, or of the cascade that reached it. It is empty for any other task.
func (q *Queue) Reason(i int) string {
	s := q.states[i].status
	if s != failed && s != skipped {
		return ""
	}
	switch why := q.ends[i]; {
	case why.via < 0:
		return why.text
	case s == failed:
		return fmt.Sprintf("Cancelled: dependency %q failed.", q.tasks.at(int(why.via)).ID)
	default:
		return fmt.Sprintf("Skipped: dependency %q was skipped.", q.tasks.at(int(why.via)).ID)
	}
}

// Root returns the task whose failure or skipping ended task i, which may be i
// itself. It is false for a task that has not ended so.
func (q *Queue) Root(i int) (root int, ok bool) {
	if s := q.states[i].status; s != failed && s != skipped {
		return 0, false
	}
	return int(q.ends[i].root), true
}

// Pending yields the pending tasks, in the order in which they came.
func (q *Queue) Pending() iter.Seq[int] {
	return func(yield func(int) bool) {
		for q.low < len(q.states) && q.states[q.low].status != pending {
			q.low++
		}
		for i := q.low; i < len(q.states); i++ {
			if q.states[i].status == pending && !yield(i) {
				return
			}
		}
	}
}

// Count returns how many tasks have a status.
func (q *Queue) Count(s task.Status) int { return q.counts[statusOf(s)] }

// IsComplete reports whether every task is terminal. An empty queue is complete.
func (q *Queue) IsComplete() bool {
	return q.counts[completed]+q.counts[failed]+q.counts[skipped] == len(q.states)
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
