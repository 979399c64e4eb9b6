package readyqueue

import (
	"fmt"
	"time"

	"github.com/runteam/runteam/task"
)

// Reopen takes back the end of a task that failed or was skipped by itself, and of every task that
// ended because of it. It returns these tasks, each of which is pending or blocked again. If a task
// has begun without the missing result, which was optional for it, nothing changes and the error
// wraps [ErrTransition].
func Reopen(q *Queue, i int, at time.Time) (again []int, err error) {
	again, waits, err := reopens(q, i)
	if err != nil {
		return nil, err
	}
	for _, k := range again {
		q.set(k, blocked, at)
	}
	for j := range waits {
		q.order.remove(j)
		q.set(j, blocked, at)
		q.states[j].open = q.openUpstream(j)
	}
	q.events.over = false
	for _, k := range again {
		if q.states[k].open = q.openUpstream(k); q.states[k].open == 0 {
			q.set(k, pending, at)
			q.ready(k)
		}
	}
	q.events.deliver()
	return again, nil
}

// CanReopen returns the error of [Reopen], and changes nothing.
func CanReopen(q *Queue, i int) error {
	_, _, err := reopens(q, i)
	return err
}

// reopens returns the tasks whose end [Reopen] takes back, and those that wait for them again.
func reopens(q *Queue, i int) (again []int, waits map[int]bool, err error) {
	if err := q.has(i); err != nil {
		return nil, nil, err
	}
	if s := q.states[i].status; s != failed && s != skipped || q.ends[i].via != none {
		return nil, nil, q.illegal(i, task.Pending)
	}
	isAgain := map[int]bool{}
	for k := range q.states {
		if s := q.states[k].status; (s == failed || s == skipped) && int(q.ends[k].root) == i {
			isAgain[k], again = true, append(again, k)
		}
	}
	waits = map[int]bool{}
	for _, k := range again {
		q.tasks.eachDownstream(k, func(j int32, _ bool) {
			switch s := q.states[j].status; {
			case isAgain[int(j)]:
			case s == pending || s == blocked:
				waits[int(j)] = true
			default:
				err = fmt.Errorf("task %q: %w: %q has begun without its result", q.tasks.at(i).Title, ErrTransition, q.tasks.at(int(j)).Title)
			}
		})
	}
	return again, waits, err
}

// openUpstream counts the dependencies of a task that have not ended.
func (b *board) openUpstream(i int) (n int32) {
	if i >= b.tasks.base() {
		return b.unfinished(b.tasks.at(i))
	}
	for _, j := range b.tasks.g.Upstream(i) {
		if !b.states[j].status.terminal() {
			n++
		}
	}
	return n
}
