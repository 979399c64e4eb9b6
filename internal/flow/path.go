package flow

import (
	"strings"

	"github.com/runteam/runteam/handoff"
)

// A Path is a way of a source to a reader: the source, the tasks that it
// passes, in order, and the reader. Where a reader sees it outside any task,
// there may be no task between.
type Path []Step

// A Step is one stop on a way, and what brings it there.
type Step struct {
	Kind  string       `json:"kind"`  // the source's kind (such as input), "task", or the reader's kind
	Name  string       `json:"name"`  // of the source or the reader, or the task's title
	Index int          `json:"index"` // into the sources, the tasks or the readers of the graph
	Rule  handoff.Rule `json:"rule,omitempty"`
	Line  string       `json:"line,omitempty"`
	Note  string       `json:"note,omitempty"`
}

// String names the stop for people, such as `task "Score fraud"`.
func (s Step) String() string {
	switch s.Kind {
	case Agent.String(), Coordinator.String(), User.String(), Endpoint.String():
		return s.Name
	case string(handoff.Dependency):
		return `result of "` + s.Name + `"`
	case string(handoff.Fault):
		return `error of "` + s.Name + `"`
	}
	if s.Name == "" {
		return s.Kind // there is one goal
	}
	return s.Kind + ` "` + s.Name + `"`
}

// String writes the stops in a row, with arrows between. Names stand as they
// are; a printer escapes them for where it prints.
func (p Path) String() string {
	stops := make([]string, len(p))
	for i, s := range p {
		stops[i] = s.String()
	}
	return strings.Join(stops, " → ")
}

// Tasks returns the indexes of the tasks on the way.
func (p Path) Tasks() []int {
	var out []int
	for i := 1; i < len(p)-1; i++ {
		out = append(out, p[i].Index)
	}
	return out
}

func (w *ways) sourceStep(i int) Step {
	s := &w.g.Sources[i]
	return Step{Kind: string(s.Kind), Name: s.Name, Index: i}
}

func (w *ways) readerStep(i int) Step {
	r := &w.g.Readers[i]
	return Step{Kind: r.Kind.String(), Name: r.Name, Index: i}
}

// sightStep is a reader who is shown something.
func (w *ways) sightStep(i int32) Step {
	s, step := &w.g.Sights[i], w.readerStep(w.g.Sights[i].Reader)
	step.Rule, step.Line, step.Note = s.Rule, s.Line, s.Note
	return step
}

// edgeStep is a task that is delivered something.
func (w *ways) edgeStep(i int32) Step {
	e := &w.g.Edges[i]
	return Step{Kind: taskStep, Name: w.g.Tasks[e.Task].Title, Index: e.Task, Rule: e.Rule, Line: e.Line, Note: e.Note}
}

// writerStep is a task that wrote the source before it.
func (w *ways) writerStep(i int) Step {
	return Step{Kind: taskStep, Name: w.g.Tasks[i].Title, Index: i, Note: wrote}
}

const (
	taskStep = "task"
	wrote    = "writes it"
)
