package queue

import (
	"fmt"
	"time"
)

// Texts of a cascade, with the id of the direct dependency.
const (
	failedText  = "Cancelled: dependency %q failed."
	skippedText = "Skipped: dependency %q was skipped."
)

// end ends a task as failed or skipped, and what depends on it.
func (q *Queue) end(i int, how state, text string, at time.Time) error {
	if err := q.check(i, how); err != nil {
		return err
	}
	q.close(i, how, end{text: text, root: int32(i), via: none}, at)
	q.cascade(int32(i), int32(i), how, at)
	q.finish()
	return nil
}

// close ends one task.
func (q *Queue) close(i int, how state, why end, at time.Time) {
	if q.ends == nil {
		q.ends = make([]end, len(q.tasks), cap(q.tasks))
	}
	q.ends[i] = why
	q.tasks[i].flags &^= queued | taken | waiting
	q.set(i, how, at)
	q.release(i)
	if how == failed {
		q.emit(Failed, i)
	} else {
		q.emit(Skipped, i)
	}
}

// cascade ends every transitive dependent of a task that has ended, over
// dependencies that are not optional, and settles the optional ones; root is
// the task that it all started from. It visits depth first, the
// dependents of each task in their order, as a recursion would; the stack is
// its own, since a chain of a hundred thousand tasks is a depth of that many.
func (q *Queue) cascade(first, root int32, how state, at time.Time) {
	type step struct{ task, via int32 }
	var stack []step
	visit := func(i int32) {
		start := len(stack)
		q.eachDownstream(int(i), func(j int32, optional bool) {
			switch {
			case optional:
				q.settle(j, at)
			case q.tasks[j].state == pending || q.tasks[j].state == blocked:
				stack = append(stack, step{j, i})
			}
		})
		for a, b := start, len(stack)-1; a < b; a, b = a+1, b-1 { // first on top
			stack[a], stack[b] = stack[b], stack[a]
		}
	}
	visit(first)
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if q.tasks[s.task].state.terminal() {
			continue // reached on another way meanwhile
		}
		q.close(int(s.task), how, end{root: root, via: s.via}, at)
		visit(s.task)
	}
}

// text returns why a task failed or was skipped.
func (q *Queue) text(i int) string {
	why := q.ends[i]
	switch {
	case why.via < 0:
		return why.text
	case q.tasks[i].state == failed:
		return fmt.Sprintf(failedText, q.def(int(why.via)).ID)
	default:
		return fmt.Sprintf(skippedText, q.def(int(why.via)).ID)
	}
}

// eachDownstream calls fn for every direct dependent of a task, in the order
// of their indexes.
func (q *Queue) eachDownstream(i int, fn func(j int32, optional bool)) {
	if i < q.base() {
		optional := q.g.OptionalDownstream(i)
		for k, j := range q.g.Downstream(i) {
			fn(j, optional != nil && optional[k])
		}
	}
	for _, l := range q.down[int32(i)] {
		fn(l.task, l.optional)
	}
}
