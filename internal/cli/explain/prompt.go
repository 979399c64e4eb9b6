package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/promptview"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// A PromptDocument is one prompt, in JSON.
type PromptDocument struct {
	Task           task.ID              `json:"task"`
	Title          string               `json:"title"`
	Name           string               `json:"name,omitempty"` // of an instance, by the keys of its items
	Agent          string               `json:"agent"`
	Attempt        int                  `json:"attempt,omitempty"`
	Session        string               `json:"sessionId"`
	Classification label.Classification `json:"classification"`
	Bytes          int                  `json:"bytes"`
	Contract       prompt.Agreement     `json:"contract,omitzero"` // what the handshake fixed
	System         []Piece              `json:"system"`
	Text           []Piece              `json:"text"`
	Sources        []prompt.Source      `json:"sources"`
	Returned       []prompt.Returned    `json:"returned,omitempty"` // to the provider, beside the texts
	Withheld       []withheld           `json:"withheld"`
	Absent         Absent               `json:"notSent"` // what existed and was not granted

	made []string // what text says of the provenance of each piece of context
}

// A Piece is a range of a prompt, its words unless they are above the reader's clearance, and its
// source.
type Piece struct {
	promptview.Piece
	From string `json:"from"`
}

// withheld is a source, or paths of one, that was granted and not delivered.
type withheld struct {
	What   string       `json:"what"`
	Reason string       `json:"reason,omitempty"`
	Rule   handoff.Rule `json:"rule"`
	Line   string       `json:"line,omitempty"`
	Detail string       `json:"detail,omitempty"`
	Paths  []task.Path  `json:"paths,omitempty"`
	Text   bool         `json:"text,omitempty"` // whether the text next to a structured part was withheld
}

// Absent lists the results and inputs that existed and are no source of a prompt.
type Absent struct {
	Results []trace.Task  `json:"results"`
	More    int           `json:"moreResults,omitempty"` // number of results not listed; 0 if only one task is explained
	Inputs  []trace.Input `json:"inputs"`
}

// choose adds a prompt to those that are explained. A person is shown the same approval again by a process that has the
// answer.
func (x *Document) choose(p *trace.Prompt) {
	same := func(o *trace.Prompt) bool {
		return o.Receipt.Session == p.Receipt.Session && slices.Equal(o.System, p.System) && slices.Equal(o.Text, p.Text)
	}
	if !approvalPart.MatchString(p.Receipt.Session) || !slices.ContainsFunc(x.chosen, same) {
		x.chosen = append(x.chosen, p)
	}
}

// addPrompts adds the documents of the prompts, which text does not need all at once.
func (x *Document) addPrompts() {
	x.Prompts = make([]PromptDocument, len(x.chosen))
	for i, p := range x.chosen {
		x.Prompts[i] = x.prompt(p)
	}
}

func (x *Document) prompt(p *trace.Prompt) PromptDocument {
	r := p.Receipt
	out := PromptDocument{
		Task: r.Task, Title: p.Title, Agent: p.Agent, Attempt: p.Attempt, Session: r.Session, Classification: r.Classification, Bytes: p.Bytes(), Contract: r.Contract,
		System: x.pieces(p, p.System), Text: x.pieces(p, p.Text), Sources: r.Sources, Returned: r.Returned, Withheld: []withheld{},
	}
	if tk := x.Trace.Task(r.Task); tk != nil {
		out.Name = tk.Name
	}
	for i := range r.Sources {
		d := r.Sources[i].Decision
		switch {
		case d == nil:
		case d.Verdict != gate.Passed:
			out.Withheld = append(out.Withheld, withheld{What: x.SourceName(d), Reason: d.Reason, Rule: d.Rule, Line: d.Line, Detail: d.Detail})
		case len(d.Parts().Dropped) > 0 || d.Parts().TextDropped:
			out.Withheld = append(out.Withheld, withheld{What: "of " + x.SourceName(d), Rule: d.Rule, Line: d.Line, Paths: d.Parts().Dropped, Text: d.Parts().TextDropped})
		}
	}
	out.made = x.provenances(r.Sources)
	most := MaxAbsent
	if x.task != "" {
		most = 0
	}
	results, more, inputs := x.Trace.Absent(p, most)
	out.Absent = Absent{append([]trace.Task{}, results...), more, append([]trace.Input{}, inputs...)}
	return out
}

func (x *Document) pieces(p *trace.Prompt, pieces []promptview.Piece) []Piece {
	out := make([]Piece, len(pieces))
	for i := range pieces {
		out[i] = Piece{pieces[i], x.from(p, pieces[i].Source, pieces[i].Part)}
	}
	return out
}

// from returns a short name for the source of a range.
func (x *Document) from(p *trace.Prompt, source int32, part prompt.Part) string {
	if source < 0 {
		return "builder"
	}
	s := &p.Receipt.Sources[source]
	if s.Decision != nil {
		return x.describeDecision(s.Decision)
	}
	text := PartName(part)
	switch {
	case s.Producer == handoff.Coordinator: // it is in no file
		return text + ", planned by the coordinator"
	case s.Producer == gate.Runtime:
		return text + ", written by runteam"
	case s.Spec != "":
		text = s.Spec + " " + text
	}
	if s.Param != "" {
		text += ", parameter " + s.Param
	}
	return text
}

// PartName returns the name in specs for a part of a prompt.
func PartName(part prompt.Part) string {
	switch part {
	case brief.PartSystem:
		return "systemPrompt"
	case brief.PartSchema:
		return "outputSchema"
	}
	return part.String()
}

// provenances says of each piece of context that was delivered when it was made, what from, and with which tags.
func (x *Document) provenances(sources []prompt.Source) (list []string) {
	for i := range sources {
		d := sources[i].Decision
		if d == nil || !d.IsDelivered() || d.CreatedAt.IsZero() {
			continue
		}
		text := x.SourceName(d) + ": made " + d.CreatedAt.UTC().Format(time.RFC3339)
		if len(d.DerivedFrom) > 0 {
			names := make([]string, len(d.DerivedFrom))
			for k, id := range d.DerivedFrom {
				names[k] = x.envelopeName(id)
			}
			text += " from " + format.ListOf(names, min(len(names), MaxAbsent), len(names)+d.MoreParents)
		}
		if len(d.Tags) > 0 {
			text += ", with " + format.Tags(d.Tags)
		}
		list = append(list, terminal.CleanLine(format.Readers(text)))
	}
	return list
}

// envelopeName returns what people know an envelope by: its input, the task whose result it is, or its ID.
func (x *Document) envelopeName(id envelope.ID) string {
	name := string(id)
	if input, ok := strings.CutPrefix(name, string(plan.InputID(""))); ok {
		return "input " + input
	}
	if of, attempt, ok := strings.Cut(name, "/"); ok && !strings.Contains(attempt, "/") {
		if tk := x.Trace.Task(task.ID(of)); tk != nil {
			return "result of " + cmp.Or(tk.Name, tk.Title)
		}
	}
	return name
}

// SourceName names a piece of context and its producer.
func (x *Document) SourceName(d *gate.Decision) string { return x.named(d.Source, d.From) }

func (x *Document) named(s gate.Source, by string) string {
	id, turn := turnOf(s.Name)
	title := x.Trace.Title(task.ID(id))
	switch s.Kind {
	case handoff.Dependency:
		return "result of " + title + " from " + by
	case handoff.Files:
		return "output files of " + title + " from " + by
	case handoff.Folder:
		if by == handoff.User {
			return "files of input " + s.Name
		}
		return "output files of " + title + " from " + by
	case handoff.Input:
		return "input " + s.Name
	case handoff.Message:
		return "message from " + by
	case handoff.Memory:
		return "memory entry " + s.Name
	case handoff.Goal, handoff.Roster:
		return "the " + string(s.Kind)
	case handoff.Draft:
		if turn > 1 {
			return fmt.Sprintf("what it said in turn %d", turn-1)
		}
		return "its previous answer"
	case handoff.Conversation:
		return s.Name + " from " + by
	case handoff.Transferred:
		return "conversation before the transfer, from " + by
	case handoff.Plan:
		if by == handoff.User {
			return "what user asks, " + title
		}
		return "plan of " + by + ", " + title
	case handoff.Fault:
		return "fault from " + by + ", " + title
	}
	return string(s.Kind) + " " + s.Name + " from " + by
}

// turnOf splits the name of a source that belongs to a turn into the task and the number of
// the turn, which is zero for any other source.
func turnOf(name string) (id string, turn int) {
	id, number, _ := strings.Cut(name, record.TurnPrefix)
	turn, _ = strconv.Atoi(number)
	return id, turn
}

// describeDecision says how a piece of context was delivered: its producer, label and rule, and how the
// gate changed it.
func (x *Document) describeDecision(d *gate.Decision) string {
	parts := []string{x.SourceName(d), d.After.String()}
	if d.Before != d.After {
		parts[1] += " (was " + d.Before.String() + ")"
	}
	parts = append(parts, string(d.Rule)+inParentheses(d.Line))
	if n := d.Redacted.Total(); n > 0 {
		parts = append(parts, fmt.Sprintf("redacted %d: %s", n, kinds(d.Redacted)))
	}
	if len(d.Revealed) > 0 {
		parts = append(parts, "revealed "+kinds(d.Revealed))
	}
	if d.CutFrom > 0 {
		parts = append(parts, "cut from "+bytesize.Text(d.CutFrom))
	}
	if d.AnswerTruncated {
		parts = append(parts, "truncated answer")
	}
	if d.Translated {
		parts = append(parts, "translated")
	}
	if d.Parts().Narrowed {
		parts = append(parts, "narrowed to "+delivered(d))
	}
	for _, e := range d.Entries {
		parts = append(parts, string(e.Use)+" by "+e.Name)
	}
	return strings.Join(parts, ", ")
}

// unnamed replaces in a decision the parts of a value whose names are not in a rule or schema
// and therefore not recorded.
const unnamed task.Path = "/*"

// delivered says what of a narrowed value was delivered. If the names of some parts are not recorded,
// it names what was not delivered instead, if those names are recorded.
func delivered(d *gate.Decision) string {
	open := slices.ContainsFunc(d.Parts().Dropped, func(p task.Path) bool { return strings.Contains(string(p), "*") })
	switch {
	case !slices.Contains(d.Parts().Kept, unnamed) || open:
		return pathList(d.Parts().Kept)
	case len(d.Parts().Dropped) > 0:
		return "all but " + pathList(d.Parts().Dropped)
	case d.Parts().TextDropped:
		return "all of its structured part"
	}
	return "all of its parts"
}

func pathList(paths []task.Path) string {
	var all []string
	for _, p := range paths {
		switch p {
		case unnamed:
		case task.Whole:
			all = append(all, `"" (the whole)`)
		default:
			all = append(all, string(p))
		}
	}
	text := strings.Join(all, " ")
	switch {
	case len(paths) == 0:
		return "nothing"
	case len(all) == len(paths):
		return text
	case text == "":
		return "parts whose names are not recorded"
	}
	return text + " and parts whose names are not recorded"
}

func inParentheses(line string) string { return format.Unless(line == "", " ("+line+")") }

func kinds(c redact.Counts) string {
	return strings.Join(format.Kinds(slices.Sorted(maps.Keys(c))), " ")
}
