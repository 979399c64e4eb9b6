// Package queue decides which tasks are ready, running and done, and what
// failed because of what.
//
// A [Queue] starts from a [graph.Graph]. Its owner asks [Queue.NextReady] for
// the best task to run, says how it ended, and so makes others ready or, when
// it failed, fails what depended on it. Times come in as arguments; nothing
// here waits, and the same calls always lead to the same state.
package queue

import (
	"errors"
	"fmt"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/task"
)

// The conditions that this package reports beside those of package task.
var (
	ErrTransition = errors.New("illegal transition") // a [*TransitionError] wraps it
	ErrWaiting    = errors.New("task waits for its retry")
	ErrResult     = errors.New("result of another task")
	ErrSnapshot   = errors.New("unreadable snapshot")
)

// A TransitionError reports a step that a task's status does not allow.
type TransitionError struct {
	Task     task.ID
	Title    string
	From, To task.Status
}

// Error names the task and both states.
func (e *TransitionError) Error() string {
	return fmt.Sprintf("task %q: %v from %s to %s", e.Title, ErrTransition, e.From, e.To)
}

// Unwrap returns [ErrTransition].
func (e *TransitionError) Unwrap() error { return ErrTransition }

// A Queue keeps the status and the result of every task of a run. Tasks are
// named by id, or by index: the place in the graph, then in the order of
// [Queue.Add]. The methods that end in Index panic on an index that is none.
//
// A Queue has one owner; it is not safe for concurrent use. The zero value is
// an empty queue, ready for Add.
type Queue struct {
	g     *graph.Graph // the tasks at the start; nil in a zero Queue
	added              // the tasks since

	tasks   []entry
	results []*envelope.Envelope
	ends    []end // parallel to tasks once something failed or was skipped
	counts  [skipped + 1]int
	low     int // no pending task stands before it

	schedule
	events
}

// state is a task's status in one byte.
type state uint8

const (
	pending state = iota
	blocked
	running
	completed
	failed
	skipped
)

var statuses = [...]task.Status{task.Pending, task.Blocked, task.InProgress, task.Completed, task.Failed, task.Skipped}

func (s state) terminal() bool { return s >= completed }

func stateOf(status task.Status) state {
	for s, name := range statuses {
		if name == status {
			return state(s)
		}
	}
	return pending
}

// An entry is what changes about a task.
type entry struct {
	updated time.Time
	open    int32 // dependencies that must still settle
	rank    int32 // place in the order of dispatch
	agent   int32 // index into schedule.agents, once there are limits
	state   state
	flags   flags
}

type flags uint8

const (
	queued  flags = 1 << iota // in a heap, or will be once ranks are known
	taken                     // handed out by NextReady, not started yet
	waiting                   // in progress between two attempts
	slotted                   // counts against its agent's limit
)

// An end says why a task failed or was skipped.
type end struct {
	text string
	root int32 // the task that the cascade started from
	via  int32 // the direct dependency through which it came; none for the root itself
}

// New returns a queue of a graph's tasks: pending, or blocked by their
// dependencies. The status that the graph's tasks carry does not count; see
// [FromSnapshot]. The queue shares the graph and never changes it, so any
// number of queues may run one graph.
func New(g *graph.Graph) *Queue {
	n := g.Len()
	q := &Queue{g: g, tasks: make([]entry, n), results: make([]*envelope.Envelope, n)}
	for i := range q.tasks {
		e := &q.tasks[i]
		e.updated = g.Task(i).UpdatedAt
		if e.open = int32(len(g.Upstream(i))); e.open > 0 {
			e.state = blocked
		} else {
			e.flags = queued
		}
		q.counts[e.state]++
	}
	q.stale = true
	return q
}

// Len returns the number of tasks.
func (q *Queue) Len() int { return len(q.tasks) }

// Index returns the index of the task with this id.
func (q *Queue) Index(id task.ID) (i int, ok bool) {
	if q == nil {
		return 0, false
	}
	if q.g != nil {
		if i, ok := q.g.Index(id); ok {
			return i, true
		}
	}
	n, ok := q.byID[id]
	return int(n), ok
}

// none is the index of no task and of no agent.
const none int32 = -1

// find is Index with an error that says what was to be done.
func (q *Queue) find(id task.ID, op string) (int, error) {
	i, ok := q.Index(id)
	if !ok {
		return 0, fmt.Errorf("%s task: %w %q", op, task.ErrUnknown, id)
	}
	return i, nil
}

// def returns a task as it was defined, with a status that does not count.
func (q *Queue) def(i int) *task.Task {
	if base := q.base(); i >= base {
		return q.more[i-base]
	}
	return q.g.Task(i)
}

// base is the number of tasks that came with the graph.
func (q *Queue) base() int {
	if q.g == nil {
		return 0
	}
	return q.g.Len()
}
