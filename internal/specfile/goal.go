package specfile

import (
	"strings"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/provenance"
)

// readGoal reads the goal of the options, or else of the file. In a file with tasks, their
// results answer it.
func (r *reader) readGoal() {
	defer func() { r.subject = nil }()
	n := r.places.main.spec.own("goal")
	if r.o.Goal != "" {
		r.file.Goal = r.optionGoal(n)
		r.dropTasksForGoal()
		return
	}
	if n == nil {
		return
	}
	g := r.goalOf(n)
	if r.places.goal = n; len(r.file.Tasks) > 0 {
		r.file.Run.Answer = g
	} else {
		r.file.Goal = g
	}
}

// goalOf reads a text, or a mapping with a text or a file.
func (r *reader) goalOf(n *node) *engine.Goal {
	g := &engine.Goal{Source: provenance.Source{Origin: n.origin()}}
	if n.is == isText {
		g.Text, g.Source.Params = r.fill("goal", n)
		r.raiseLabel(n, g.Classification)
		return g
	}
	r.subject = func() string { return "goal: " }
	f := r.fields(n, "goal", nil)
	g.Classification = level(f.own("classification"))
	switch inline, file := f.own("text"), f.own("file"); {
	case inline != nil:
		if file != nil {
			r.bad(inline, "keep one of them", "text: file is set too")
		}
		g.Text, g.Source.Params = r.fill("text", inline)
	case file != nil:
		g.Text, g.Source.Params = r.fill("file", n)
	case n.get("text") == nil && n.get("file") == nil:
		r.bad(n, "write {text: …} or {file: PATH}", "it has no text")
	}
	r.raiseLabel(n, g.Classification)
	return g
}

// optionGoal reads the goal of the options. It has the label of the file's goal.
func (r *reader) optionGoal(n *node) *engine.Goal {
	g := &engine.Goal{}
	if n != nil && n.is == isObject {
		r.subject = func() string { return "goal: " }
		g.Classification = level(r.fields(n, "goal", nil).own("classification"))
		r.subject = nil
		r.raiseLabel(n.get("text"), g.Classification) // the file contains it nevertheless
	}
	if strings.TrimSpace(r.o.Goal) == "" {
		r.badOption("Goal", ErrInvalid, "describe what the team should find out or produce", ": it is empty")
		return g
	}
	g.Text, g.Source.Params = r.fillText(r.o.called("Goal"), r.o.Goal, func(int) (*source, int) { return nil, 0 })
	return g
}

// dropTasksForGoal removes the tasks of a file if the options have a goal to plan.
func (r *reader) dropTasksForGoal() {
	if len(r.file.Tasks) > 0 {
		n := r.places.taskList
		goal := r.o.called("Goal")
		r.warn(n, "leave "+goal+" out to run them", "tasks: not run: the coordinator plans tasks for %s", goal)
	}
	r.dropTasks()
}
