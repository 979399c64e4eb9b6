package team

import (
	"cmp"
	"slices"

	"github.com/runteam/runteam/task"
)

// schedule is the order in which the tasks of a run are repeated, one after
// another: that in which they ended. What a task found in the shared memory
// stood there by then, and of two failures the first is the reason for a third.
type schedule struct {
	order []int // what has not begun
}

// repeat plans the order of a run that repeats another one.
func (r *run) repeat() {
	if !r.repeats() || r.past == nil || !r.past.strict && !r.timely() {
		return
	}
	r.schedule = &schedule{}
	for i := range r.tasks {
		if b := r.past.before(r.plan.Graph.Task(i).ID); b != nil && b.place > 0 {
			r.schedule.order = append(r.schedule.order, i)
		}
	}
	place := func(i int) int { return r.past.before(r.plan.Graph.Task(i).ID).place }
	slices.SortFunc(r.schedule.order, func(i, k int) int { return cmp.Compare(place(i), place(k)) })
}

// timely reports whether what a task is given depends on when it begins.
func (r *run) timely() bool { return r.plan.ReadsMemory() || len(r.options.Messages) > 0 }

// next returns the task to begin next, while so many run.
func (r *run) next(running int) (i int, ok bool) {
	s := r.schedule
	if s == nil {
		return r.queue.NextReady()
	}
	if running == 0 { // after a resume what was kept may stand before what it depends on
		if k := slices.IndexFunc(s.order, func(i int) bool { return r.queue.Status(i) == task.Pending }); k >= 0 {
			i := s.order[k]
			s.order = slices.Delete(s.order, k, k+1)
			return i, true
		}
	}
	if running > 0 || r.past.strict {
		return 0, false
	}
	return r.queue.NextReady()
}
