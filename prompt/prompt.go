// Package prompt builds prompts and their receipts. A prompt has two texts, the system
// prompt and the user message; its receipt says where each byte of them comes from.
//
// An agent written in Go reads the texts, or the context piece by piece:
//
//	for _, s := range p.Sections() {
//		fmt.Println(s.Kind, s.Title, s.From, s.Text)
//	}
//
// [Build] is the only way to make a [Prompt]. It takes context only as a
// [gate.Sealed], which only the gate makes, so a prompt cannot contain what the gate
// withheld. The layout is fixed to the byte, a payload cannot add to it, and the
// [Receipt] is written together with the texts.
package prompt

import (
	"cmp"
	"fmt"
	"sync/atomic"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/naming"
)

// A Prompt is what an agent receives: two texts and their receipt. It is immutable and safe
// for concurrent use. The zero value has empty texts.
type Prompt struct{ built *built }

type built struct {
	layout       string // the name of a brief.Layout
	system, text string
	schema       string
	format       string
	tools        []Tool
	sections     []section
	receipt      *Receipt // apart, since it outlives the texts
	around       *around  // nil if the user message is all that was said
}

// around is what was said around the user message of a prompt. It is apart since most prompts have none.
type around struct {
	first   []Message     // earlier turns of a session, and the user message behind them; nil without earlier turns
	later   []Message     // behind the user message
	results []result      // parallel to later; zero for messages that are no results of tools
	filled  *atomic.Int64 // messages in the array of later, which longer conversations share
	added   string        // what the last turn added, as one text; empty for the first
}

// said returns what was said around the user message.
func (b *built) said() around {
	if b.around == nil {
		return around{}
	}
	return *b.around
}

// A section is what a [Section] has beside the gate's decision.
type section struct {
	source           int32 // of the receipt
	title, text, raw string
}

// A Section is one piece of granted context in a prompt.
type Section struct {
	Kind     handoff.SourceKind
	Title    string // the task's title, the input's name, the memory entry's key
	From     string // who made it, as the prompt names it
	Text     string // the gated text; empty if withheld or structured only
	JSON     string // the gated structured part, canonical; empty if there is none
	Withheld string // why nothing of it was delivered; empty if it was delivered
}

var none = built{layout: brief.Work.String(), receipt: &Receipt{}}

func (p Prompt) get() *built {
	if p.built == nil {
		return &none
	}
	return p.built
}

// System returns the system prompt, with the schema if there is one.
func (p Prompt) System() string { return p.get().system }

// Text returns the conversation as one text, for an agent that takes no list of messages: the
// user message, and what each later turn added, as [Prompt.Added] has it. [Prompt.Messages]
// returns the messages.
func (p Prompt) Text() string { return p.get().conversation() }

// Added returns what the last turn added to the conversation, as one text: the messages,
// and before each a line with its role. The receipt accounts for this text. For the first
// turn it is [Prompt.Text].
func (p Prompt) Added() string { return cmp.Or(p.get().said().added, p.get().text) }

// Schema returns the JSON Schema that the reply must match, or "".
func (p Prompt) Schema() string { return p.get().schema }

// FormatSchema returns the JSON Schema that the endpoint may hold the reply to: that of
// the reply, or another one for a reply that is read without a schema, or "".
func (p Prompt) FormatSchema() string { return cmp.Or(p.get().format, p.get().schema) }

// Layout returns what the prompt is for: "work" for a task of the graph, "planning" if
// the coordinator divides a goal into tasks, or "synthesis" if the coordinator answers a
// goal from results. A prompt to correct a plan has two sections: the rejected plan
// ([handoff.Plan]) and the problems ([handoff.Fault]).
func (p Prompt) Layout() string { return p.get().layout }

// Sections returns the granted context piece by piece, in the order of the texts:
// context in the system prompt comes first. Instructions are not part of it.
func (p Prompt) Sections() []Section {
	var list []Section
	for _, s := range p.get().sections {
		of := &p.get().receipt.Sources[s.source]
		d := of.Decision
		list = append(list, Section{Kind: d.Source.Kind, Title: s.title, From: cmp.Or(of.shown, d.From), Text: s.text, JSON: s.raw, Withheld: d.Reason})
	}
	return list
}

// Structured returns the structured part of the dependency with this title, as
// canonical JSON; ok is false if none was delivered.
func (p Prompt) Structured(title string) (canonical string, ok bool) {
	for _, s := range p.Sections() {
		if s.Kind == handoff.Dependency && s.JSON != "" && naming.Normalize(s.Title) == naming.Normalize(title) {
			return s.JSON, true
		}
	}
	return "", false
}

// Receipt returns a copy of the account of both texts in the form for the agent:
// everything about delivered context, and nothing about withheld context (see
// [gate.Decision.ForReader]). It lists no messages, entries of the shared memory and parts of a
// transferred conversation that were withheld, and no IDs of such pieces: how many there are may follow from what the
// agent may not read.
// Under a policy that hides identities it names producers as the prompt does, and no rules.
func (p Prompt) Receipt() *Receipt {
	r := p.get().receipt.clone()
	r.Contract.HeldBefore = nil // the conversation says what of it the agent may know
	kept, at := r.Sources[:0], make([]int32, len(r.Sources))
	for i, s := range r.Sources {
		at[i] = int32(len(kept))
		if d := s.Decision; d != nil {
			if isHidden(d) {
				continue // and it has no range
			}
			*d = d.ForReader()
			if !d.IsDelivered() { // its ID counts attempts and turns
				d.Envelope = ""
			}
			if kind := d.Source.Kind; kind == handoff.Message || kind == handoff.Transferred { // these count messages of the run, or turns
				d.Source.Name, d.Envelope = "", ""
			}
		}
		s.forReader()
		kept = append(kept, s)
	}
	r.Sources = kept
	for _, ranges := range [][]Range{r.System, r.Text} {
		for i := range ranges {
			if from := &ranges[i].Source; *from >= 0 {
				*from = at[*from]
			}
		}
	}
	return r
}

// Format writes for whom the prompt is and how sensitive for every verb, so that no verb
// prints its texts.
func (p Prompt) Format(f fmt.State, _ rune) {
	r := p.get().receipt
	fmt.Fprintf(f, "prompt for %q, %v", r.Agent, r.Classification)
}
