package flow

import (
	"strings"

	"github.com/runteam/runteam/handoff"
)

// A Path leads from a source to a reader: the source, the tasks between, in order,
// and the reader. There may be no task, if the reader reads outside of any.
type Path []Step

// A Step is a source, task or reader on a path, and the rule that leads to it.
type Step struct {
	Kind  string       `json:"kind"`  // the source's kind (such as input), "task", or the reader's kind
	Name  string       `json:"name"`  // of the source or the reader, or the task's title
	Index int          `json:"index"` // into the sources, the tasks or the readers of the graph
	Rule  handoff.Rule `json:"rule,omitempty"`
	Line  string       `json:"line,omitempty"`
	Note  string       `json:"note,omitempty"`
}

// String names the step, such as `task "Score fraud"`.
func (s Step) String() string {
	switch s.Kind {
	case Agent.String(), Coordinator.String(), User.String(), Endpoint.String(), Tool.String(), string(handoff.ToolResult):
		return s.Name
	case string(handoff.Dependency):
		return `result of "` + s.Name + `"`
	case string(handoff.Fault):
		return `error of "` + s.Name + `"`
	}
	if s.Name == "" {
		return s.Kind // a run has one goal
	}
	return s.Kind + ` "` + s.Name + `"`
}

// String writes the steps with arrows between. Names are not escaped.
func (p Path) String() string {
	stops := make([]string, len(p))
	for i, s := range p {
		stops[i] = s.String()
	}
	return strings.Join(stops, " → ")
}

// Tasks returns the indexes of the tasks on the path.
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

// sightStep is a reader that is shown something.
func (w *ways) sightStep(i int32) Step {
	s, step := &w.g.Sights[i], w.readerStep(w.g.Sights[i].Reader)
	step.Rule, step.Line, step.Note = s.Rule, s.Line, s.Note
	return step
}

// edgeStep is a task to which something is delivered.
func (w *ways) edgeStep(i int32) Step {
	e := &w.g.Edges[i]
	return Step{Kind: taskStep, Name: w.g.Tasks[e.Task].Title, Index: e.Task, Rule: e.Rule, Line: e.Line, Note: e.Note}
}

// writerStep is a task that wrote the source before it.
func (w *ways) writerStep(i int) Step {
	return Step{Kind: taskStep, Name: w.g.Tasks[i].Title, Index: i, Note: writesIt}
}

const (
	taskStep = "task"
	writesIt = "writes it"
)
