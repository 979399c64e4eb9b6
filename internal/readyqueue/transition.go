package readyqueue

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/task"
)

// Start marks a pending task as running.
func (q *Queue) Start(i int, at time.Time) error {
	if err := q.check(i, running); err != nil {
		return err
	}
	q.order.start(i)
	q.set(i, running, at)
	q.events.deliver()
	return nil
}

// Complete ends a running task with its result, which may be nil, and makes
// every dependent ready that waited for nothing else. A result that names
// another task is refused with [ErrResult].
func (q *Queue) Complete(i int, result *envelope.Envelope, at time.Time) error {
	if err := q.check(i, completed); err != nil {
		return err
	}
	t := q.tasks.at(i)
	if q.states[i].waiting {
		return fmt.Errorf("complete task %q: %w", t.Title, ErrWaiting)
	}
	if result != nil {
		if of := result.Task(); of != "" && of != t.ID && (t.Instance == nil || !t.Instance.Joins) {
			return fmt.Errorf("complete task %q: %w: %q", t.Title, ErrResult, of)
		}
	}
	q.results[i] = result
	q.set(i, completed, at)
	q.order.remove(i)
	q.emit(Completed, i)
	q.endFollowers(int32(i), completed, at)
	q.finish()
	return nil
}

// Fail ends a task that is not terminal yet, and with it every task that
// depends on it, directly or not, unless a dependency on the way is optional.
func (q *Queue) Fail(i int, text string, at time.Time) error { return q.end(i, failed, text, at) }

// Skip ends a task without a failure, and skips what depends on it as
// [Queue.Fail] would fail it.
func (q *Queue) Skip(i int, reason string, at time.Time) error { return q.end(i, skipped, reason, at) }

// Omit ends a task that has not started and is not needed. Tasks that depend on it are not needed
// either, once all their dependencies have ended: one that fails counts before one that is not needed.
func (q *Queue) Omit(i int, reason string, at time.Time) error {
	return q.end(i, notNeeded, reason, at)
}

// Follow ends a task that has not started as its dependency j has ended, which did not complete.
func (q *Queue) Follow(i, j int, at time.Time) error {
	how := q.states[j].status
	if how < failed {
		return q.illegal(j, statuses[failed])
	}
	if err := q.check(i, how); err != nil {
		return err
	}
	q.close(i, how, end{root: q.ends[j].root, via: int32(j)}, at)
	q.endFollowers(int32(i), how, at)
	q.finish()
	return nil
}

// SkipRemaining skips every task that is not terminal yet, also those that
// run, for the reason that reason returns for it; an empty one means that an approval was
// rejected.
func (q *Queue) SkipRemaining(reason func(i int) string, at time.Time) {
	for i := range q.states {
		if !q.states[i].status.terminal() {
			text := cmp.Or(reason(i), "Skipped: approval rejected.")
			q.close(i, skipped, end{text: text, root: int32(i), via: none}, at)
		}
	}
	q.finish()
}

// Retry takes a running task out of its slot until [Queue.Requeue]. It stays
// in progress, since its next attempt is sure.
func (q *Queue) Retry(i int, at time.Time) error {
	if err := q.has(i); err != nil {
		return err
	}
	s := &q.states[i]
	switch {
	case s.status != running:
		return q.illegal(i, task.InProgress)
	case s.waiting:
		return fmt.Errorf("retry task %q: %w", q.tasks.at(i).Title, ErrWaiting)
	}
	s.waiting, s.updated = true, at
	q.order.remove(i)
	return nil
}

// Continue puts a running task back into a slot that [Queue.Retry] took it out of, whatever the
// limit of its agent.
func Continue(q *Queue, i int, at time.Time) error {
	if err := q.has(i); err != nil {
		return err
	}
	s := &q.states[i]
	if s.status != running || !s.waiting {
		return q.illegal(i, task.InProgress)
	}
	s.waiting, s.updated = false, at
	q.order.start(i)
	return nil
}

// Requeue makes a task ready again that waits for its retry, runs, or was
// handed out by [Queue.Next] and not started.
func (q *Queue) Requeue(i int, at time.Time) error {
	if err := q.has(i); err != nil {
		return err
	}
	if q.states[i].status != running && !q.order.isTaken(i) {
		return q.illegal(i, task.Pending)
	}
	q.order.remove(i)
	q.set(i, pending, at)
	q.ready(i)
	q.events.deliver()
	return nil
}

// ready puts a pending task into the schedule.
func (q *Queue) ready(i int) {
	q.order.push(i)
	q.emit(Ready, i)
}

// settle counts one dependency of task j as ended. After the last one j is ready, unless it is not
// needed because of the dependency that settle returns.
func (q *Queue) settle(j int, at time.Time) (notNeeded int32) {
	s := &q.states[j]
	if s.open--; s.open > 0 || s.status != blocked {
		return none
	}
	via := q.omitted(j)
	if via == none {
		q.set(j, pending, at)
		q.ready(j)
	}
	return via
}

// end ends a task as failed or skipped, and what depends on it.
func (q *Queue) end(i int, how status, text string, at time.Time) error {
	if err := q.check(i, how); err != nil {
		return err
	}
	q.close(i, how, end{text: text, root: int32(i), via: none}, at)
	q.endFollowers(int32(i), how, at)
	q.finish()
	return nil
}

// close ends one task.
func (q *Queue) close(i int, how status, why end, at time.Time) {
	if q.ends == nil {
		q.ends = make([]end, len(q.states), cap(q.states))
	}
	q.ends[i] = why
	q.set(i, how, at)
	q.order.remove(i)
	q.emit([...]Event{failed: Failed, skipped: Skipped, notNeeded: NotNeeded}[how], i)
}

// A step of a cascade ends a task because of one of its dependencies.
type step struct {
	task, via int32
	how       status
}

// endFollowers ends what a task that has ended in some way keeps from running, directly or not. It
// visits depth first, the dependents of each task in their order, as a recursion would; the
// stack is its own, since a chain of a hundred thousand tasks is a depth of that many.
func (q *Queue) endFollowers(of int32, how status, at time.Time) {
	stack := pushFollowers(q, nil, of, how, at)
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if q.states[s.task].status.terminal() {
			continue // reached on another way meanwhile
		}
		q.close(int(s.task), s.how, end{root: q.ends[s.via].root, via: s.via}, at)
		stack = pushFollowers(q, stack, s.task, s.how, at)
	}
}

// pushFollowers pushes the dependents that end because task i has ended, the first on top, and
// makes those ready that have waited for it alone. A failed or skipped task ends its dependents
// at once; whether one is not needed is known when all its dependencies have ended.
func pushFollowers(q *Queue, stack []step, i int32, how status, at time.Time) []step {
	start := len(stack)
	q.tasks.eachDownstream(int(i), func(j int32, optional bool) {
		switch {
		case optional || how == completed || how == notNeeded:
			if via := q.settle(int(j), at); via != none {
				stack = append(stack, step{j, via, notNeeded})
			}
		case q.states[j].status == pending || q.states[j].status == blocked:
			stack = append(stack, step{j, i, how})
		}
	})
	slices.Reverse(stack[start:])
	return stack
}

// emit notes an event of task i for its subscribers.
func (q *Queue) emit(event Event, i int) {
	if q.events.wants(event) {
		q.events.note(event, q.Task(i))
	}
}

// finish notes the end of all tasks, once, and delivers what was noted.
func (q *Queue) finish() {
	if !q.events.over && q.IsComplete() {
		q.events.over = true
		if q.events.wants(AllComplete) {
			q.events.note(AllComplete, task.Task{})
		}
	}
	q.events.deliver()
}
