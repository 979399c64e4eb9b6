// Package handoff decides whether an envelope may cross to a reader, and in
// which form.
//
// A handshake ([Negotiate]) fixes what may flow before anything does. The
// [Compartment] then enforces the [Contract] at one place: [Compartment.Decide]
// rules, [Compartment.Seal] makes the only type that a prompt can be built
// from, and [Compartment.GateInbound] rules on what comes back. Everything
// here computes and nothing else: time comes in as an argument, and an error
// means that the gate could not decide, in which case nothing passes.
package handoff

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// Sizes of what may cross to an agent.
const (
	MaxPayload = 64 << 10 // of one dependency or input; a text is cut, a structured value is held
	MaxRedact  = 1 << 20  // of a value before redaction; above it is held
)

// Rules of the gate, beside those of the handshake.
const (
	RuleContract Rule = "contract" // the contract is over
	RuleExpiry   Rule = "expiry"   // expired, or from the future
	RuleDigest   Rule = "digest"   // altered since it was made
	RuleSecret   Rule = "secret"   // secret flows only by a rule for the exact pair
	RuleSize     Rule = "size"     // too large to redact

	// RuleStructuredSize holds a structured value that is too large to deliver: it cannot be cut.
	RuleStructuredSize Rule = "structured size"

	RulePayload Rule = "payload" // the form asked for does not exist
	RuleStatus  Rule = "status"  // the source has no result
	RuleClaim   Rule = "claim"   // a reply claims to be above its ceiling
	RuleSchema  Rule = "schema"  // a reply does not match the schema
)

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
	Optional   bool               // when held, the reader sees a line instead of failing
	Translated *envelope.Envelope // the answer to NeedsTranslation, derived from Envelope
}

// GateOutbound rules on an offer and seals what may cross. A held offer comes
// back sealed as a withheld line if it is optional; otherwise the error is the
// [*HeldError] that its reader fails with. Any other error means that the gate
// could not decide.
func (c *Compartment) GateOutbound(o *Offer, now time.Time) (Sealed, error) {
	d, err := c.Decide(o, now)
	if err != nil {
		return Sealed{}, err
	}
	return c.Seal(o, &d)
}

// Decide rules on an offer at the given time. It changes nothing, and the same
// arguments give the same decision. The checks run in this order: contract
// alive, a result there, genuine, fresh, label within the contract, secret,
// granted, translation, form; then the text is redacted and cut.
func (c *Compartment) Decide(o *Offer, now time.Time) (Ruling, error) {
	d := Ruling{
		Decision: Decision{Source: o.Source, To: c.Contract.Callee, Task: c.Contract.Task, From: o.Assignee, Mode: Full},
		session:  c.Contract.Session, about: o.Envelope,
	}
	if o.Envelope != nil {
		d.Envelope, d.From = o.Envelope.ID(), o.Envelope.Producer()
		d.Before = o.Envelope.Classification()
		d.After = d.Before
		d.BytesBefore = o.Envelope.Open().Size()
	}
	if k := c.Contract; !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt) {
		d.hold(RuleContract, ReasonExpired, "its contract ended at "+k.ExpiresAt.Format(time.RFC3339))
		return d, nil
	}
	if o.Envelope == nil {
		d.absent(o.Status)
		return d, nil
	}
	if o.Envelope.Genuine() != nil {
		d.hold(RuleDigest, ReasonTampered, "it was altered after it was made")
		return d, nil
	}
	if err := o.Envelope.Fresh(now); err != nil {
		d.hold(RuleExpiry, ReasonExpired, err.Error())
		return d, nil
	}
	grant := c.grant(o.Source)
	if grant != nil {
		d.Line = grant.Line
	}
	if rule, why, detail := c.Contract.Admits(d.Before); rule != "" {
		d.hold(rule, why, detail)
		return d, nil
	}
	if grant == nil || !slices.Contains(grant.Paths, task.Whole) {
		d.Dropped = topLevel(o.Envelope.Open())
		d.hold(RuleGrant, ReasonRule, "nothing grants it")
		return d, nil
	}
	payload, verdict := c.deliverable(o, grant, &d, now)
	if verdict != Passed {
		return d, nil
	}
	err := c.gated(&d, payload)
	return d, err
}

// grant returns the contract's grant of a source, or nil.
func (c *Compartment) grant(s Source) *Grant {
	if s.Kind == 0 {
		return nil
	}
	if c.Contract.bySource != nil {
		if i, ok := c.Contract.bySource[s]; ok && i < len(c.Contract.Grants) && c.Contract.Grants[i].Source == s {
			return &c.Contract.Grants[i]
		}
		return nil
	}
	for i := range c.Contract.Grants {
		if g := &c.Contract.Grants[i]; g.Source == s {
			return g
		}
	}
	return nil
}

// deliverable picks the parts of the payload that were asked for, or holds.
func (c *Compartment) deliverable(o *Offer, g *Grant, d *Ruling, now time.Time) (envelope.Payload, Verdict) {
	from := o.Envelope
	if g.Translate != nil {
		if o.Translated == nil {
			d.Verdict, d.Rule, d.Translate = NeedsTranslation, granting(o.Source), g.Translate
			return envelope.Payload{}, NeedsTranslation
		}
		from = o.Translated
		if !c.translated(o, d, now) {
			return envelope.Payload{}, Held
		}
		d.After, d.retold = from.Classification(), from
	}
	p := from.Open()
	_, structured := p.JSON()
	asked := o.As == task.Structured || o.As == task.Both
	if !asked && (p.Text() != "" || !structured) {
		return envelope.Text(p.Text()), Passed
	}
	if !structured {
		d.hold(RulePayload, ReasonRule, "it has no validated structured result")
		return envelope.Payload{}, Held
	}
	if o.As == task.Structured {
		p = p.WithText("")
	}
	return p, Passed
}

// translated rules on what is offered as the translation of an offer, as
// Decide does on the original: it is new context, and may be worse.
func (c *Compartment) translated(o *Offer, d *Ruling, now time.Time) bool {
	t := o.Translated
	switch {
	case t.Genuine() != nil, !slices.Contains(t.Header().DerivedFrom, o.Envelope.ID()), t.Classification() < d.Before:
		d.hold(RuleDigest, ReasonTampered, "its translation does not derive from it")
		return false
	case t.Fresh(now) != nil:
		d.hold(RuleExpiry, ReasonExpired, "its translation is not fresh")
		return false
	}
	if rule, why, detail := c.Contract.Admits(t.Classification()); rule != "" {
		d.hold(rule, why, detail)
		return false
	}
	return true
}

// gated redacts, breaks control tokens and cuts. An error holds.
func (c *Compartment) gated(d *Ruling, p envelope.Payload) error {
	if c.Contract.toAgent() && p.Size() > MaxRedact {
		d.hold(RuleSize, ReasonRule, fmt.Sprintf("it has %d bytes, at most %d can be checked", p.Size(), MaxRedact))
		return nil
	}
	p, counts, err := redacted(p)
	if err != nil {
		d.Dropped = nil
		d.hold(RuleRedact, ReasonRule, "it could not be checked for secrets")
		return fmt.Errorf("redact %s %q: %w", d.Source.Kind, d.Source.Name, err)
	}
	d.Redacted = counts
	if c.Contract.toAgent() {
		var ok bool
		if p, d.Broken, ok = broken(p); !ok {
			d.hold(RuleTokens, ReasonRule, "its keys cannot be told apart once the control tokens in them are broken")
			return nil
		}
		if canonical, _ := p.JSON(); len(canonical) > MaxPayload { // structured values are never cut
			d.hold(RuleStructuredSize, ReasonRule, fmt.Sprintf("its structured result has %d bytes, at most %d are delivered", len(canonical), MaxPayload))
			return nil
		}
		p, d.CutFrom = cut(p, MaxPayload)
	}
	d.Verdict, d.Rule, d.BytesAfter, d.crossing = Passed, granting(d.Source), p.Size(), p
	return nil
}

// Rules that hold a value because nothing harmless could be made of it.
const (
	RuleRedact Rule = "redact" // it could not be redacted
	RuleTokens Rule = "tokens" // its control tokens could not be broken
)

var secrets = redact.Secrets()

// redacted takes secrets out of both parts.
func redacted(p envelope.Payload) (envelope.Payload, redact.Counts, error) {
	text, counts, err := secrets.Text(p.Text())
	if err != nil {
		return envelope.Payload{}, nil, err
	}
	canonical, ok := p.JSON()
	if !ok {
		if counts == nil {
			return p, nil, nil
		}
		return envelope.Text(text), counts, nil
	}
	clean, more, err := secrets.JSON(canonical)
	if err != nil {
		return envelope.Payload{}, nil, err
	}
	p = p.WithText(text)
	if clean != canonical {
		v, err := envelope.ParseJSON(clean)
		if err != nil {
			return envelope.Payload{}, nil, err
		}
		p = p.WithStructured(v)
	}
	return p, sum(counts, more), nil
}

func sum(a, b redact.Counts) redact.Counts {
	if len(a) == 0 {
		return b
	}
	for kind, n := range b {
		a[kind] += n
	}
	return a
}

// hold rules that nothing crosses.
func (d *Decision) hold(rule Rule, why Reason, detail string) {
	d.Verdict, d.Rule, d.Reason, d.Detail = Held, rule, why, detail
	d.Redacted, d.Broken, d.CutFrom, d.BytesAfter = nil, 0, 0, 0
}

// absent rules on a dependency without a result.
func (d *Decision) absent(s task.Status) {
	why := ReasonRule
	switch s {
	case task.Failed:
		why = ReasonFailed
	case task.Skipped:
		why = ReasonSkipped
	}
	d.hold(RuleStatus, why, "it has no result, its status is "+string(s))
}

// topLevel lists what a held payload would have delivered: one path for each
// member of an object, the keys unnamed because no schema vouches for them.
func topLevel(p envelope.Payload) []task.Path {
	canonical, ok := p.JSON()
	if !ok {
		return []task.Path{task.Whole}
	}
	v, err := envelope.ParseJSON(canonical)
	if err != nil {
		return []task.Path{task.Whole}
	}
	members, ok := v.Value().(map[string]any)
	if !ok || len(members) == 0 {
		return []task.Path{task.Whole}
	}
	return slices.Repeat([]task.Path{"/*"}, len(members))
}

func quote(s string) string { return strconv.Quote(s) }

// ErrUnsealed reports a [Sealed] that no gate made, or that was made for another reader.
var ErrUnsealed = errors.New("not sealed for this reader")
