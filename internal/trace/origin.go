package trace

import (
	"strings"

	"github.com/runteam/runteam/internal/brief"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/task"
)

// An Origin is where a text comes from: the first that had it without having
// been given it.
type Origin struct {
	By   string  `json:"by"`             // user, an agent, the coordinator, or runteam
	Kind Kind    `json:"kind"`           // what it is
	Name string  `json:"name"`           // title of the task, name of the input, line of the spec, name of another source
	Task task.ID `json:"task,omitempty"` // of a task

	// Unseen is how many pieces of the task's prompt are withheld here: the text
	// may have come to the task in one of them.
	Unseen int `json:"unseen,omitempty"`
}

// Kind says what a text comes from.
type Kind string

// The kinds of origins.
const (
	FromSpec    Kind = "spec"    // a title, a description or a system prompt, as it is written
	FromInput   Kind = "input"   // an input of the caller
	FromGoal    Kind = "goal"    // what the caller asked
	FromTask    Kind = "task"    // the work of a task, or of a step of the coordinator
	FromMessage Kind = "message" // a message of an agent or the caller
	FromOther   Kind = "other"   // something else that an agent or the runtime said
)

// The coordinator's step that answers.
const (
	coordinator = handoff.Coordinator
	answering   = task.ID(handoff.Coordinator + "/synthesis")
)

// origin adds an origin, once.
func (s *search) origin(o Origin) {
	same := o
	same.Unseen = 0
	if !s.from[same] {
		s.from[same] = true
		s.out.Origins = append(s.out.Origins, o)
	}
}

// work adds the work of a task, which has the text, unless its prompt had it.
func (s *search) work(id task.ID, title, agent string) {
	if saw := s.saw[id]; len(saw.found) == 0 {
		s.origin(Origin{By: agent, Kind: FromTask, Name: title, Task: id, Unseen: saw.withheld})
	}
}

// sources adds what stands behind an occurrence in a prompt, as far as the
// text begins there. A heading is a name, and the frame the builder's own.
func (s *search) sources(o *Occurrence) {
	switch o.Part {
	case brief.PartFrame, brief.PartHeading, brief.PartWithheld:
		return
	}
	for _, i := range o.Sources {
		if i < 0 {
			continue
		}
		of := &o.Prompt.Receipt.Sources[i]
		switch {
		case of.Decision != nil:
			s.source(of.Decision)
		case of.Producer == coordinator:
			s.said(FromOther, coordinator, "plan")
		default:
			s.origin(Origin{By: of.Producer, Kind: FromSpec, Name: of.Spec})
		}
	}
}

// source adds a piece of context.
func (s *search) source(d *gate.Decision) {
	switch name := d.Source.Name; d.Source.Kind {
	case handoff.Input:
		s.origin(Origin{By: d.From, Kind: FromInput, Name: name})
	case handoff.Goal:
		s.origin(Origin{By: d.From, Kind: FromGoal, Name: name})
	case handoff.Dependency:
		s.work(task.ID(name), s.trace.Title(task.ID(name)), d.From)
	case handoff.Memory:
		if id, ok := resultIn(name); ok {
			s.work(id, s.trace.Title(id), d.From)
			return
		}
		s.said(FromOther, d.From, name)
	case handoff.Message:
		s.said(FromMessage, d.From, name)
	case handoff.Plan:
		s.said(FromOther, d.From, "plan")
	default:
		s.said(FromOther, d.From, s.trace.Title(task.ID(name)))
	}
}

// said adds what somebody said, unless a prompt had told it to them.
func (s *search) said(kind Kind, by, name string) {
	if !s.told[by] {
		s.origin(Origin{By: by, Kind: kind, Name: name})
	}
}

// resultOf returns the task whose result a piece of context is; it may come as
// an entry of the shared memory.
func resultOf(d *gate.Decision) (id task.ID, ok bool) {
	switch {
	case d == nil:
	case d.Source.Kind == handoff.Dependency:
		return task.ID(d.Source.Name), true
	case d.Source.Kind == handoff.Memory:
		return resultIn(d.Source.Name)
	}
	return "", false
}

// resultIn returns the task whose result is an entry of the shared memory with
// this full key, such as "intake/task:<id>:result".
func resultIn(key string) (task.ID, bool) {
	_, key, _ = strings.Cut(key, "/")
	id, ok := strings.CutPrefix(key, "task:")
	id, whole := strings.CutSuffix(id, ":result")
	return task.ID(id), ok && whole
}
