package gate

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
)

// ToolReader returns the name of a tool as a reader of arguments and a producer of results,
// in policies, decisions and records. Names of agents have no colon, so the two never collide.
func ToolReader(name string) string { return naming.ToolPrefix + name }

// GateTurn makes the envelope of what an agent said in a turn that is not its last: a text,
// and the calls of tools that it asks for. It is labelled as a reply is, carries no tags,
// and leaves the contract open for the answer.
func (c *Compartment) GateTurn(id envelope.ID, text string, calls jsonvalue.Value, parts []Sealed, now time.Time) (*envelope.Envelope, error) {
	if c == nil {
		return nil, errNothing
	}
	k := c.Contract
	k.RequiredTags = nil
	if k.replied != nil {
		k.replied = new(atomic.Bool)
	}
	var schema Validator
	if calls.Canonical() != "" {
		schema = anyValue{}
	}
	e, _, err := (&Compartment{Contract: k}).GateInbound(Reply{ID: id, Text: text, JSON: calls}, parts, schema, now)
	return e, err
}

// anyValue accepts every value.
type anyValue struct{}

// Validate returns nil.
func (anyValue) Validate(jsonvalue.Value) error { return nil }

// A ToolReply is what a tool returned, before the gate checks it.
type ToolReply struct {
	ID    envelope.ID // of the envelope to be made
	Text  string
	JSON  jsonvalue.Value       // the zero value if there is none
	Claim *label.Classification // level that the tool claims; nil means what it produces
}

// GateToolResult makes the envelope of what a tool returned. The contract is the one under
// which the tool got its arguments. The result is at least as sensitive as these and as what
// the tool produces, untrusted, and expires with the arguments. A claim above what the tool
// produces is refused with a [*Refusal].
func (c *Compartment) GateToolResult(r ToolReply, produces label.Classification, arguments *Sealed, now time.Time) (*envelope.Envelope, error) {
	if c == nil || arguments == nil {
		return nil, errNothing
	}
	k := &c.Contract
	reply := Reply{Text: r.Text, JSON: r.JSON}
	switch {
	case r.Claim != nil && *r.Claim > produces:
		return nil, refusal(RuleClaim, fmt.Sprintf("the result claims %v, but %s produces at most %v", *r.Claim, k.Callee, produces))
	case reply.tooLarge():
		return nil, refusal(RuleReplySize, tooLargeReply)
	}
	h := envelope.Header{ID: r.ID, Producer: k.Callee, Task: k.Task, Run: k.Run, Classification: k.MaxInput.Join(produces), CreatedAt: now}
	if _, err := k.derive(&h, []Sealed{*arguments}); err != nil {
		return nil, fmt.Errorf("gate the result of %s: %w", k.Callee, err)
	}
	payload := envelope.Text(r.Text)
	if r.JSON.Canonical() != "" {
		payload = payload.WithStructured(r.JSON)
	}
	return envelope.New(h, payload)
}

// Endorses reports whether an entry of the policy endorses what the pair delivers.
func (t *Terms) Endorses() bool { return t != nil && t.endorse != nil }
