package engine

import (
	"strconv"

	"github.com/runteam/runteam/task"
)

// markFresh finds the tasks whose cached answers are not used.
func (r *results) markFresh() {
	for _, name := range r.options.Fresh {
		known := false
		for i := range r.plan.Written {
			if r.plan.Written[i].Named(name) {
				if known = true; r.fresh == nil {
					r.fresh = map[task.ID]bool{}
				}
				r.fresh[r.plan.Graph.Task(i).ID] = true
			}
		}
		if !known { // of a goal, whose tasks nobody knew before
			r.warn("no planned task is called " + strconv.Quote(name) + ", which was to be run anew")
		}
	}
}
