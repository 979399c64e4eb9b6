package progress

import (
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// Instances are the tasks in rounds of loops, and those for items of lists. They have a row, and
// count, when they start or end: most of those that may run never do.
type instances struct {
	written map[string]int   // the positions of their tasks in the plan, by the title as written
	leftOut map[task.ID]bool // those that do not run
}

// newInstances returns the instances of a plan.
func newInstances(plan *engine.Plan) instances {
	n := instances{written: map[string]int{}, leftOut: map[task.ID]bool{}}
	for i := range plan.Tasks {
		if t := &plan.Tasks[i]; t.Rounds > 0 && !t.Loop {
			n.written[t.Title] = i
		}
	}
	return n
}

// position returns the position in the plan of the task that an event is about an instance of.
func (n *instances) position(e event.Event) (int, bool) {
	i, is := n.written[naming.WithoutInstance(e.Title)]
	return i, is && !ofCoordinator(e)
}

// isLeftOut reports whether an event is about an instance that does not run, since there is no such
// round or item, or because of one.
func (n *instances) isLeftOut(e event.Event) bool {
	if _, is := n.position(e); e.Type != event.TaskNotNeeded || !is {
		return false
	}
	if e.Root == "" && e.Message == engine.WhyLeftOut || n.leftOut[e.Root] {
		n.leftOut[e.Task] = true
	}
	return n.leftOut[e.Task]
}
