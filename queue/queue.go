// Package queue tracks the status of the tasks of a run: which may run, which wait, and
// which have ended and why.
//
//	q, err := queue.New(tasks...)
//	for t, ok := q.Next(""); ok; t, ok = q.Next("") {
//		err = q.Start(t.ID, now)
//		err = q.Complete(t.ID, nil, now)
//	}
//
// A task is blocked until its dependencies are completed, then pending. When a task fails
// or is skipped, every task with a required dependency on it fails or is skipped too. Times
// are arguments, no method waits, and the same calls always lead to the same state. A team
// runs its tasks by the same rules.
package queue

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/task"
)

// ErrTransition reports a step that the status of a task does not allow.
var ErrTransition = readyqueue.ErrTransition

// A Queue holds tasks with their status and result. It has one owner: it is not safe
// for concurrent use. The zero value is an empty queue, ready for [Queue.Add].
type Queue struct{ q readyqueue.Queue }

// New returns a queue of tasks, which may be in any order. Their Status fields are ignored:
// each task is pending, or blocked by its dependencies. The error is that of
// [task.Validate].
func New(tasks ...task.Task) (*Queue, error) {
	g, err := graph.New(slices.Clone(tasks))
	if err != nil {
		return nil, err
	}
	return &Queue{*readyqueue.New(g)}, nil
}

// FromSnapshot restores a queue from its snapshot, or from a snapshot of
// open-multi-agent, version 1 or 2. A task that was in progress is pending again.
//
// A result of open-multi-agent is a text without a label. It takes the caller's header,
// above all its classification; an empty ID, Producer, Task and CreatedAt are filled in.
func FromSnapshot(snapshot []byte, unlabelled envelope.Header) (*Queue, error) {
	var s readyqueue.Snapshot
	if err := json.Unmarshal(snapshot, &s); err != nil {
		return nil, err
	}
	q, err := readyqueue.Restore(s, unlabelled)
	if err != nil {
		return nil, err
	}
	return &Queue{*q}, nil
}

// Snapshot returns the queue as JSON with the keys of open-multi-agent, from which
// [FromSnapshot] makes an equal queue. It holds what agents wrote.
func (q *Queue) Snapshot() ([]byte, error) {
	if q == nil {
		return nil, fmt.Errorf("snapshot: %w: the queue is nil", task.ErrInvalid)
	}
	return json.Marshal(q.q.Snapshot())
}

// Add appends a task. It is pending if its dependencies are done, and blocked while
// one is unfinished or is not there yet. If one has failed or was skipped already, the
// task ends likewise. An ID that is taken, a repeated dependency, a cycle and a task
// that is not pending are errors, and then nothing changes.
func (q *Queue) Add(t task.Task) error {
	if q == nil {
		return fmt.Errorf("add task %q: %w: the queue is nil", t.Title, task.ErrInvalid)
	}
	return q.q.Add(t)
}

// Start marks a pending task as in progress.
func (q *Queue) Start(id task.ID, at time.Time) error {
	i, err := q.find(id)
	if err != nil {
		return err
	}
	return q.q.Start(i, at)
}

// Complete ends a task in progress with its result, which may be nil, and makes every
// dependent pending that waited for nothing else.
func (q *Queue) Complete(id task.ID, result *envelope.Envelope, at time.Time) error {
	i, err := q.find(id)
	if err != nil {
		return err
	}
	return q.q.Complete(i, result, at)
}

// Fail ends a task that has not ended yet, and with it every task that depends on it,
// directly or not.
func (q *Queue) Fail(id task.ID, text string, at time.Time) error {
	i, err := q.find(id)
	if err != nil {
		return err
	}
	return q.q.Fail(i, text, at)
}

// Skip ends a task without a failure, and skips what depends on it.
func (q *Queue) Skip(id task.ID, reason string, at time.Time) error {
	i, err := q.find(id)
	if err != nil {
		return err
	}
	return q.q.Skip(i, reason, at)
}

// SkipRemaining skips every task that has not ended, for one reason. Without a reason
// it is `Skipped: approval rejected.`.
func (q *Queue) SkipRemaining(reason string, at time.Time) {
	q.q.SkipRemaining(func(int) string { return reason }, at)
}

// Next returns the first pending task of an agent, in the order in which tasks came.
// Without an assignee it is the first pending task that has none, or else the first
// pending task. The caller starts it.
func (q *Queue) Next(assignee string) (task.Task, bool) {
	first := -1
	for i := range q.q.Pending() {
		if t := q.q.Task(i); t.Assignee == assignee {
			return t, true
		}
		if first < 0 {
			first = i
		}
	}
	if assignee != "" || first < 0 {
		return task.Task{}, false
	}
	return q.q.Task(first), true
}

// Get returns a task in its current state: with its status and the time of its last
// change.
func (q *Queue) Get(id task.ID) (task.Task, bool) {
	i, ok := q.q.Index(id)
	if !ok {
		return task.Task{}, false
	}
	return q.q.Task(i), true
}

// Result returns the result of a completed task, if it has one.
func (q *Queue) Result(id task.ID) (*envelope.Envelope, bool) {
	i, ok := q.q.Index(id)
	if !ok {
		return nil, false
	}
	return q.q.Result(i)
}

// Reason returns why a task failed or was skipped: the text that it was ended with, or
// `Cancelled: dependency "<id>" failed.` with the dependency through which it came.
func (q *Queue) Reason(id task.ID) string {
	i, ok := q.q.Index(id)
	if !ok {
		return ""
	}
	return q.q.Reason(i)
}

// List returns the tasks of some statuses, or without any all tasks, in the order in
// which they came.
func (q *Queue) List(statuses ...task.Status) []task.Task {
	var list []task.Task
	for i := range q.q.Len() {
		if len(statuses) == 0 || slices.Contains(statuses, q.q.Status(i)) {
			list = append(list, q.q.Task(i))
		}
	}
	return list
}

// IsComplete reports whether every task has ended. An empty queue is complete.
func (q *Queue) IsComplete() bool { return q.q.IsComplete() }

// Progress returns how many tasks have each status.
func (q *Queue) Progress() map[task.Status]int {
	counts := map[task.Status]int{}
	for _, s := range [...]task.Status{task.Pending, task.Blocked, task.InProgress, task.Completed, task.Failed, task.Skipped, task.NotNeeded} {
		counts[s] = q.q.Count(s)
	}
	return counts
}

// On calls fn for every event of one kind from now on, with the task as it stood then.
// The returned function cancels the subscription. The events are "task:ready",
// "task:complete", "task:failed", "task:skipped", "task:not_needed", and "all:complete", which comes once,
// with an empty task, when the last task has ended; adding a task that has not ended makes
// it possible again.
//
// Handlers run within the call that caused the event, after it has changed the whole
// state. A handler may call the queue; the events that it causes are delivered after
// those that wait already.
func (q *Queue) On(event string, fn func(task.Task)) (cancel func()) {
	return q.q.On(readyqueue.Event(event), fn)
}

func (q *Queue) find(id task.ID) (int, error) {
	if q == nil {
		return 0, fmt.Errorf("%w %q: the queue is nil", task.ErrUnknown, id)
	}
	i, ok := q.q.Index(id)
	if !ok {
		return 0, fmt.Errorf("%w %q", task.ErrUnknown, id)
	}
	return i, nil
}
