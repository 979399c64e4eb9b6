package queue

import (
	"fmt"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/task"
)

// DefaultReason is why [Queue.SkipRemaining] skips when it is not told.
const DefaultReason = "Skipped: approval rejected."

// Start marks a pending task as running.
func (q *Queue) Start(id task.ID, at time.Time) error {
	i, err := q.find(id, "start")
	if err != nil {
		return err
	}
	return q.StartIndex(i, at)
}

// StartIndex is [Queue.Start] by index.
func (q *Queue) StartIndex(i int, at time.Time) error {
	if err := q.check(i, running); err != nil {
		return err
	}
	e := &q.tasks[i]
	e.flags &^= queued | taken
	q.hold(i)
	q.set(i, running, at)
	q.deliver()
	return nil
}

// Complete ends a running task with its result, which may be nil, and makes
// every dependent ready that waited for nothing else. A result that names
// another task is refused with [ErrResult].
func (q *Queue) Complete(id task.ID, result *envelope.Envelope, at time.Time) error {
	i, err := q.find(id, "complete")
	if err != nil {
		return err
	}
	return q.CompleteIndex(i, result, at)
}

// CompleteIndex is [Queue.Complete] by index.
func (q *Queue) CompleteIndex(i int, result *envelope.Envelope, at time.Time) error {
	if err := q.check(i, completed); err != nil {
		return err
	}
	if q.tasks[i].flags&waiting != 0 {
		return fmt.Errorf("complete task %q: %w", q.def(i).Title, ErrWaiting)
	}
	if result != nil && result.Task() != "" && result.Task() != q.def(i).ID {
		return fmt.Errorf("complete task %q: %w: %q", q.def(i).Title, ErrResult, result.Task())
	}
	q.results[i] = result
	q.set(i, completed, at)
	q.release(i)
	q.emit(Completed, i)
	q.eachDownstream(i, func(j int32, _ bool) { q.settle(j, at) })
	q.finish()
	return nil
}

// Fail ends a task that is not terminal yet, and with it every task that
// depends on it, directly or not, unless a dependency on the way is optional.
func (q *Queue) Fail(id task.ID, text string, at time.Time) error {
	i, err := q.find(id, "fail")
	if err != nil {
		return err
	}
	return q.FailIndex(i, text, at)
}

// FailIndex is [Queue.Fail] by index.
func (q *Queue) FailIndex(i int, text string, at time.Time) error {
	return q.end(i, failed, text, at)
}

// Skip ends a task without a failure, and skips what depends on it as
// [Queue.Fail] would fail it.
func (q *Queue) Skip(id task.ID, reason string, at time.Time) error {
	i, err := q.find(id, "skip")
	if err != nil {
		return err
	}
	return q.SkipIndex(i, reason, at)
}

// SkipIndex is [Queue.Skip] by index.
func (q *Queue) SkipIndex(i int, reason string, at time.Time) error {
	return q.end(i, skipped, reason, at)
}

// SkipRemaining skips every task that is not terminal yet, also those that
// run, for one reason; an empty one means [DefaultReason].
func (q *Queue) SkipRemaining(reason string, at time.Time) {
	if reason == "" {
		reason = DefaultReason
	}
	for i := range q.tasks {
		if !q.tasks[i].state.terminal() {
			q.close(i, skipped, end{text: reason, root: int32(i), via: none}, at)
		}
	}
	q.finish()
}

// Retry takes a running task out of its slot until [Queue.Requeue]. It stays
// in progress, since its next attempt is sure.
func (q *Queue) Retry(id task.ID, at time.Time) error {
	i, err := q.find(id, "retry")
	if err != nil {
		return err
	}
	return q.RetryIndex(i, at)
}

// RetryIndex is [Queue.Retry] by index.
func (q *Queue) RetryIndex(i int, at time.Time) error {
	if err := q.has(i); err != nil {
		return err
	}
	e := &q.tasks[i]
	switch {
	case e.state != running:
		return q.illegal(i, task.InProgress)
	case e.flags&waiting != 0:
		return fmt.Errorf("retry task %q: %w", q.def(i).Title, ErrWaiting)
	}
	e.flags |= waiting
	e.updated = at
	q.release(i)
	return nil
}

// Requeue makes a task ready again that waits for its retry, runs, or was
// handed out by [Queue.NextReady] and not started.
func (q *Queue) Requeue(id task.ID, at time.Time) error {
	i, err := q.find(id, "requeue")
	if err != nil {
		return err
	}
	return q.RequeueIndex(i, at)
}

// RequeueIndex is [Queue.Requeue] by index.
func (q *Queue) RequeueIndex(i int, at time.Time) error {
	if err := q.has(i); err != nil {
		return err
	}
	e := &q.tasks[i]
	if e.state != running && e.flags&taken == 0 {
		return q.illegal(i, task.Pending)
	}
	e.flags &^= waiting | taken
	q.release(i)
	q.set(i, pending, at)
	q.ready(i)
	q.deliver()
	return nil
}

// check reports whether a task may become next.
func (q *Queue) check(i int, next state) error {
	if err := q.has(i); err != nil {
		return err
	}
	if legal[q.tasks[i].state]&(1<<next) == 0 {
		return q.illegal(i, statuses[next])
	}
	return nil
}

// has returns an error for an index of no task, and for a nil queue.
func (q *Queue) has(i int) error {
	if q == nil || i < 0 || i >= len(q.tasks) {
		return fmt.Errorf("task %d: %w: the queue has no such index", i, task.ErrUnknown)
	}
	return nil
}

// legal is task's table of transitions, a set of states for each state.
var legal = func() (table [len(statuses)]uint8) {
	for from := range statuses {
		for to := range statuses {
			if statuses[from].CanBecome(statuses[to]) {
				table[from] |= 1 << to
			}
		}
	}
	return table
}()

func (q *Queue) illegal(i int, to task.Status) error {
	t := q.def(i)
	return &TransitionError{Task: t.ID, Title: t.Title, From: statuses[q.tasks[i].state], To: to}
}

// set changes a status that check has allowed.
func (q *Queue) set(i int, next state, at time.Time) {
	e := &q.tasks[i]
	q.counts[e.state]--
	q.counts[next]++
	e.state, e.updated = next, at
	if next == pending {
		q.low = min(q.low, i)
	}
}

// settle counts one dependency of task j as done, and makes j ready after the last.
func (q *Queue) settle(j int32, at time.Time) {
	e := &q.tasks[j]
	if e.open--; e.open == 0 && e.state == blocked {
		q.set(int(j), pending, at)
		q.ready(int(j))
	}
}

// finish tells of the end, once, and delivers what was told.
func (q *Queue) finish() {
	if !q.over && q.IsComplete() {
		q.over = true
		q.emit(AllComplete, int(none))
	}
	q.deliver()
}
