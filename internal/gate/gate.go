// Package gate decides whether an envelope may be delivered to a reader, and in
// which form.
//
// A handshake ([Negotiate]) fixes what may flow before anything does. The
// [Compartment] then enforces the [Contract] at one place: [Compartment.Decide]
// rules, [Compartment.Seal] makes the only type that a prompt can be built
// from, and [Compartment.GateInbound] rules on what comes back. Everything
// here computes and nothing else: time comes in as an argument, and an error
// means that the gate could not decide, in which case nothing passes.
package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// Sizes of what may be delivered to an agent.
const (
	DefaultContextBytes    = 256 << 10 // of one piece of context, if its grant sets no limit
	DefaultStructuredBytes = 64 << 10  // of a dependency delivered as structured or both, likewise
	MaxRedact              = 4 << 20   // of a value before redaction; a larger one is withheld
)

// Rules of the gate, in addition to those of the handshake.
const (
	RuleContract handoff.Rule = "contract" // the contract is over
	RuleExpiry   handoff.Rule = "expiry"   // expired, or from the future
	RuleDigest   handoff.Rule = "digest"   // altered since it was made
	RuleSecret   handoff.Rule = "secret"   // secret flows only by a rule for the exact pair that states a mode
	RuleSize     handoff.Rule = "size"     // too large to redact

	// RuleStructuredSize withholds a structured value that is too large to deliver: it cannot be cut.
	RuleStructuredSize handoff.Rule = "structured size"

	// RulePromptSize moves the result of a tool out of a conversation that is too large.
	RulePromptSize handoff.Rule = "prompt size"
	RulePayload    handoff.Rule = "payload" // the form asked for does not exist
	RuleStatus     handoff.Rule = "status"  // the source has no result
	RuleClaim      handoff.Rule = "claim"   // a reply claims to be above its ceiling
	RuleSchema     handoff.Rule = "schema"  // a reply does not match the schema
)

// errNothing is the error of a decision that lacks one of its arguments.
var errNothing = errors.New("gate: the context, the compartment, the offer or the ruling is nil")

// A Compartment enforces one contract. It is a value without state and safe
// for concurrent use; the zero value lets nothing through.
type Compartment struct {
	Contract Contract
}

// An Offer is one piece of context on its way to a reader.
type Offer struct {
	Source     Source
	Title      string             // heading: the dependency's title, the input's name, a memory key
	Assignee   string             // who did the dependency; empty reads "unknown"
	Status     task.Status        // of the dependency; empty for anything else
	Envelope   *envelope.Envelope // nil when there is no result
	As         task.Payload
	Folder     string             // AsFiles: of the workspace, for the list of files; "." is the workspace itself
	Cache      *FolderCache       // AsFiles: may be nil
	Optional   bool               // when withheld, the reader sees a line instead of failing
	Translated *envelope.Envelope // the answer to NeedsTranslation, derived from Envelope

	// ShowsParents says that whoever may see the value may know what it was made from.
	ShowsParents bool
}

// GateOutbound rules on an offer and seals what may be delivered. A withheld offer comes
// back sealed as a withheld line if it is optional; otherwise the error is the
// [*WithheldError] that its reader fails with. Any other error means that the gate
// could not decide.
func (c *Compartment) GateOutbound(ctx context.Context, o *Offer, now time.Time) (Sealed, error) {
	d, err := c.Decide(ctx, o, now)
	if err != nil {
		return Sealed{}, err
	}
	return c.Seal(o, &d)
}

// Decide rules on an offer at the given time. It changes nothing, and the same
// arguments give the same decision. The checks run in this order: contract
// alive, a result there, genuine, fresh, granted, minimal, label within policy
// and contract, parts, translation, recast; what is left must be small enough to
// be checked, is redacted, its control tokens are broken, and it is cut.
//
// When ctx ends, redaction stops: the value is withheld, and the error wraps
// the context's cause. The context does nothing else.
func (c *Compartment) Decide(ctx context.Context, o *Offer, now time.Time) (Ruling, error) {
	if ctx == nil || c == nil || o == nil {
		return Ruling{}, errNothing
	}
	d := Ruling{
		Decision: Decision{Source: o.Source, To: c.Contract.Callee, Task: c.Contract.Task, From: o.Assignee, Mode: handoff.Full},
		session:  c.Contract.Session, about: o.Envelope,
	}
	if o.Envelope != nil {
		d.Envelope, d.From = o.Envelope.ID(), o.Envelope.Producer()
		d.Before, d.AnswerTruncated = o.Envelope.Classification(), o.Envelope.Truncated()
		d.After = d.Before
		d.Provenance, d.BytesBefore = o.provenance(), d.sizeOf(o.asked())
	}
	if k := c.Contract; !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt) {
		d.withhold(RuleContract, ReasonExpired, "its contract ended at "+k.ExpiresAt.Format(time.RFC3339))
		return d, nil
	}
	if o.Envelope == nil {
		d.withholdAbsent(o.Status)
		return d, nil
	}
	if o.Envelope.Genuine() != nil {
		d.withhold(RuleDigest, ReasonTampered, "it was altered after it was made")
		return d, nil
	}
	g := c.grant(o)
	if g != nil {
		d.Line = g.Line
	}
	if !d.fresh(o.Envelope, g, now) {
		return d, nil
	}
	if g == nil || len(g.Paths) == 0 {
		d.Narrowing = &Narrowing{Dropped: topLevel(o.Envelope.Open())}
		d.withhold(RuleGrant, ReasonRule, "nothing grants it")
		return d, nil
	}
	if g.Terms != nil && (g.Terms.from != d.From || g.Terms.to != d.To) {
		d.withhold(RuleGrant, ReasonRule, "it is granted under the terms of another pair")
		return d, nil
	}
	err := c.rule(ctx, o, g, &d, now)
	return d, err
}

// fresh rules on the expiry of what is offered, or of the grant's renewal of it.
func (d *Ruling) fresh(e *envelope.Envelope, g *Grant, now time.Time) bool {
	err := e.Fresh(now)
	d.expires = e.ExpiresAt()
	if errors.Is(err, envelope.ErrExpired) && g != nil && g.Terms != nil && g.Terms.renew != nil {
		if until := e.CreatedAt().Add(g.Terms.renew.TTL); now.Before(until) {
			d.Entries, d.expires = append(d.Entries, Entry{EntryRenewed, g.Terms.renew.Name}), until
			return true
		}
	}
	if err != nil {
		d.withhold(RuleExpiry, ReasonExpired, err.Error())
	}
	return err == nil
}

// rule rules on what is genuine, fresh and granted.
func (c *Compartment) rule(ctx context.Context, o *Offer, g *Grant, d *Ruling, now time.Time) error {
	if d.minimized(g) {
		return nil
	}
	x, ok := c.admit(o, g, d)
	if !ok {
		return nil
	}
	d.apply(g)
	s, err := g.selects()
	if err != nil {
		return fmt.Errorf("%s %q: %w", d.Source.Kind, d.Source.Name, err)
	}
	if x.Lowers != nil {
		if !d.lower(o, x.Lowers) {
			return nil
		}
		s = narrowed(s.Only(x.Lowers.Paths...))
	}
	if o.As == AsFiles {
		return c.files(ctx, o, g, s, d)
	}
	p, ok := c.parts(o, g, s, d)
	if !ok {
		return nil
	}
	t := g.Terms
	if t != nil && t.translation.byModel && (g.Source.Kind == handoff.Dependency || g.Source.Kind == handoff.Input) {
		if p, ok = c.translated(o, g, d, p, now); !ok {
			return nil
		}
	}
	if t != nil && t.translation.recast == RecastSystem && d.trust != label.Endorsed && !Instructs(g.Source, d.From) {
		d.Rule, d.Line = g.deciding(d)
		d.withhold(d.Rule, ReasonRule, "it is to be recast into the system prompt, and no entry endorses it")
		return nil
	}
	return c.finish(ctx, g, d, p, o.As)
}

// minimized decides on a value that is delivered as heading and status only. Its
// label does not matter, since nothing labeled passes.
func (d *Ruling) minimized(g *Grant) bool {
	t := g.Terms
	if t.Mode() != handoff.Minimal || Instructs(g.Source, d.From) {
		return false
	}
	d.Mode, d.Rule, d.Line = handoff.Minimal, t.stated.Rule, cmp.Or(t.stated.Line, d.Line)
	d.Verdict, d.Reason, d.Detail = Minimized, ReasonMinimal, "only its heading and status are delivered"
	return true
}

// admit rules on the label of a value, under the terms of the pair and the
// contract. It reports false if the value is withheld.
func (c *Compartment) admit(o *Offer, g *Grant, d *Ruling) (Admission, bool) {
	x := g.Admit(d.Before, c.Contract.Clearance, c.Contract.Callee)
	d.After, d.trust = x.After, o.Envelope.Trust()
	switch {
	case x.Withheld():
		d.refuse(&x)
	case x.After > c.Contract.MaxInput && !g.IsEmptyLayer(o):
		d.withhold(RuleClearance, ReasonClearance, fmt.Sprintf("it is %v, and the contract lets %v through", x.After, c.Contract.MaxInput))
	default:
		return x, true
	}
	return x, false
}

// apply notes the endorsement, the mode and the rule of the terms.
func (d *Ruling) apply(g *Grant) {
	t := g.Terms
	if t == nil {
		return
	}
	if t.endorse != nil && d.trust != label.Endorsed {
		d.trust, d.Entries = label.Endorsed, append(d.Entries, Entry{EntryEndorsed, t.endorse.Name})
	}
	if Instructs(g.Source, d.From) {
		return
	}
	if d.Mode = t.mode; t.stated.Rule != "" {
		d.Rule, d.Line = t.stated.Rule, cmp.Or(t.stated.Line, d.Line)
	}
}

// validated are the kinds of context that schemas are checked against.
var validated = map[handoff.SourceKind]bool{handoff.Dependency: true, handoff.Condition: true, handoff.Arguments: true}

// lower applies a declassifier, which lowers only the validated parts of a result or of
// the arguments of a tool unless it allows unsafe text. It reports false if the value is
// withheld.
func (d *Ruling) lower(o *Offer, by *handoff.Declassifier) bool {
	if o.Source.Kind == Reasoning || !by.UnsafeText && (!validated[o.Source.Kind] || !o.Envelope.Structured()) {
		d.withhold(handoff.Rule(by.Name), ReasonRule, fmt.Sprintf("it is %v, and only the validated parts of a result are lowered", d.Before))
		return false
	}
	d.Entries, d.lowers = append(d.Entries, Entry{EntryLowered, by.Name}), by
	return true
}

// refuse withholds a value because of its label. If the label alone
// decides, the rule is that of the lattice.
func (d *Ruling) refuse(x *Admission) {
	d.withhold(x.Rule, x.Reason, x.Detail)
	d.Line = cmp.Or(x.Line, d.Line)
}

// grant returns the contract's grant of what an offer has, or nil.
func (c *Compartment) grant(o *Offer) *Grant {
	if o.Source.Kind == "" {
		return nil
	}
	first := 0
	if c.Contract.bySource != nil {
		i, ok := c.Contract.bySource[o.Source]
		if !ok {
			return nil
		}
		first = i
	}
	for i := first; i < len(c.Contract.Grants); i++ {
		if g := &c.Contract.Grants[i]; g.Source == o.Source && (g.At == "" || g.At == o.Folder) {
			return g
		}
	}
	return nil
}

// asked returns the parts of the payload that the reader asks for: unless it says otherwise, the text, or the structured
// part of a payload without one.
func (o *Offer) asked() envelope.Payload {
	p := o.Envelope.Open()
	switch {
	case o.As == task.Structured:
		return p.WithText("")
	case o.As != task.Both && p.Text() != "":
		return envelope.Text(p.Text())
	}
	return p
}

// parts picks the parts of the payload that were asked for and are granted. It reports
// false if there are none.
func (c *Compartment) parts(o *Offer, g *Grant, s pick.Selection, d *Ruling) (_ envelope.Payload, ok bool) {
	p := o.Envelope.Open()
	if _, structured := p.JSON(); !structured && (o.As == task.Structured || o.As == task.Both) {
		d.withhold(RulePayload, ReasonRule, "it has no validated structured result")
		return envelope.Payload{}, false
	}
	if s.Whole() && g.Item == "" {
		return o.asked(), true
	}
	return c.narrow(g, s, p, d)
}

// translated requests a translation by a model, or decides on the one that is
// offered, as Decide does on the original: it is new context, and may be worse. It
// reports false unless a translation passes.
func (c *Compartment) translated(o *Offer, g *Grant, d *Ruling, left envelope.Payload, now time.Time) (_ envelope.Payload, ok bool) {
	t := o.Translated
	if t == nil {
		d.Verdict, d.left = NeedsTranslation, left
		d.Rule, d.Line = g.deciding(d)
		d.Translate = &handoff.Translation{MaxTokens: g.Terms.translation.maxTokens, ByModel: true}
		return envelope.Payload{}, false
	}
	switch {
	case t.Genuine() != nil, !derives(t, o.Envelope), t.Classification() < d.After:
		d.withhold(RuleDigest, ReasonTampered, "its translation does not derive from it")
		return envelope.Payload{}, false
	case t.Fresh(now) != nil:
		d.withhold(RuleExpiry, ReasonExpired, "its translation is not fresh")
		return envelope.Payload{}, false
	}
	undeclassified := *g.Terms // an entry lowers what the producer made, and not what a model made of it
	undeclassified.lower = nil
	if x := undeclassified.Admit(t.Classification(), c.Contract.Clearance, c.Contract.Callee); x.Withheld() {
		d.refuse(&x)
		return envelope.Payload{}, false
	}
	if t.Classification() > c.Contract.MaxInput {
		d.withhold(RuleClearance, ReasonClearance, fmt.Sprintf("its translation is %v, and the contract lets %v through", t.Classification(), c.Contract.MaxInput))
		return envelope.Payload{}, false
	}
	d.After, d.replaced, d.Translated = t.Classification(), t, true
	d.expires, d.trust = Earliest(d.expires, t.ExpiresAt()), d.trust.Join(t.Trust())
	return envelope.Text(t.Open().Text()), true
}

// finish redacts, breaks control tokens and cuts. After an error the value is withheld.
func (c *Compartment) finish(ctx context.Context, g *Grant, d *Ruling, p envelope.Payload, as task.Payload) error {
	if c.Contract.toAgent() && p.Size() > MaxRedact {
		d.withholdValue(RuleSize, fmt.Sprintf("it has more than %d bytes, the most that can be checked", MaxRedact))
		return nil
	}
	p, err := c.redactPayload(ctx, g, d, p)
	if err != nil {
		n := *d.Parts()
		n.Dropped = nil
		d.Narrowing = &n
		d.withholdValue(RuleRedact, "it could not be checked for secrets and personal data")
		return fmt.Errorf("redact %s %q: %w", d.Source.Kind, d.Source.Name, err)
	}
	if c.Contract.toAgent() {
		var ok bool
		if p, d.Broken, ok = breakPayloadTokens(p); !ok {
			d.withholdValue(RuleTokens, "its keys cannot be told apart once the control tokens in them are broken")
			return nil
		}
		if g.Item != "" {
			if p, ok = itemOf(p, g.Item); !ok {
				d.withholdValue(RuleGrant, "the list has no such item")
				return nil
			}
		}
		if t := g.Terms; t != nil && t.translation.active && !Instructs(g.Source, d.From) {
			d.Translated = true
			if t.translation.maxTokens > 0 {
				p, d.CutFrom = excerpt(p, min(t.translation.maxTokens, MaxRedact)*BytesPerToken)
			}
			d.recast = t.translation.recast
		}
		limit := g.limit(as)
		if canonical, _ := p.JSON(); len(canonical) > limit { // structured values are never cut
			d.withholdValue(RuleStructuredSize, fmt.Sprintf("its structured value has more than %d bytes, the most that is delivered", limit))
			return nil
		}
		var from int
		if p, from = cut(p, limit); from > 0 {
			d.CutFrom, d.Truncated = max(d.CutFrom, from), true
		}
	}
	d.Verdict, d.BytesAfter, d.delivered = Passed, d.sizeOf(p), p
	d.Rule, d.Line = g.deciding(d)
	return nil
}

// Rules that withhold a value because nothing harmless could be made of it.
const (
	RuleRedact handoff.Rule = "redact" // it could not be redacted
	RuleTokens handoff.Rule = "tokens" // its control tokens could not be broken
)

// withhold rules that nothing is delivered.
func (d *Decision) withhold(rule handoff.Rule, why string, detail string) {
	d.Verdict, d.Rule, d.Reason, d.Detail = Withheld, rule, why, detail
	d.Redacted, d.Revealed, d.Broken, d.CutFrom, d.Truncated, d.BytesAfter, d.Translated = nil, nil, 0, 0, false, 0, false
	if d.Envelope != "" {
		d.BytesBefore = bytesize.Class(max(d.BytesBefore, 1))
	}
	if len(d.Parts().Kept) > 0 {
		n := *d.Narrowing
		n.Kept = nil
		d.Narrowing = &n
	}
	d.Entries, d.After = nil, d.Before // nothing was lowered, endorsed or renewed
}

// withholdValue withholds because of more of the value than its label, which the
// detail may reveal.
func (d *Decision) withholdValue(rule handoff.Rule, detail string) {
	d.withhold(rule, ReasonRule, detail)
	d.byValue = true
}

// withholdAbsent rules on a dependency without a result.
func (d *Decision) withholdAbsent(s task.Status) {
	why := ReasonRule
	switch s {
	case task.Failed:
		why = ReasonFailed
	case task.Skipped:
		why = ReasonSkipped
	case task.NotNeeded:
		why = ReasonNotNeeded
	}
	if d.Source.Kind == handoff.Conversation {
		d.withhold(RuleStatus, why, "the journal does not have it")
		return
	}
	d.withhold(RuleStatus, why, "it has no result, its status is "+string(s))
}

// ErrUnsealed reports a [Sealed] that no gate made, or that was made for another reader.
var ErrUnsealed = errors.New("not sealed for this reader")
