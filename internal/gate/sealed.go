package gate

import (
	"cmp"
	"fmt"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// Sealed is what passed the gate: the gated form of one piece of context, or
// the line that says it was withheld. Only [Compartment.Seal] makes one; the
// zero value is refused wherever a Sealed is read. It is immutable.
type Sealed struct {
	session   string // the contract that it belongs to; empty in the zero value
	source    Source
	title     string
	assignee  string
	producer  string
	status    task.Status
	passed    bool // this and the next three are not read from the decision, which receipts share
	to        string
	task      task.ID
	envelope  envelope.ID
	as        task.Payload
	trust     label.Trust
	listed    label.Classification // see [Sealed.ListLabel]
	expiresAt time.Time            // zero means never
	recast    string
	hops      int // of a message
	payload   envelope.Payload
	tree      filetree.Tree // of a folder; must not be changed
	folder    string
	renamed   map[string]string // see [Ruling]
	decision  *Decision
}

// Seal carries a decision out. What passed is sealed with its payload; what
// was withheld is sealed as a withheld line if the offer is optional, and is a
// [*WithheldError] otherwise. A decision that asks for a translation, or that was
// made for another offer or contract, is an error.
func (c *Compartment) Seal(o *Offer, d *Ruling) (Sealed, error) {
	return c.SealInto(o, d, new(Decision))
}

// SealInto is [Compartment.Seal] for a caller that seals several offers and allocates their decisions
// at once: the decision is copied to kept, which must not change afterwards.
func (c *Compartment) SealInto(o *Offer, d *Ruling, kept *Decision) (Sealed, error) {
	if err := c.enforce(o, d); err != nil {
		return Sealed{}, err
	}
	k := &c.Contract
	*kept = d.Decision // apart from the payload, since records of decisions are kept
	s := Sealed{session: k.Session, source: o.Source, title: o.Title, assignee: o.Assignee, producer: d.From, status: o.Status, as: form(o.As, d.delivered), payload: d.delivered, tree: d.tree, folder: o.Folder, renamed: d.renamed, decision: kept, passed: d.Verdict == Passed, to: d.To, task: d.Task, envelope: d.Envelope}
	s.listed = label.Public
	if g := c.grant(o); g != nil && g.Terms != nil && g.Terms.identity != nil {
		s.hideNames(g.Terms.identity)
	}
	if d.about != nil && s.passed {
		s.trust, s.expiresAt, s.recast = d.trust, d.expires, d.recast
		if o.Source.Kind == handoff.Message {
			s.hops = d.about.Hops()
		}
		if d.replaced != nil {
			s.envelope = d.replaced.ID()
		}
	}
	return s, nil
}

// hideNames replaces the names that prompts have of s.
func (s *Sealed) hideNames(by *identity) {
	if s.title == s.producer && s.source.Kind == handoff.Message {
		s.title = by.shown(s.title)
	}
	s.producer, s.assignee = by.shown(s.producer), by.shown(s.assignee)
}

// Payload carries a decision out as Seal does, for a reader to whom the runtime gives the
// payload itself, and the files that it is, if it is files. Both are empty if an optional offer
// was withheld.
func (c *Compartment) Payload(o *Offer, d *Ruling) (envelope.Payload, filetree.Tree, error) {
	if err := c.enforce(o, d); err != nil {
		return envelope.Payload{}, nil, err
	}
	return d.delivered, d.tree, nil
}

// enforce returns an error unless the decision is about this offer and contract, and lets
// the reader have the payload or do without.
func (c *Compartment) enforce(o *Offer, d *Ruling) error {
	if c == nil || o == nil || d == nil {
		return errNothing
	}
	k := &c.Contract
	if d.Source != o.Source || d.about != o.Envelope || d.To != k.Callee || d.Task != k.Task || d.session != k.Session {
		return fmt.Errorf("seal %s %q: the decision is about something else", o.Source.Kind, o.Source.Name)
	}
	if k.Session == "" {
		return fmt.Errorf("seal %s %q: the contract has no session", o.Source.Kind, o.Source.Name)
	}
	switch {
	case d.Verdict == NeedsTranslation:
		return fmt.Errorf("seal %s %q: it needs a translation first", o.Source.Kind, o.Source.Name)
	case d.Verdict == Withheld && !o.Optional, d.Verdict > Minimized:
		return &WithheldError{Decision: d.Decision}
	}
	return nil
}

// form is how a payload is delivered that was asked for in some form: as a text
// if the translation has left no structured part.
func form(asked task.Payload, p envelope.Payload) task.Payload {
	_, structured := p.JSON()
	switch {
	case asked == AsFiles && structured: // a file that is an item
		return ""
	case asked != AsFiles && !structured && p.Size() > 0:
		return task.Output
	}
	return asked
}

// For returns nil if s was sealed under the contract, and [ErrUnsealed] otherwise.
func (s *Sealed) For(k *Contract) error {
	if s == nil || s.session == "" || s.session != k.Session || s.to != k.Callee || s.task != k.Task {
		return ErrUnsealed
	}
	return nil
}

// String returns the origin of s and the verdict, never the payload.
func (s Sealed) String() string {
	if s.decision == nil {
		return "not sealed"
	}
	return fmt.Sprintf("%v %q for %q, %v", s.source.Kind, s.title, s.decision.To, s.decision.Verdict)
}

// Format writes [Sealed.String] for every verb, so that no verb prints a payload.
func (s Sealed) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// Fresh returns nil if s may still be read, and a [*WithheldError] if it has expired.
func (s *Sealed) Fresh(now time.Time) error {
	if s == nil {
		return ErrUnsealed
	}
	if s.expiresAt.IsZero() || now.Before(s.expiresAt) {
		return nil
	}
	d := *s.decision
	d.withhold(RuleExpiry, ReasonExpired, "it expired before it was sent")
	return &WithheldError{Decision: d}
}

// Withheld reports whether s is a line instead of a payload.
func (s *Sealed) Withheld() bool { return !s.passed }

// Decision returns what the gate ruled. It is shared and must not be changed.
func (s *Sealed) Decision() *Decision { return s.decision }

// Source returns where the payload comes from.
func (s *Sealed) Source() Source { return s.source }

// Title returns the heading: a task's title, an input's name, a memory key.
func (s *Sealed) Title() string { return s.title }

// Assignee returns who did the dependency, or "unknown".
func (s *Sealed) Assignee() string {
	if s.assignee == "" {
		return "unknown"
	}
	return s.assignee
}

// Producer returns who made it, as prompts name it. The decision has the real name.
func (s *Sealed) Producer() string { return s.producer }

// Status returns the dependency's status.
func (s *Sealed) Status() task.Status { return s.status }

// As returns the form in which the payload is delivered.
func (s *Sealed) As() task.Payload { return s.as }

// Recast returns where the payload belongs; the zero value is the user message.
func (s *Sealed) Recast() string { return s.recast }

// Trust returns whether an entry of the policy endorses the payload for this reader.
func (s *Sealed) Trust() label.Trust { return s.trust }

// Files returns the gated form of a folder, which must not be changed, and where in the
// workspace its files belong. It is nil if s is withheld or no folder.
func (s *Sealed) Files() (tree filetree.Tree, folder string) { return s.tree, s.folder }

// IsEmpty reports whether s adds nothing to what its reader gets: it is withheld, or a layer of a folder that has none of
// the granted files.
func (s *Sealed) IsEmpty() bool {
	return s.Withheld() || s.source.Kind == handoff.Folder && len(s.tree) == 0
}

// allReplaced stands in place of an empty list. If the list were left out, the outline of a prompt would tell a viewer
// that all files were replaced, who may not see by what.
const allReplaced = "(none: all were replaced)"

// Listing returns s with another list: the files of its folder that no other version replaced, at their paths in the
// workspace. What replaced the others may be more sensitive than s, so level is the label of the list.
func (s *Sealed) Listing(left filetree.Tree, level label.Classification) Sealed {
	listing := *s
	if s.Withheld() {
		return listing
	}
	list, _ := breakTokens(left.List("."))
	if len(left) == 0 && len(s.tree) > 0 {
		list = allReplaced
	}
	listing.payload, listing.listed = envelope.Text(list), level
	return listing
}

// ListLabel returns the label of what decided which files of a folder its list has.
func (s *Sealed) ListLabel() label.Classification { return s.listed }

// NameBefore returns the name of a file before secrets and personal data were taken out of it, in the folder that
// [Sealed.Files] returns. No reader may have it.
func (s *Sealed) NameBefore(name string) string { return cmp.Or(s.renamed[name], name) }

// Payload returns the gated form. It is empty if s is withheld.
func (s *Sealed) Payload() envelope.Payload { return s.payload }
