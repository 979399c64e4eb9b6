package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// An agent transfers its conversation with a tool transfer_to_NAME: another agent finishes the task. That
// agent, the new holder, works in an attempt of its own inside the attempt at the task, with a new prompt,
// contract and workspace. It uses the slot and the time limit of the attempt at the task, and waits,
// approvals and commands of that attempt are those of whoever holds the conversation.

// A transferState is the part that an attempt has in a conversation that is transferred.
type transferState struct {
	next         *attempt          // the holder that it transferred to; nil if it did not
	inherited    []piece           // what it is offered of the conversation before it
	transferable []piece           // what it said, and what its tools returned
	took         []mailbox.Message // that no prompt of the run had before
	opened       bool              // its prompt is built
	first        prompt.Prompt

	// Of the attempt at the task itself, guarded by the lock of the run.
	transfers int
	holder    *attempt // who holds the conversation now; nil if that is itself
}

// A piece is a piece of a conversation, as later holders are offered it.
type piece struct {
	source   gate.Source
	agent    string // that said it, or called the tool
	title    string // with %s for the name of that agent
	envelope *envelope.Envelope
	as       task.Payload
	limit    int                  // bytes; zero means the default
	maxLabel label.Classification // that the edges carry on which it was transferred
}

// ofTask returns the attempt at the task itself, if a is that or a later holder of its conversation, and a child
// as it is.
func ofTask(a *attempt) *attempt {
	if a.after != nil {
		return a.root
	}
	return a
}

// holderOf returns the attempt of whoever holds the conversation of an attempt at a task now. The lock of
// the run is held.
func holderOf(a *attempt) *attempt { return cmp.Or(a.holder, a) }

// lastHolder returns the attempt of the last holder.
func lastHolder(a *attempt) *attempt {
	for a.next != nil {
		a = a.next
	}
	return a
}

// makers returns who makes what the agent of a model call makes: the holders of its conversation.
func (r *request) makers() string {
	if r.holders == "" {
		return r.caps.Agent
	}
	return naming.Chain(r.holders, r.caps.Agent)
}

// heldBefore returns who held the conversation before the agent of a model call; nil if it was not transferred.
func (r *request) heldBefore() []string {
	if r.holders == "" {
		return nil
	}
	return naming.Links(r.holders)
}

// mayTransfer reports whether the agent has a tool that transfers its conversation.
func (c *runtimeCalls) mayTransfer() bool {
	for i := range c.runtimeTools {
		if c.runtimeTools[i].To != nil {
			return true
		}
	}
	return false
}

// keepForHolders keeps what the agent said in a turn and what its calls returned, for later holders. What
// the runtime answered, and replies to handoffs, are for the agent alone.
func (a *attempt) keepForHolders(x *modelCall, said *envelope.Envelope, answers []toolAnswer) {
	if !a.mayTransfer() {
		return
	}
	a.transferable = append(a.transferable, saidPiece(said, formOf(said), x))
	for i := range answers {
		e := answers[i].envelope
		if e == nil || e.Producer() == gate.Runtime {
			continue
		}
		a.transferable = append(a.transferable, piece{
			source: gate.Source{Kind: handoff.Transferred, Name: string(a.task.ID) + x.part + "/" + answers[i].id}, agent: a.caps.Agent,
			title: x.reply.ToolCalls[i].Name + ", called by %s", envelope: e, as: formOf(e), limit: answers[i].limit, maxLabel: label.Secret,
		})
	}
}

// saidPiece returns what the agent said in turn x.
func saidPiece(said *envelope.Envelope, as task.Payload, x *modelCall) piece {
	return piece{
		source: gate.Source{Kind: handoff.Transferred, Name: string(x.task.ID) + x.part + "/said"}, agent: x.caps.Agent,
		title: "%s", envelope: said, as: as, maxLabel: label.Secret,
	}
}

// transfer has a neighbor finish the task. The turn is the last one of the agent. A refusal says what the
// spec determines, and nothing of the values.
func (a *attempt) transfer(ctx context.Context, x *modelCall, said *envelope.Envelope, call llm.ToolCall, t *plan.RuntimeTool, place string) (answer toolAnswer, err error) {
	refuse := func(reason string) (toolAnswer, error) {
		return refuseCall(a, x, said, call, "Call refused: "+reason+".")
	}
	if len(x.reply.ToolCalls) > 1 {
		return refuse("call " + t.Name + " alone, in a turn without other calls")
	}
	root := ofTask(a)
	a.run.mu.Lock()
	count := root.transfers
	a.run.mu.Unlock()
	if count >= plan.MaxTransfers {
		return refuse(fmt.Sprintf("an attempt at a task transfers its conversation at most %d times; finish the task yourself", plan.MaxTransfers))
	}
	began := time.Now()
	h, err := a.newHolder(x, said, &call, t.To)
	if err == nil {
		err = h.prebuildPrompt(ctx)
	}
	switch {
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), ErrInterrupted):
		return answer, withCause(ctx, ctx.Err())
	case err != nil && isInterrupted(a.ctx, context.Cause(ctx)):
		return refuseCall(a, x, said, call, notMade)
	case isContinuedLater(err), errors.Is(err, ErrJournal), errors.Is(err, ErrRecord):
		return answer, err
	case err != nil:
		a.run.messages.returnToInbox(h)
		a.run.team.Log.Info("a conversation was not transferred", "task", a.task.Title, "from", a.caps.Agent, "to", h.caps.Agent, "code", code(err))
		return refuse(transferRefusal(h.caps, a.by.Rules.ShownName(h.caps.Agent), x.contract.MaxInput.Join(h.least)))
	}
	name := a.by.Rules.ShownName(h.caps.Agent)
	answer.id = call.ID
	if answer.envelope, err = a.runtimeAnswer(x, said, call, "Transferred to "+name+"."); err != nil {
		return answer, err
	}
	a.run.mu.Lock()
	root.transfers++
	root.holder = h
	a.run.mu.Unlock()
	a.next = h
	if a.priorCall(place) == nil {
		answer.made = &ToolCallMetrics{Tool: t.Name, Duration: time.Since(began)}
		a.recordTransfer(h, place, t, &answer)
	}
	return answer, nil
}

// transferRefusal says why a neighbor, to which the agent refers by name, cannot continue a conversation whose
// label is level.
func transferRefusal(to *gate.Capabilities, name string, level label.Classification) string {
	switch {
	case to.Clearance() < level:
		return fmt.Sprintf("your context is %v, and %s may see %v", level, name, to.Clearance())
	case to.Produces < level:
		return fmt.Sprintf("the result will be %v, and %s produces at most %v", level, name, to.Produces)
	}
	return fmt.Sprintf("%s cannot take this task over under the rules of the team", name)
}

// recordTransfer records that the conversation was transferred.
func (a *attempt) recordTransfer(h *attempt, place string, t *plan.RuntimeTool, answer *toolAnswer) {
	if a.run.ledger == nil {
		return
	}
	e := a.runtimeCallEntry(place, t.Name, answer.made.Duration)
	e.Result, e.TransferredTo = gate.RecordOf(answer.envelope), h.caps.Agent
	a.run.ledger.note(record.Entry{ToolResult: e})
}

// reasonOf makes the envelope of the reason of a transfer; nil if none is given. It is as sensitive as the
// turn that made it.
func reasonOf(x *modelCall, said *envelope.Envelope, call *llm.ToolCall) (*envelope.Envelope, error) {
	var given struct {
		Reason string `json:"reason"`
	}
	if err := json.Unmarshal([]byte(call.Arguments), &given); err != nil || strings.TrimSpace(given.Reason) == "" {
		return nil, err
	}
	h := said.Header()
	h.ID, h.DerivedFrom = envelope.ID(x.identity()+"/"+call.ID+"/reason"), []envelope.ID{h.ID}
	return envelope.New(h, envelope.Text(given.Reason))
}

// holderPart returns the part of the agent to which a call transfers the conversation. In journals of earlier versions, it
// has the ID of the call. A resumed run keeps that, so that a call with effects is recognized.
func (a *attempt) holderPart(call *llm.ToolCall) string {
	if old := a.part + record.ChildPrefix + call.ID; a.run.memo.Task(a.task.ID).Prompt(old).Part != "" {
		return old
	}
	return a.part + record.HolderPart
}

// newHolder makes the attempt of a new holder, with what it is offered.
func (a *attempt) newHolder(x *modelCall, said *envelope.Envelope, call *llm.ToolCall, to *plan.Neighbor) (*attempt, error) {
	r := a.run
	m := &r.team.Config.Agents[to.Member]
	h := &attempt{graph: a.graph, planned: a.planned, index: a.index, member: to.Member}
	h.run, h.scheduler, h.stream, h.ctx = r, a.scheduler, a.stream, a.ctx
	h.attemptRelations = attemptRelations{root: cmp.Or(a.root, a), after: a}
	own := *a.task
	own.Assignee = m.Name
	h.request = request{
		task: &own, number: a.number, does: m.Agent, by: a.by, caps: &r.team.Capabilities[to.Member], schema: a.schema, bound: a.bound, limits: r.team.MemberLimits(to.Member),
		tools: m.Tools, part: a.holderPart(call), start: time.Now(), began: time.Now(), existed: a.existed, holders: a.makers(),
	}
	if h.runtimeTools = plan.TransferTools(a.by, to.Member); len(h.runtimeTools) > 0 {
		h.tools = slices.Clone(h.tools)
		for _, t := range h.runtimeTools {
			h.tools = append(h.tools, t.Tool)
		}
	}
	h.least = x.contract.MaxInput.Join(plan.LevelOf(m.Tools))
	if h.by.Config.ApprovesLoweringFor(m.Name) {
		h.waits = h
	}
	pieces := append(slices.Clone(a.inherited), a.transferable...)
	if x.reply.Text != "" { // the call that transfers says no more than the transfer itself
		pieces = append(pieces, saidPiece(said, task.Output, x))
	}
	reason, err := reasonOf(x, said, call)
	if err != nil {
		return h, err
	}
	if reason != nil {
		pieces = append(pieces, piece{source: gate.Source{Kind: handoff.Transferred, Name: string(a.task.ID) + x.part + "/" + call.ID + "/reason"}, agent: a.caps.Agent, title: "%s, reason of the transfer", envelope: reason, as: task.Output, maxLabel: label.Secret})
	}
	for k := range a.returned.layers {
		l := &a.returned.layers[k]
		pieces = append(pieces, piece{source: gate.Source{Kind: handoff.Transferred, Name: string(a.task.ID) + a.part + "/" + l.source.Name}, agent: a.caps.Agent, title: "%s, files that were returned", envelope: l.envelope, as: gate.AsFiles, maxLabel: label.Secret})
	}
	for i := range pieces {
		pieces[i].maxLabel = min(pieces[i].maxLabel, to.Max)
	}
	h.inherited = pieces
	h.offerTransferred()
	return h, nil
}

// offerTransferred offers a holder what its task is granted, its messages, and the conversation before it.
func (h *attempt) offerTransferred() {
	root, r := h.root, h.run
	h.offers, h.grants = nil, nil
	h.said, h.dependencies, h.given = root.said, root.dependencies, root.given.again()
	n := root.said + len(root.task.Uses) + root.dependencies + root.given.ofOthers()
	if root.planned {
		n++
	}
	for i := range n {
		h.offerAgain(i)
	}
	r.messages.offerToHolder(h)
	h.granted = len(h.offers)
	for i := root.granted; i < len(root.offers); i++ {
		h.offerAgain(i)
	}
	for i := range h.inherited {
		p := &h.inherited[i]
		from := p.envelope.Producer()
		g := gate.WholeOf(p.source, "transfer")
		g.Terms = gate.Limited(h.by.Terms(from, h.caps.Agent), p.maxLabel, gate.Citation{Rule: gate.RuleEdge}, from, h.caps.Agent)
		if g.MaxBytes = cmp.Or(p.limit, h.limits.On(p.source, 0)); p.as == gate.AsFiles {
			g.Paths = nil // an edge grants files with a goal, and not with a conversation
		}
		o := gate.Offer{Source: p.source, Title: fmt.Sprintf(p.title, h.by.Rules.ShownName(p.agent)), Envelope: p.envelope, As: p.as, Optional: true}
		h.offers, h.grants = append(h.offers, o), append(h.grants, g)
	}
}

// offerAgain offers a holder what the attempt at the task was offered, under the rules for the holder.
// What the task reveals, and what a person approved, is for its assignee.
func (h *attempt) offerAgain(i int) {
	o, was := h.root.offers[i], &h.root.grants[i]
	if o.Source.Kind == handoff.Conversation { // a turn is planned, so its instruction comes first
		o = h.run.options.Conversation[i-1].Offer(h.caps.Agent)
	}
	o.Translated = nil
	g := gate.Grant{Source: was.Source, At: was.At, Paths: was.Paths, Line: was.Line, Item: was.Item, List: was.List, Names: was.Names, MaxBytes: was.MaxBytes}
	if most := h.limits.On(o.Source, 0); most > 0 && (g.MaxBytes == 0 || most < g.MaxBytes) {
		g.MaxBytes = most
	}
	switch {
	case o.Envelope != nil:
		g.Terms = h.by.Terms(o.Envelope.Producer(), h.caps.Agent)
	case was.Terms != nil:
		g.Terms = h.by.Terms(gate.ProducerOf(was.Terms), h.caps.Agent)
	}
	h.offers, h.grants = append(h.offers, o), append(h.grants, g)
}

// prebuildPrompt takes what a holder is offered through the gate and builds its prompt, before the transfer counts.
// If that fails, the decisions are recorded all the same.
func (h *attempt) prebuildPrompt(ctx context.Context) error {
	first, err := h.open(ctx)
	if isContinuedLater(err) {
		return err
	}
	if err != nil {
		return h.run.recordPrompt(ctx, &h.modelCall, prompt.Prompt{}, err)
	}
	h.opened, h.first = true, first
	return nil
}

// performHolder lets the next holder finish the task. Its answer is that of the attempt.
func (a *attempt) performHolder(ctx context.Context) error {
	root := ofTask(a)
	for {
		h := a.next
		if waited := a.run.steering.await(ctx); waited > 0 && a.contract.Duration > 0 && !a.contract.ExpiresAt.IsZero() {
			a.contract.ExpiresAt = a.contract.ExpiresAt.Add(waited)
		}
		if a.contract.Duration > 0 && !a.contract.ExpiresAt.IsZero() {
			h.worked = a.contract.Duration - time.Until(a.contract.ExpiresAt)
		}
		a.stream.reopen(h.caps.Agent)
		perform(ctx, &h.modelCall, h)
		if h.needsJournalEntry() && !errors.Is(h.err, errLater) {
			a.run.ledger.note(h.journalEntry())
		}
		h.showCost()
		takeUsage(a, h)
		if !isInterrupted(ctx, h.err) || h.terminal {
			break
		}
		again := h.withoutCall()
		if err := again.prebuildPrompt(ctx); err != nil {
			return err
		}
		a.next = again
		a.run.mu.Lock()
		root.holder = again
		a.run.mu.Unlock()
	}
	h := a.next
	if h.err != nil {
		a.failedHolder = &h.modelCall
		return h.err
	}
	return a.acceptHolder(ctx, h)
}

// withoutCall returns a holder whose first call was interrupted as it was before the call, with the messages
// that came meanwhile.
func (h *attempt) withoutCall() *attempt {
	again := &attempt{graph: h.graph, planned: h.planned, index: h.index, member: h.member}
	again.run, again.scheduler, again.stream, again.ctx = h.run, h.scheduler, h.stream, h.ctx
	again.attemptRelations, again.request, again.runtimeTools = h.attemptRelations, h.request, h.runtimeTools
	again.inherited = h.inherited
	if h.waits != nil {
		again.waits = again
	}
	again.start = time.Now()
	again.offerTransferred()
	return again
}

// acceptHolder makes the answer of the next holder that of the attempt, as the work of both.
func (a *attempt) acceptHolder(ctx context.Context, h *attempt) error {
	own := a.reply
	a.reply = h.reply
	a.reply.Usage, a.reply.Turns, a.reply.Warnings, a.reply.Reasoning = own.Usage, own.Turns, own.Warnings, own.Reasoning // the holder accounts for its own
	level := a.contract.MaxInput
	for _, x := range a.earlier {
		level = level.Join(x.contract.MaxInput)
	}
	e, err := gate.Transferred(h.envelope, a.caps.Agent, level, envelope.ID(a.identity()))
	if err != nil {
		return err
	}
	if h.outputs != nil {
		if a.outputs, err = gate.Transferred(h.outputs, a.caps.Agent, level, envelope.ID(a.identity()+"/files")); err != nil {
			return err
		}
	}
	return a.accept(ctx, e, time.Now())
}

// asOfBoth returns an error text of the holder to which a model call transferred its conversation as the
// work of both; nil if there is none.
func asOfBoth(x *modelCall, fault *envelope.Envelope) *envelope.Envelope {
	if fault == nil {
		return nil
	}
	e, err := gate.Transferred(fault, x.caps.Agent, x.contract.MaxInput, fault.ID())
	if err != nil {
		return nil
	}
	return e
}
