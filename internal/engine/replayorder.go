package engine

import (
	"cmp"
	"slices"

	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/task"
)

// A replayOrder is the order in which a replay repeats the tasks of its run, one
// at a time: the order in which they ended. A task then finds the same entries in
// the shared memory, and of two failures the same one is the reason for a third.
type replayOrder struct {
	strict bool  // only the tasks of the replayed run are started
	left   []int // tasks that have not started
}

// newReplayOrder returns the order of a run that replays another one; nil if the
// order does not matter.
func newReplayOrder(r *results) *replayOrder {
	if !r.repeats() || r.memo == nil || !r.memo.Is(memo.Strict) && !r.plan.ReadsMemory() && len(r.options.Messages) == 0 {
		return nil
	}
	o := &replayOrder{strict: r.memo.Is(memo.Strict)}
	place := func(i int) int { return r.memo.Task(r.plan.Graph.Task(i).ID).Place }
	for i := range r.tasks {
		if b := r.memo.Task(r.plan.Graph.Task(i).ID); b != nil && b.Place > 0 {
			o.left = append(o.left, i)
		}
	}
	slices.SortFunc(o.left, func(i, k int) int { return cmp.Compare(place(i), place(k)) })
	return o
}

// next returns the task to start next, while this many run.
func (o *replayOrder) next(q *readyqueue.Queue, running int) (i int, ok bool) {
	if running == 0 { // after a resume, a result may have been recorded before those that it depends on
		if k := slices.IndexFunc(o.left, func(i int) bool { return q.Status(i) == task.Pending }); k >= 0 {
			i := o.left[k]
			o.left = slices.Delete(o.left, k, k+1)
			return i, true
		}
	}
	if running > 0 || o.strict {
		return 0, false
	}
	return q.Next()
}
