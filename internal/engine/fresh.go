package engine

import (
	"strconv"

	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/task"
)

// markFresh finds the tasks whose cached answers are not used.
func (r *runScope) markFresh(p *plan.Plan) {
	for _, name := range r.options.Fresh {
		known := false
		for i := range p.Graph.Len() {
			if t := p.Graph.Task(i); plan.Named(&t.Spec, name) {
				if known = true; r.fresh == nil {
					r.fresh = map[task.ID]bool{}
				}
				r.fresh[t.ID] = true
			}
		}
		if !known { // the tasks of a goal were not known before the run
			r.warn("no planned task is called " + strconv.Quote(name) + ", which is listed to be run again")
		}
	}
}
