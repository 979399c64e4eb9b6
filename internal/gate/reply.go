package gate

import (
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/label"
)

// A Reply is what an agent gives back, before the gate ruled on it.
type Reply struct {
	Session string      // of the contract that it answers; empty is not checked
	ID      envelope.ID // of the envelope to be made
	Text    string
	JSON    jsonvalue.Value       // its structured part, if the agent read it already; else the zero value
	Tags    []string              // tags that the agent claims
	Claim   *label.Classification // level that the agent claims; nil claims nothing
	TTL     time.Duration         // own life of the result; zero means unlimited

	Truncated bool     // a limit on tokens ended the answer, and the task accepted it
	Earlier   *Earlier // of an answer that was given before; nil for one to this contract's prompt
}

// Earlier is what a result was when it was first given. Issued anew, it is at
// least as sensitive, were it above what the contract let in, and lives no longer.
type Earlier struct {
	Classification label.Classification
	ExpiresAt      time.Time // zero means never
}

// A Validator holds a structured result to the schema that its task declares.
type Validator interface {
	Validate(v jsonvalue.Value) error
}

// GateInbound rules on a reply and makes the envelope of a result.
//
// The reply must come within the contract's life, be at most [MaxReply] bytes large, claim nothing above its ceiling,
// match the schema (nil: any text does), and carry the required tags. The label is computed and never taken from the
// reply: as sensitive as what the contract let in, and it expires with the part that expires first. It is untrusted,
// whatever it was made from: an endorsement covers only the text that was endorsed. A reply that is refused comes back
// as a decision that withholds it, without an envelope; the error then is its [*WithheldError].
func (c *Compartment) GateInbound(r Reply, parts []Sealed, schema Validator, now time.Time) (*envelope.Envelope, Decision, error) {
	if c == nil {
		return nil, Decision{}, errNothing
	}
	k := &c.Contract
	d := Decision{Rule: RuleResult, Mode: handoff.Full, Envelope: r.ID, From: k.Callee, To: k.Caller, Task: k.Task,
		Source: Source{Kind: handoff.Dependency, Name: string(k.Task)}, Before: k.MaxInput, After: k.MaxInput, Sizes: Sizes{BytesBefore: len(r.Text)}}
	payload, tags, refused := k.accept(&r, schema, now)
	if refused != nil {
		return d.refused(refused)
	}
	h := envelope.Header{ID: r.ID, Producer: k.Callee, Task: k.Task, Run: k.Run, Classification: k.MaxInput, CreatedAt: now, Tags: tags, Truncated: r.Truncated}
	if e := r.Earlier; e != nil {
		h.Classification, h.ExpiresAt = h.Classification.Join(e.Classification), e.ExpiresAt
	}
	if r.TTL > 0 {
		h.ExpiresAt = Earliest(h.ExpiresAt, now.Add(r.TTL))
	}
	if _, err := k.derive(&h, parts); err != nil {
		return nil, d, fmt.Errorf("gate the reply of %q: %w", k.Callee, err)
	}
	if !h.ExpiresAt.IsZero() && !now.Before(h.ExpiresAt) {
		return d.refused(refusal(RuleExpiry, "what it was made from expired meanwhile"))
	}
	if !k.replied.CompareAndSwap(false, true) {
		return d.refused(refusal(RuleContract, "a reply has come under this contract already"))
	}
	e, err := envelope.New(h, payload)
	if err != nil {
		return nil, d, fmt.Errorf("gate the reply of %q: %w", k.Callee, err)
	}
	d.Verdict, d.After, d.BytesAfter = Passed, h.Classification, d.sizeOf(payload)
	return e, d, nil
}

// accept returns the payload and the tags of a reply, or why it is refused.
func (k *Contract) accept(r *Reply, schema Validator, now time.Time) (envelope.Payload, []string, *Refusal) {
	var none envelope.Payload
	switch {
	case k.Session == "" || k.replied == nil:
		return none, nil, refusal(RuleContract, "there is no contract that a handshake made")
	case r.Session != "" && r.Session != k.Session:
		return none, nil, refusal(RuleContract, "the reply belongs to another contract")
	case !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt):
		return none, nil, refusal(RuleContract, "the reply came after the contract had ended")
	case r.tooLarge():
		return none, nil, refusal(RuleReplySize, tooLargeReply)
	case r.Claim != nil && *r.Claim > k.MaxOutput:
		return none, nil, refusal(RuleClaim, fmt.Sprintf("the reply claims to be %v, at most %v can come out of what it was given", *r.Claim, k.MaxOutput))
	}
	payload, err := r.payload(schema)
	if err != nil {
		return none, nil, refusal(RuleSchema, err.Error())
	}
	if r.tooLarge() { // with the structured part that the text holds
		return none, nil, refusal(RuleReplySize, tooLargeReply)
	}
	if undeclared := without(r.Tags, k.DeclaredTags); len(undeclared) > 0 {
		return none, nil, refusal(RuleTags, fmt.Sprintf("the reply carries tags that %s does not declare", strconv.Quote(k.Callee)))
	}
	tags := carried(r.Tags, k.DeclaredTags, r.JSON)
	if missing := without(k.RequiredTags, tags); len(missing) > 0 {
		return none, nil, refusal(RuleTags, fmt.Sprintf("the reply lacks the required tags %q", missing))
	}
	return payload, tags, nil
}

func refusal(rule handoff.Rule, reason string) *Refusal {
	return &Refusal{Rule: rule, Reason: reason}
}

// refused withholds a reply for a reason, and returns it as GateInbound does.
func (d *Decision) refused(r *Refusal) (*envelope.Envelope, Decision, error) {
	d.withhold(r.Rule, ReasonRule, r.Reason)
	return nil, *d, d.Err()
}

// derive writes into a header from which envelopes its payload derives, and when the
// first of them expires. It returns the most hops that any of them has. Every part must
// be sealed under the contract.
func (k *Contract) derive(h *envelope.Header, parts []Sealed) (hops int, err error) {
	h.DerivedFrom = make([]envelope.ID, 0, len(parts))
	for i := range parts {
		s := &parts[i]
		if err := s.For(k); err != nil {
			return 0, err
		}
		if !s.IsEmpty() {
			h.DerivedFrom = append(h.DerivedFrom, s.envelope)
			h.ExpiresAt = Earliest(h.ExpiresAt, s.expiresAt)
			hops = max(hops, s.hops)
		}
	}
	return hops, nil
}

// GateFault makes the envelope of an error text that belongs to the contract's
// session. It may quote the prompt, so it is labelled as a reply is; but it may
// come late and more than once, and carries no tags.
func (c *Compartment) GateFault(id envelope.ID, text string, parts []Sealed, now time.Time) (*envelope.Envelope, error) {
	if c == nil {
		return nil, errNothing
	}
	k := c.Contract
	k.ExpiresAt, k.RequiredTags = time.Time{}, nil
	if k.replied != nil {
		k.replied = new(atomic.Bool)
	}
	e, _, err := (&Compartment{Contract: k}).GateInbound(Reply{ID: id, Text: text}, parts, nil, now)
	return e, err
}

// payload returns the reply's text, with its structured part if a schema asks for one.
func (r *Reply) payload(schema Validator) (envelope.Payload, error) {
	if schema == nil {
		return envelope.Text(r.Text), nil
	}
	if r.JSON.Canonical() == "" {
		v, text, err := jsonvalue.Find(r.Text, nil)
		if err != nil {
			return envelope.Payload{}, err
		}
		r.JSON, r.Text = v, text
	}
	if err := schema.Validate(r.JSON); err != nil {
		return envelope.Payload{}, err
	}
	return envelope.Text(r.Text).WithStructured(r.JSON), nil
}

// carried returns the declared tags that a reply carries: those it claims, and
// those whose property is at the top level of its structured part.
func carried(claimed, declared []string, v jsonvalue.Value) []string {
	if len(declared) == 0 {
		return nil
	}
	members, _ := v.Value().(map[string]any)
	var tags []string
	for _, tag := range declared {
		if _, ok := members[tag]; ok || slices.Contains(claimed, tag) {
			tags = append(tags, tag)
		}
	}
	return tags
}
