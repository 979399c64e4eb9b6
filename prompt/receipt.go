package prompt

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A Receipt says, for each byte of a prompt, where it came from. Its ranges cover both
// texts without a gap or an overlap. It contains no part of the texts.
type Receipt struct {
	Session        string               `json:"session"`
	Run            string               `json:"run,omitempty"`
	Task           task.ID              `json:"task"`
	Agent          string               `json:"agent"`
	Classification label.Classification `json:"classification"` // of the prompt as a whole
	Contract       Agreement            `json:"contract,omitzero"`
	System         []Range              `json:"system,omitempty"`
	Text           []Range              `json:"text,omitempty"`
	Sources        []Source             `json:"sources"`
	Returned       []Returned           `json:"returned,omitempty"` // to the provider, with the turn before
}

// A Returned names members that a provider attached to what the agent said in a turn: to its message, or
// to a call of a tool. They go back to that provider with the later turns of the conversation, beside the
// texts, and the names are all that is shown of them.
type Returned struct {
	Turn    int      `json:"turn"`
	Call    string   `json:"call,omitempty"` // empty for those of the message
	Members []string `json:"members"`        // their names, sorted
}

// A Range is a run of bytes, [Start, End), of one of the two texts.
type Range struct {
	Start  int32 `json:"start"`
	End    int32 `json:"end"`
	Source int32 `json:"source"` // index into Sources; -1 for the builder's own words
	Part   Part  `json:"part"`
}

// A Source is where ranges come from: a place in the spec, or a piece of
// context with the gate's decision about it. A source without a range was
// withheld without a line.
type Source struct {
	Spec           string               `json:"spec,omitempty"` // where the text is written; empty for context
	Param          string               `json:"param,omitempty"`
	Producer       string               `json:"producer"`
	Classification label.Classification `json:"classification"`
	Decision       *gate.Decision       `json:"decision,omitempty"` // nil for text of the spec

	shown string // the name that the prompt has in place of Producer; empty if it has the name
}

// An Agreement is what the handshake before a prompt fixed, beside what its sources show.
type Agreement struct {
	Caller  string   `json:"caller,omitempty"`         // in whose name the agent works; empty in a receipt that an earlier version wrote
	Summary string   `json:"taskSummary,omitempty"`    // what the task is about: its title
	Tags    []string `json:"requiredTags,omitempty"`   // that the answer must carry
	Tools   []string `json:"toolsDisclosed,omitempty"` // that the agent may call, and no other

	// HeldBefore are the agents that held the conversation before it was transferred to this one, in their
	// order. The receipt in the form for the agent has none.
	HeldBefore []string `json:"heldBefore,omitempty"`

	Bounds *Bounds `json:"bounds,omitempty"` // nil in a receipt that an earlier version wrote
}

// Bounds are the labels and the time that a contract allows. The session begins when the agent is
// called, after the receipt was written.
type Bounds struct {
	Clearance label.Classification `json:"clearance"`           // of the agent and its endpoints
	MaxInput  label.Classification `json:"maxInput"`            // nothing above it goes in
	MaxOutput label.Classification `json:"maxOutput"`           // nothing above it is claimed coming out
	SessionMs int64                `json:"sessionMs,omitempty"` // how long the agent may work, in milliseconds; zero means without bound
}

// sourceOf returns the source of a piece of context.
func sourceOf(s *gate.Sealed) Source {
	d := s.Decision()
	of := Source{Producer: d.From, Classification: d.After.Join(s.ListLabel()), Decision: d}
	if s.Producer() != d.From {
		of.shown = s.Producer()
	}
	return of
}

// forReader replaces the producer by the name that the prompt has of it. The decision then names no
// rule and no source either, which can contain the name.
func (s *Source) forReader() {
	if s.shown == "" {
		return
	}
	s.Producer = s.shown
	if d := s.Decision; d != nil {
		d.From, d.Rule, d.Line, d.Detail, d.Entries = s.shown, "", "", "", nil
		if d.Source.Kind == handoff.Memory {
			d.Source.Name = ""
		}
	}
}

// newReceipt returns the receipt of a prompt that was built under a contract.
func newReceipt(k *gate.Contract, system, text []Range, sources []Source) *Receipt {
	made := &struct { // one allocation for both
		receipt Receipt
		bounds  Bounds
	}{
		Receipt{
			Session: k.Session, Run: k.Run, Task: k.Task, Agent: k.Callee, Classification: k.MaxInput,
			Contract: Agreement{Caller: k.Caller, Summary: k.Summary, Tags: slices.Clone(k.RequiredTags), Tools: slices.Clone(k.Tools), HeldBefore: slices.Clone(k.Holders)},
			System:   system, Text: text, Sources: sources,
		},
		Bounds{k.Clearance, k.MaxInput, k.MaxOutput, k.Duration.Milliseconds()},
	}
	made.receipt.Contract.Bounds = &made.bounds
	return &made.receipt
}

// clone returns a receipt that shares nothing with r that could be changed.
func (r *Receipt) clone() *Receipt {
	c := *r
	c.System, c.Text, c.Sources = slices.Clone(r.System), slices.Clone(r.Text), slices.Clone(r.Sources)
	c.Returned = nil // which no agent is told
	c.Contract.Tags, c.Contract.Tools, c.Contract.HeldBefore = slices.Clone(r.Contract.Tags), slices.Clone(r.Contract.Tools), slices.Clone(r.Contract.HeldBefore)
	if r.Contract.Bounds != nil {
		c.Contract.Bounds = new(*r.Contract.Bounds)
	}
	for i := range c.Sources {
		if d := c.Sources[i].Decision; d != nil {
			c.Sources[i].Decision = d.Clone()
		}
	}
	return &c
}

// A Part says what a range is for. Its text is frame (the builder's headings, blank lines
// and fences), system, schema, title, description, heading (a name in a heading), payload
// (granted context), withheld (a line in place of context) or goal.
type Part uint8 // a byte, since a run keeps the receipts of all its prompts

var partNames = [...]string{"frame", "system", "schema", "title", "description", "heading", "payload", "withheld", "goal"}

// String returns the part's name.
func (p Part) String() string {
	if int(p) < len(partNames) {
		return partNames[p]
	}
	return partNames[brief.PartFrame]
}

// MarshalText writes the part's name.
func (p Part) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a part's name, strictly.
func (p *Part) UnmarshalText(text []byte) error {
	at := slices.Index(partNames[:], string(text))
	*p = Part(max(at, 0))
	if at < 0 {
		return fmt.Errorf("unknown part %q", text)
	}
	return nil
}
