package trace

import (
	"github.com/runteam/runteam/internal/brief"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// An Origin is where a text comes from: a party that had it without a prompt with it.
type Origin struct {
	By   string  `json:"by"`             // user, an agent, the coordinator, or runteam
	Kind Kind    `json:"kind"`           // what it is
	Name string  `json:"name"`           // title of the task, name of the input, line of the spec, name of another source
	Task task.ID `json:"task,omitempty"` // of a task

	// Unseen is how many pieces of the task's prompt are withheld from the reader. The text
	// may have been in one of them.
	Unseen int `json:"unseen,omitempty"`
}

// Kind is the kind of an origin.
type Kind string

// The kinds of origins.
const (
	FromSpec    Kind = "spec"    // a title, a description or a system prompt of the spec
	FromInput   Kind = "input"   // an input of the caller
	FromGoal    Kind = "goal"    // the goal of the caller
	FromTask    Kind = "task"    // the work of a task, or of a step of the coordinator
	FromMessage Kind = "message" // a message of an agent or the caller
	FromOther   Kind = "other"   // another text of an agent or the runtime
)

// The step of the coordinator that answers.
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

// work adds a task whose result has the text as an origin, unless its prompt had the text.
func (s *search) work(id task.ID, title, agent string) {
	if in := s.inPrompt[id]; len(in.found) == 0 {
		s.origin(Origin{By: agent, Kind: FromTask, Name: title, Task: id, Unseen: in.withheld})
	}
}

// sources adds the sources of an occurrence in a prompt that are origins. A heading is a
// name, and the frame is the builder's own.
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
			s.statement(FromOther, coordinator, "plan")
		default:
			s.origin(Origin{By: of.Producer, Kind: FromSpec, Name: of.Spec})
		}
	}
}

// source adds the origin of a piece of context.
func (s *search) source(d *gate.Decision) {
	switch name := d.Source.Name; d.Source.Kind {
	case handoff.Input:
		s.origin(Origin{By: d.From, Kind: FromInput, Name: name})
	case handoff.Goal:
		s.origin(Origin{By: d.From, Kind: FromGoal, Name: name})
	case handoff.Dependency, handoff.Files, handoff.Folder:
		if d.From == handoff.User {
			s.origin(Origin{By: d.From, Kind: FromInput, Name: name})
			return
		}
		s.work(task.ID(name), s.trace.Title(task.ID(name)), d.From)
	case handoff.Memory:
		if id, ok := record.ResultInMemory(name); ok {
			s.work(id, s.trace.Title(id), d.From)
			return
		}
		s.statement(FromOther, d.From, name)
	case handoff.Conversation:
		if d.From == handoff.User {
			s.origin(Origin{By: d.From, Kind: FromOther, Name: name})
			return
		}
		s.statement(FromOther, d.From, name)
	case handoff.Message:
		s.statement(FromMessage, d.From, name)
	case handoff.Plan:
		s.statement(FromOther, d.From, "plan")
	default:
		s.statement(FromOther, d.From, s.trace.Title(task.ID(name)))
	}
}

// statement adds a text of an agent as an origin, unless a prompt of the agent had it.
func (s *search) statement(kind Kind, by, name string) {
	if !s.seenBy[by] {
		s.origin(Origin{By: by, Kind: kind, Name: name})
	}
}

// resultOf returns the task whose result a piece of context is, directly or as an entry of the
// shared memory.
func resultOf(d *gate.Decision) (id task.ID, ok bool) {
	switch {
	case d == nil:
	case d.Source.Kind == handoff.Dependency, d.Source.Kind == handoff.Files, d.Source.Kind == handoff.Folder && d.From != handoff.User:
		return task.ID(d.Source.Name), true
	case d.Source.Kind == handoff.Memory:
		return record.ResultInMemory(d.Source.Name)
	}
	return "", false
}
