// Package flow decides, before anything runs, who could ever see what.
//
// A [Graph] has the sources, tasks and readers of a run and the edges between
// them, each with what it delivers. Its [Table] says for every source and every
// reader whether the reader gets the source whole, in part, only as text derived
// from it, or never. [Table.Check] checks an [Assertion], such as
// "internal_notes never reaches letters", and returns a path that breaks it.
//
// The answers are about content. Dependents of a task learn that it exists, when
// it ran and how it ended even if nothing of its result is delivered; no answer
// covers that. What is unknown before the run counts as flowing: a reader counts
// as unreachable only if there is no path.
package flow

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A Graph is the input of [Graph.Table]. Sources, tasks and readers refer to each
// other by index; [Graph.Table] panics if an index is out of range. The order of
// edges and sights never matters.
//
// A turn of the coordinator is a task too. The text that it writes, a plan or the
// answer, is a source of that task. Such tasks come after those of the plan.
type Graph struct {
	Sources []Source `json:"sources"` // for a stable print: inputs, the goal, messages, then what tasks write
	Tasks   []Task   `json:"tasks"`   // those of the plan, the rounds of loops as one, then turns of the coordinator
	Readers []Reader `json:"readers"` // for a stable print: agents, coordinator, user, endpoints, tools, journal
	Edges   []Edge   `json:"edges"`
	Sights  []Sight  `json:"sights"`
}

// A Source is a piece of context: an input, the goal, a message, or something
// that a task writes. A task has one result, of kind [handoff.Dependency], and
// may write more, such as the text of its error.
type Source struct {
	Kind handoff.SourceKind `json:"kind"`
	Name string             `json:"name"` // the input's name, the task's title
	From string             `json:"from"` // who makes it
	Task int                `json:"task"` // the task that writes it; -1 if none does

	Rounds int                  `json:"rounds,omitempty"` // how often at most, in a loop; zero for once
	Label  label.Classification `json:"label"`

	// Has reports whether a value can be at a path (unescaped tokens; * is any
	// element or member), and Names whether a member of a name can be at any depth.
	// Names are compared loosely, as blocks compare them. If both are nil, the source
	// is an opaque text without paths and members. If one is nil, its answer is Maybe.
	Has   func(path []string) Answer `json:"-"`
	Names func(name string) Answer   `json:"-"`

	// Members are names of its members, in a stable order. They are optional and
	// only used in hints.
	Members []string `json:"-"`
}

// Structured reports whether the source can have paths and members.
func (s *Source) Structured() bool { return s.Has != nil || s.Names != nil }

func (s *Source) has(path []string) Answer {
	switch {
	case !s.Structured():
		return No
	case s.Has == nil:
		return Maybe
	}
	return s.Has(path)
}

func (s *Source) names(name string) Answer {
	switch {
	case !s.Structured():
		return No
	case s.Names == nil:
		return Maybe
	}
	return s.Names(name)
}

// A Task is one prompt, or a step of one. Those of agents to which the conversation of a task is transferred
// have its ID too, and come after all tasks of the plan. Each reader of the prompt reads all that is delivered to
// the task, and what the task writes derives from all of it.
type Task struct {
	ID        task.ID `json:"id,omitempty"`
	Key       string  `json:"key,omitempty"`
	Title     string  `json:"title"`
	Agent     int     `json:"agent"`               // index into Readers; [Nobody] for a step whose reader reads the same elsewhere
	Endpoints []int   `json:"endpoints,omitempty"` // other readers of its prompt, fallbacks included; may be shared between tasks
}

// Nobody is the Agent of a task that no reader reads.
const Nobody = -1

// reads reports whether a reader reads the prompt of the task.
func (t *Task) reads(reader int) bool {
	return t.Agent == reader || slices.Contains(t.Endpoints, reader)
}

// A Reader may see context.
type Reader struct {
	Kind      ReaderKind           `json:"kind"`
	Name      string               `json:"name"` // an endpoint's is its URL
	Clearance label.Classification `json:"clearance"`
}

// An Edge delivers a source to a task.
type Edge struct {
	Source     int            `json:"source"`
	Task       int            `json:"task"`
	Delivers   pick.Selection `json:"-"`                    // the delivered part
	Minimal    bool           `json:"minimal,omitempty"`    // only heading and status are delivered
	Withheld   bool           `json:"held,omitempty"`       // it is certain that nothing is delivered
	Structured bool           `json:"structured,omitempty"` // only the structured part is delivered, without the text next to it
	Rule       handoff.Rule   `json:"rule,omitempty"`
	Line       string         `json:"line,omitempty"` // location of the rule
	Note       string         `json:"note,omitempty"` // for people: "declassified by score-to-letters"
	Lowers     *Lowering      `json:"lowers,omitempty"`

	// Copied says that another source is delivered, of which this one is a copy. It is a way of
	// this source, and not of what the task that writes the copy has read.
	Copied bool `json:"copied,omitempty"`
}

// Reach returns what the edge delivers by itself: Never, Part or Whole.
func (e *Edge) Reach() Reach { return carries(&e.Delivers, e.Withheld || e.Minimal, e.Structured) }

// A Sight delivers a source to a reader outside of any task, such as a result to
// the user. A reader whose output goes on to others reads in a task instead.
type Sight struct {
	Source   int            `json:"source"`
	Reader   int            `json:"reader"`
	Delivers pick.Selection `json:"-"`              // the part that is shown
	Withheld bool           `json:"held,omitempty"` // it is certain that nothing is shown
	Rule     handoff.Rule   `json:"rule,omitempty"`
	Line     string         `json:"line,omitempty"`
	Note     string         `json:"note,omitempty"`
	Lowers   *Lowering      `json:"lowers,omitempty"`
}

// Reach returns what the sight shows: Never, Part or Whole.
func (s *Sight) Reach() Reach { return carries(&s.Delivers, s.Withheld, false) }

func carries(delivers *pick.Selection, nothing, structured bool) Reach {
	switch {
	case nothing || delivers.Empty():
		return Never
	case structured || !delivers.Whole():
		return Part
	}
	return Whole
}

// An Answer is what is known about a source before a run. If several sources answer,
// the highest answer counts.
type Answer = pick.Answer

// The answers.
const (
	No    = pick.No
	Maybe = pick.Maybe
	Yes   = pick.Yes
)

// A ReaderKind is the kind of a reader.
type ReaderKind uint8

// The kinds of readers. The zero value is none of them.
const (
	_           ReaderKind = iota
	Agent                  // a member of the team
	Coordinator            // plans and answers the goal
	User                   // the caller
	Endpoint               // a model server that reads prompts
	Tool                   // a tool that reads the arguments of its calls
	Journal                // a database that has the journal, and reads what is stored in the clear
)

var readerNames = [...]string{"unknown", "agent", "coordinator", "user", "endpoint", "tool", "journal"}

// String returns the kind's name.
func (k ReaderKind) String() string {
	if int(k) < len(readerNames) {
		return readerNames[k]
	}
	return readerNames[0]
}

// MarshalText writes the kind's name.
func (k ReaderKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a kind's name, strictly. After an error k is the zero value.
func (k *ReaderKind) UnmarshalText(text []byte) error {
	at := slices.Index(readerNames[:], string(text))
	*k = ReaderKind(max(at, 0))
	if at < 0 {
		return fmt.Errorf("unknown kind of reader %q", text)
	}
	return nil
}
