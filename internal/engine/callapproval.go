package engine

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A permission says who approved a call, and whether that is for each further call of the tool too.
type permission struct {
	by     string // the person; empty if the call needs no approval
	always bool
}

// callForm is the form of an approval of a call. A script without a reply for it takes the first
// choice, which is therefore "no".
var callForm = parseForm(`{"type":"object","properties":{` +
	`"decision":{"enum":["no","yes","always"],"description":"may the call be made; always means each further call of this tool in this run, too"},` +
	`"reason":{"type":"string","maxLength":2000,"description":"why not; the agent reads it"}},` +
	`"required":["decision"],"additionalProperties":false}`)

// IsApproval reports whether a prompt asks a person whether a call of a tool may be made.
func IsApproval(p prompt.Prompt) bool { return p.Schema() == callForm().String() }

// A callApproval asks a person whether a call may be made.
type callApproval struct {
	*approval
	of *toolCall
}

// newApproval returns the question about a call.
func (c *toolCall) newApproval(l *approvalList, x *modelCall) *callApproval {
	a := l.of.attempt
	of := "a task"
	if !a.planned { // what a coordinator wrote is delivered as context only
		of = fmt.Sprintf("the task %q", a.title())
	}
	if c.isTextCall() {
		of += ", in a call that it wrote as text"
	}
	p := &callApproval{of: c, approval: newApproval(a.run, &task.Task{ID: a.task.ID, Spec: task.Spec{
		Title: plan.ApprovalTitle(c.tool.Name), Assignee: c.tool.Approve, Classification: a.task.Classification,
		Description: fmt.Sprintf("Agent %s wants to call the tool %s for %s. Effect of a call: %s. May it, with exactly these arguments?", a.by.Rules.ShownName(a.caps.Agent), c.tool.Name, of, c.effect()),
	}}, callForm(), approvedThing{title: c.title, call: c.id, tool: c.tool.Name, list: l.key})}
	p.call.by = a.by
	p.call.number, p.call.part, p.happens = a.number, x.part+"/"+c.call.ID+"/approve", c.approvalKey(l)
	source := gate.Source{Kind: handoff.Arguments, Name: c.id}
	g := gate.WholeOf(source, "approve")
	g.Terms = a.by.Terms(c.from.Producer(), c.tool.Approve)
	p.call.offers, p.call.grants = []gate.Offer{{Source: source, Title: "arguments", Envelope: c.delivery.offers[0].Envelope, Optional: true}}, []gate.Grant{g}
	return p
}

// open takes the arguments through the gate, to the person, and builds the prompt.
func (p *callApproval) open(ctx context.Context) (prompt.Prompt, error) {
	if err := p.call.seal(ctx); err != nil {
		return prompt.Prompt{}, err
	}
	if s := &p.call.sealed[0]; s.Withheld() {
		return prompt.Prompt{}, fmt.Errorf("%s may not see its arguments, and so cannot approve it: %s", p.of.tool.Approve, cmp.Or(s.Decision().Detail, string(s.Decision().Reason)))
	}
	return p.show(brief.Context{Inputs: p.call.sealed})
}

// showsAll reports whether the person sees exactly what the tool would get.
func (p *callApproval) showsAll() bool {
	shown, structured := p.call.sealed[0].Payload().JSON()
	gets, _ := p.of.delivery.sealed[0].Payload().JSON()
	return structured && shown == gets
}

// approvalKey returns the key of what would happen: the call, with these arguments, as often as it has
// begun, in the workspace as it is now and the calls of the turn before it leave it.
func (c *toolCall) approvalKey(l *approvalList) record.Key {
	starts, _ := c.approvals()
	gets, _ := c.delivery.sealed[0].Payload().JSON()
	parts := []string{c.id, c.tool.Name, string(c.effect()), string(c.key[:]), gets, l.files, strconv.Itoa(starts)}
	if of := c.definition(); of != "" {
		parts = append(parts, of)
	}
	for i := 0; l.of.x.reply.ToolCalls[i].ID != c.call.ID; i++ {
		before := &l.of.x.reply.ToolCalls[i]
		parts = append(parts, "after", before.Name, before.Arguments)
	}
	return digestOf(parts...)
}

// approvals returns how often the call has begun with an approval, and whether the person approved each call of its tool.
func (c *toolCall) approvals() (starts int, always bool) {
	return c.delivery.run.approvals.Of(&record.CallStart{Session: c.id, Agent: c.delivery.caps.Agent, Definition: c.definition(), ApprovedBy: c.tool.Approve})
}

// isTextCall reports whether the agent wrote the call as text. What the agent has read may have led it to that, so a
// person is asked about each of these calls.
func (c *toolCall) isTextCall() bool { return strings.HasSuffix(c.call.ID, textCallMark) }

// definition returns a digest of what a server says about the tool; empty if the program says it.
// What a person approved is for that definition alone.
func (c *toolCall) definition() string {
	if !c.tool.Foreign {
		return ""
	}
	of := digestOf(c.tool.Name, c.tool.Description, string(c.tool.Parameters), c.tool.Definition)
	return hex.EncodeToString(of[:])
}

// refused answers a call that the person refused. The reason is what the person wrote, so it
// passes the gate like an answer.
func (p *callApproval) refused(ctx context.Context, a *attempt, reason string) (*toolAnswer, error) {
	c := p.of
	if err := a.run.recordArguments(ctx, c, false); err != nil {
		return nil, err
	}
	text := "Call refused by " + c.tool.Approve + "."
	if reason != "" {
		text = "Call refused by " + c.tool.Approve + ": " + reason
	}
	p.call.schema = nil
	e, err := p.call.admit(gate.Reply{Text: text}, time.Now())
	if err != nil {
		return nil, err
	}
	answer := &toolAnswer{id: c.call.ID, envelope: e, failed: true}
	if a.run.ledger != nil {
		a.run.ledger.note(record.Entry{ToolResult: c.entry(a, e, c.delivery.start, codes.ToolRefused)})
	}
	return answer, nil
}
