package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// arguments returns the arguments of the call, which match the schema of the tool.
func (c *toolCall) arguments(ctx context.Context) (jsonvalue.Value, error) {
	v, err := jsonvalue.Parse(c.call.Arguments)
	if err != nil {
		return v, err
	}
	if err := c.parameters.ValidateContext(ctx, v); err != nil {
		return v, errors.New(schema.Problem(err))
	}
	return v, nil
}

// refusalOf says why the gate refused arguments, in words for the agent.
func refusalOf(err error) string {
	if r, ok := errors.AsType[*gate.Refusal](err); ok {
		return r.Reason
	}
	if h, ok := errors.AsType[*gate.WithheldError](err); ok {
		return h.Decision.Detail
	}
	return err.Error()
}

// deliverArguments takes the arguments through the gate, and makes what it delivers those of
// the call. If the call cannot be made with them, it says why.
func (c *toolCall) deliverArguments(ctx context.Context, a *attempt, x *modelCall, value jsonvalue.Value) (problem string) {
	if err := c.offerArguments(ctx, a, x, value); err != nil {
		return "Call refused: " + refusalOf(err) + "."
	}
	if d := c.delivery.sealed[0].Decision(); d.Verdict == gate.Minimized {
		return "Call refused: the policy delivers no arguments to " + c.tool.Name + "."
	} else if c.delivery.sealed[0].Withheld() {
		return "Call refused: " + cmp.Or(d.Detail, string(d.Reason)) + "."
	}
	canonical, structured := c.delivery.sealed[0].Payload().JSON()
	if !structured {
		return "Call refused: the policy translates what " + c.tool.Name + " gets into a text, and arguments must be a value."
	}
	if canonical != value.Canonical() {
		c.call.Arguments = canonical
		if _, err := c.arguments(ctx); err != nil {
			return "Invalid arguments, once they are redacted: " + err.Error() + "."
		}
	}
	return ""
}

// offerArguments takes the arguments through the gate, to the tool.
func (c *toolCall) offerArguments(ctx context.Context, a *attempt, x *modelCall, value jsonvalue.Value) error {
	h, now := c.from.Header(), time.Now()
	e, err := envelope.New(envelope.Header{
		ID: envelope.ID(x.identity() + "/" + c.call.ID + "/arguments"), Producer: h.Producer, Task: h.Task, Run: h.Run, Classification: h.Classification, Trust: h.Trust,
		CreatedAt: now, ExpiresAt: h.ExpiresAt, DerivedFrom: []envelope.ID{h.ID},
	}, envelope.Text("").WithStructured(value))
	if err != nil {
		return err
	}
	source := gate.Source{Kind: handoff.Arguments, Name: c.id}
	g := gate.WholeOf(source, "tools")
	reader := gate.ToolReader(c.tool.Name)
	g.Terms = a.by.Terms(h.Producer, reader)
	c.delivery = modelCall{run: a.run, request: request{
		child: a.child,
		by:    a.by,
		task:  &task.Task{ID: a.task.ID, Spec: task.Spec{Title: a.task.Title, Assignee: a.task.Assignee, Classification: label.Public}},
		caps:  &gate.Capabilities{Agent: reader, Accepts: c.tool.Accepts, Produces: c.tool.Level()}, bound: label.Secret, number: a.number, part: x.part + "/" + c.call.ID,
		start: now, began: now, declassified: true, least: label.Public,
	}}
	c.delivery.offers, c.delivery.grants = []gate.Offer{{Source: source, Title: c.tool.Name, Envelope: e, Optional: true}}, []gate.Grant{g}
	return c.delivery.seal(ctx)
}

// recordArguments records the decision on the arguments of a call and, if the call is made
// now, that it begins. It returns when that is durable.
func (r *recorder) recordArguments(ctx context.Context, c *toolCall, begins bool) error {
	handed := r.handoffs(&c.delivery, time.Now())
	var begin *record.CallStart
	if begins {
		begin = c.begin()
	}
	if r.sink == nil && !r.bus.live() || len(handed) == 0 && !begins {
		return nil
	}
	rec := record.Prompt{Handoffs: handed}
	if err := r.callSink(ctx, &c.delivery.request, rec); err != nil {
		return err
	}
	entries := []record.Entry{{Record: &rec}}
	if begins {
		entries = append(entries, record.Entry{ToolCall: begin})
	}
	b := r.ledger.add(nil, entries...)
	r.emitUses(&c.delivery)
	return r.ledger.wait(ctx, b)
}

// begin returns what a journal stores of the beginning of the call, and spends its approval.
func (c *toolCall) begin() *record.CallStart {
	begin := &record.CallStart{
		Session: c.id, Key: c.key, Task: c.delivery.task.ID, Agent: c.delivery.caps.Agent, Attempt: c.delivery.number, Time: c.delivery.start, Bytes: c.shownBytes(), Effect: string(c.effect()), Repeatable: c.tool.Repeatable,
		ApprovedBy: c.approved.by, Always: c.approved.always,
	}
	if c.approved.always {
		begin.Definition = c.definition()
	}
	c.delivery.run.approvals.Spend(begin)
	return begin
}
