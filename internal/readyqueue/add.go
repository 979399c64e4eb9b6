package readyqueue

import (
	"fmt"

	"github.com/runteam/runteam/task"
)

// Add appends a task. It is ready at once if its dependencies are done; it is
// blocked while one is unfinished or is not there yet; and if one has failed
// or was skipped already, it ends as it would have when that happened. IDs that
// are taken, dependencies on itself or on one task twice, cycles and tasks that
// are not pending are refused, and then nothing changes.
func (q *Queue) Add(t task.Task) error {
	if err := q.tasks.admit(&t); err != nil {
		return fmt.Errorf("add task %q: %w", t.Title, err)
	}
	i := len(q.states)
	q.tasks.add(&t)
	q.states = append(q.states, state{updated: t.UpdatedAt, status: blocked, open: q.unfinished(&t)})
	q.results = append(q.results, nil)
	if q.ends != nil {
		q.ends = append(q.ends, end{})
	}
	q.counts[blocked]++
	q.order.grow(1)
	q.order.assign(i, t.Assignee)
	q.events.over = false
	q.open(i)
	q.finish()
	return nil
}

// open gives a blocked task whose edges are known its first status: it is
// ready, or stays blocked, or ends with a dependency that has ended.
func (q *Queue) open(i int) {
	s := &q.states[i]
	ended := func(how status, via int) {
		q.close(i, how, end{root: q.ends[via].root, via: int32(via)}, s.updated)
		q.endFollowers(int32(i), how, s.updated)
	}
	if s.open == 0 {
		if via := q.omitted(i); via != none {
			ended(notNeeded, int(via))
			return
		}
		q.set(i, pending, s.updated)
		q.ready(i)
		return
	}
	for _, d := range q.tasks.at(i).DependsOn {
		j, ok := q.Index(task.ID(d.Task))
		if !ok || d.MayBeMissing() {
			continue
		}
		if how := q.states[j].status; how == failed || how == skipped {
			ended(how, j)
			return
		}
	}
}
