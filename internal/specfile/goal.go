package specfile

import (
	"strings"

	"github.com/runteam/runteam/internal/engine"
)

// A goalReader reads the goal, and the coordinator that plans and answers it.
type goalReader struct{ *reader }

// readGoal reads what the team is asked for: of --goal, else the file's own.
// Beside tasks it is what their results answer.
func (r goalReader) readGoal() {
	defer func() { r.subject = nil }()
	n := r.places.main.spec.own("goal")
	if r.o.Goal != "" {
		r.file.Goal = r.goalOfFlag(n)
		r.dropTasks()
		return
	}
	if n == nil {
		return
	}
	g := r.goal(n)
	if r.places.goal = n; len(r.file.Tasks) > 0 {
		r.file.Run.Answer = g
	} else {
		r.file.Goal = g
	}
}

// goal reads a text, or a mapping with a text or a file.
func (r goalReader) goal(n *node) *engine.Goal {
	g := &engine.Goal{Origin: origin(n.src, n.at)}
	if n.is == isText {
		g.Text, g.Params = r.fill("goal", n)
		r.holds(n, g.Classification)
		return g
	}
	r.subject = func() string { return "goal: " }
	f := r.fields(n, goalPlace, nil)
	g.Classification = level(f.own("classification"))
	switch inline, file := f.own("text"), f.own("file"); {
	case inline != nil:
		if file != nil {
			r.bad(inline, "keep one of them", "text: file says it too")
		}
		g.Text, g.Params = r.fill("text", inline)
	case file != nil:
		g.Text, g.Params = r.fill("file", n)
	case n.get("text") == nil && n.get("file") == nil:
		r.bad(n, "write {text: …} or {file: PATH}", "it has no text")
	}
	r.holds(n, g.Classification)
	return g
}

// goalOfFlag is the goal of --goal. The label of the file's own stays.
func (r goalReader) goalOfFlag(n *node) *engine.Goal {
	g := &engine.Goal{}
	if n != nil && n.is == isObject {
		r.subject = func() string { return "goal: " }
		g.Classification = level(r.fields(n, goalPlace, nil).own("classification"))
		r.subject = nil
		r.holds(n.get("text"), g.Classification) // it stands in the file all the same
	}
	if strings.TrimSpace(r.o.Goal) == "" {
		r.badOption("Goal", ErrInvalid, "say what the team is to find out or to make", ": it is empty")
		return g
	}
	g.Text, g.Params = r.fillText(r.o.called("Goal"), r.o.Goal, func(int) (*source, int) { return nil, 0 })
	return g
}

// dropTasks leaves out the tasks of a file for which --goal asks for a plan.
func (r goalReader) dropTasks() {
	if len(r.file.Tasks) > 0 {
		n := r.places.taskList
		goal := r.o.called("Goal")
		r.warn(n, "leave "+goal+" out to run them", "tasks: not run: the coordinator plans tasks for %s", goal)
	}
	r.file.Tasks, r.places.tasks, r.places.taskList = nil, nil, nil
}
