package gate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// Codes of tasks that fail because context that they need was withheld.
const (
	CodeWithheld          = "CONTEXT_HELD"
	CodeStructuredMissing = "DEPENDENCY_STRUCTURED_RESULT_MISSING"
	CodeTooLarge          = "DEPENDENCY_PAYLOAD_TOO_LARGE"
	CodeUnserializable    = "DEPENDENCY_STRUCTURED_SERIALIZATION_FAILED"
)

// A Decision is what the gate ruled about one piece of context and one
// reader. It holds counts and names, never a value. Paths and counts tell
// something of the value all the same: [Decision.Outline] is the form for a
// viewer who may not see it, [Decision.ForReader] that for the reader.
type Decision struct {
	Verdict  Verdict      `json:"verdict"`
	byValue  bool         // the detail depends on more of the value than its label
	Mode     handoff.Mode `json:"mode,omitempty"`
	Rule     handoff.Rule `json:"rule"`             // the rule that decided
	Reason   string       `json:"reason,omitempty"` // why it was withheld
	Detail   string       `json:"detail,omitempty"` // for people
	Line     string       `json:"line,omitempty"`   // where the grant is written
	Source   Source       `json:"source"`
	Envelope envelope.ID  `json:"envelope,omitempty"`
	From     string       `json:"from"`
	To       string       `json:"to"`
	Task     task.ID      `json:"task,omitempty"` // the reader's task

	Provenance // of the value; zero where the viewer may not see all of it

	*Narrowing // nil if all of it passes; see [Decision.Parts]

	Entries    []Entry `json:"entries,omitempty"` // of the policy, that lowered, endorsed or renewed it
	Translated bool    `json:"translated,omitempty"`

	Redactions

	Before label.Classification `json:"labelBefore"`
	After  label.Classification `json:"labelAfter"`
	Sizes
}

// A Provenance says when a value was made, what of, and with which tags.
type Provenance struct {
	CreatedAt   time.Time     `json:"createdAt,omitzero"`
	DerivedFrom []envelope.ID `json:"derivedFrom,omitempty"`     // of a decision, at most the first [maxParents]
	MoreParents int           `json:"derivedFromMore,omitempty"` // how many are left out
	Tags        []string      `json:"tags,omitempty"`            // that the value carries
}

// maxParents is how many parents of a value a decision names. A record has a decision for each reader of the value.
const maxParents = 20

// provenance returns that of the offered value. Decisions share its lists with the envelope.
func (o *Offer) provenance() Provenance {
	parents, tags := o.Envelope.Lineage()
	p := Provenance{CreatedAt: o.Envelope.CreatedAt().Round(0), Tags: tags}
	if o.ShowsParents {
		p.DerivedFrom = parents
	}
	if more := len(p.DerivedFrom) - maxParents; more > 0 {
		p.DerivedFrom, p.MoreParents = p.DerivedFrom[:maxParents], more
	}
	return p
}

// A Narrowing says which parts of a value pass. It does not change once a decision has
// it, because decisions share it.
type Narrowing struct {
	InPart      bool        `json:"inPart,omitempty"`      // parts are granted and not the whole, whatever the value has
	Narrowed    bool        `json:"narrowed,omitempty"`    // something of the value was left out
	Kept        []task.Path `json:"kept,omitempty"`        // of a narrowed value, what is delivered; keys that neither spec nor schema names are written *
	Dropped     []task.Path `json:"dropped,omitempty"`     // what of it stays behind, likewise
	TextDropped bool        `json:"textDropped,omitempty"` // a text that says more than the structured part stays behind
	Unmatched   []task.Path `json:"unmatched,omitempty"`   // granted paths at which there was nothing
}

// Redactions count what was changed in the part that passes.
type Redactions struct {
	Redacted redact.Counts `json:"redacted,omitempty"`
	Revealed redact.Counts `json:"revealed,omitempty"`
	Broken   int           `json:"broken,omitempty"` // chat-template tokens made harmless
}

// Sizes measure a value in bytes before and after the gate.
type Sizes struct {
	BytesBefore int `json:"bytesBefore"` // in the form that was asked for; of what is withheld, its [bytesize.Class]
	BytesAfter  int `json:"bytesAfter"`
	CutFrom     int `json:"cutFrom,omitempty"` // bytes before cutting; zero means whole

	// AnswerTruncated says that a limit on tokens ended the answer before the
	// gate saw it.
	AnswerTruncated bool `json:"answerTruncated,omitempty"`

	// Truncated says that a size limit cut the text. A text that was cut because
	// the policy asks for an excerpt, or a digest shows one line, is not truncated.
	Truncated bool `json:"truncated,omitempty"`

	Coarse bool `json:"coarse,omitempty"` // a [Decision.Outline]: sizes, paths and counts are left out
}

// sizeOf returns the size in bytes of a payload that the decision is about. A result with a structured part says the
// same twice, so only the larger of the two counts.
func (d *Decision) sizeOf(p envelope.Payload) int {
	if d.Source.Kind != handoff.Dependency {
		return p.Size()
	}
	canonical, _ := p.JSON()
	return max(len(p.Text()), len(canonical))
}

// Parts returns which parts of the value pass. It is never nil, and must not be changed.
func (d *Decision) Parts() *Narrowing {
	if d.Narrowing == nil {
		return &Narrowing{}
	}
	return d.Narrowing
}

// A Ruling is a decision together with what it lets through. Only
// [Compartment.Decide] makes one.
type Ruling struct {
	Decision
	Translate *handoff.Translation // with NeedsTranslation: what is asked for

	session   string             // of the contract that it was made under
	about     *envelope.Envelope // what it was made about
	replaced  *envelope.Envelope // the translation that is delivered in its place, if any
	left      envelope.Payload   // with NeedsTranslation: what grant and block have left
	delivered envelope.Payload   // what may be sealed; empty unless passed
	tree      filetree.Tree      // the files that may be sealed; nil unless files passed
	renamed   map[string]string  // files whose names were redacted: the names before; nil if there are none
	trust     label.Trust        // that it is delivered with
	expires   time.Time          // at which the copy does; zero means never
	recast    string
	lowers    *handoff.Declassifier // the entry that lowers it; nil if none does
}

// String returns the decision in one line, without the payload.
func (r Ruling) String() string {
	return fmt.Sprintf("%v by %s: %v %q for %q", r.Verdict, r.Rule, r.Source.Kind, r.Source.Name, r.To)
}

// Format writes [Ruling.String] for every verb, so that no verb prints a payload.
func (r Ruling) Format(f fmt.State, _ rune) { fmt.Fprint(f, r.String()) }

// TokensSaved returns by how many tokens the gate made a value smaller, in the form of it that was asked
// for. It is zero for an outline.
func (d *Decision) TokensSaved() int {
	return max(Tokens(d.BytesBefore)-Tokens(d.BytesAfter), 0)
}

// WithheldParts counts what the reader was not given of a value: its parts that were left out, or one for all of it. The
// values of a condition are compared, and shown to nobody.
func (d *Decision) WithheldParts() int {
	n := len(d.Parts().Dropped)
	switch {
	case d.Source.Kind == handoff.Condition:
		return 0
	case d.Parts().TextDropped:
		n++
	case d.Verdict != Passed:
		n = max(n, 1)
	}
	return n
}

// ByValue reports whether the value was withheld because of what is in it, and not
// because of its label or of what the policy says about every value of its producer.
func (d *Decision) ByValue() bool { return d.byValue }

// An Entry is a named entry of the policy that was used, and for what.
type Entry struct {
	Use  EntryUse `json:"use"`
	Name string   `json:"name"`
}

// EntryUse says what an entry of the policy did.
type EntryUse string

// What entries do.
const (
	EntryLowered  EntryUse = "lowered"  // a declassifier delivered it below its label
	EntryEndorsed EntryUse = "endorsed" // an endorser vouched for it
	EntryRenewed  EntryUse = "renewed"  // a renewal let it be read beyond its expiry
)

// TokenClass rounds a number of tokens up to that of a [bytesize.Class]: 256, 1024,
// 4096 and so on. Zero stays zero.
func TokenClass(tokens int) int {
	if tokens > math.MaxInt/BytesPerToken {
		return tokens
	}
	return bytesize.Class(tokens*BytesPerToken) / BytesPerToken
}

// Outline returns what a viewer may learn of a decision about a value that the
// viewer may not see: producer, reader, verdict, rule, labels and the names of
// policy entries. It has no path, no count and no size, and of several agents that made
// the value it names the first: a transfer depends on what was read. The outline of an
// outline is itself.
//
// Every form of a decision that leaves a run, in an event, a record or a
// receipt, is this one where its viewer may not see the whole value.
func (d *Decision) Outline() Decision {
	o := *d
	if d.byValue {
		o.Detail = ""
	}
	o.From, o.Provenance, o.Narrowing = naming.First(d.From), Provenance{}, inPart(d.Parts().InPart, false)
	o.Redactions, o.Sizes = Redactions{}, Sizes{Coarse: true}
	return o
}

// ForReader returns the part of a decision that its reader may see: what was found
// in the delivered part, and its size, but nothing about the rest of the value, nor when and from what it was made.
// Paths could reveal the rest, so a container is named as a whole if nothing of it
// was left out. For context that is not delivered at all, use [Decision.Outline].
func (d *Decision) ForReader() Decision {
	if !d.IsDelivered() {
		return d.Outline()
	}
	o := *d
	o.Provenance = Provenance{}
	if parts := d.Parts().InPart; parts || d.Before != d.After {
		o.Narrowing = inPart(parts, parts) // whether there was more than the parts is not the reader's to know
		o.BytesBefore = max(d.BytesAfter, d.CutFrom)
	}
	return o
}

// inPart returns a narrowing without paths; nil if nothing is granted in part.
func inPart(inPart, narrowed bool) *Narrowing {
	if !inPart {
		return nil
	}
	return &Narrowing{InPart: true, Narrowed: narrowed}
}

// Clone returns a decision that shares nothing with d that could be changed.
func (d *Decision) Clone() *Decision {
	c := *d
	if n := d.Narrowing; n != nil {
		c.Narrowing = new(*n)
		c.Kept, c.Dropped, c.Unmatched = slices.Clone(n.Kept), slices.Clone(n.Dropped), slices.Clone(n.Unmatched)
	}
	c.DerivedFrom, c.Tags = slices.Clone(d.DerivedFrom), slices.Clone(d.Tags)
	c.Redacted, c.Revealed, c.Entries = maps.Clone(d.Redacted), maps.Clone(d.Revealed), slices.Clone(d.Entries)
	return &c
}

// MovedOut returns the decision for a later turn, whose prompt no longer has the value that
// d delivered.
func (d *Decision) MovedOut() *Decision {
	c := d.Clone()
	c.withhold(RulePromptSize, ReasonRule, "an earlier turn had it, and the conversation has no room for it any more")
	return c
}

// IsDelivered reports whether anything of the value may be sealed.
func (d *Decision) IsDelivered() bool { return d.Verdict == Passed }

// Err returns nil for a decision that passed or was minimized, and a
// [*WithheldError] for any other.
func (d *Decision) Err() error {
	if d == nil {
		return errNothing
	}
	if d.Verdict == Passed || d.Verdict == Minimized {
		return nil
	}
	return &WithheldError{Decision: *d}
}

// A WithheldError is what a task fails with when the gate withholds what it needs.
type WithheldError struct{ Decision Decision }

// public returns the error as callers of the library read it.
func (e *WithheldError) public() *handoff.WithheldError {
	d := &e.Decision
	return &handoff.WithheldError{Kind: d.Source.Kind, From: d.From, Rule: d.Rule, Reason: d.Reason, Detail: d.Detail, Line: d.Line}
}

// Error names the source, the rule and the line; never a value.
func (e *WithheldError) Error() string { return e.public().Error() }

// As sets a target of type **[WithheldError], the form that callers of the library read.
func (e *WithheldError) As(target any) bool {
	t, ok := target.(**handoff.WithheldError)
	if ok {
		*t = e.public()
	}
	return ok
}

// Code returns the error code for results, such as CONTEXT_HELD.
func (e *WithheldError) Code() string {
	switch e.Decision.Rule {
	case RulePayload:
		return CodeStructuredMissing
	case RuleStructuredSize:
		return CodeTooLarge
	case RuleTokens: // two of its keys would be written alike
		return CodeUnserializable
	}
	return CodeWithheld
}
