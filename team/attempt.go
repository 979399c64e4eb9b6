package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// An attempt is one try at one task, from the handshake to the result. The
// run's owner fills it in and takes it back; in between, a goroutine of its
// own works on it. Its buffers serve one attempt after another.
type attempt struct {
	run    *run
	index  int
	number int // from 1
	member int
	task   *task.Task
	caps   *handoff.Capabilities
	schema *agent.Schema
	start  time.Time
	offers []handoff.Offer // inputs in the order of uses, then dependencies in theirs

	parts    []handoff.Part
	grants   []handoff.Grant
	sealed   []handoff.Sealed
	contract handoff.Contract
	reply    agent.Reply

	end        time.Time
	envelope   *envelope.Envelope
	text       string // the result as the caller may see it
	structured string
	receipt    *prompt.Receipt
	asked      bool // the agent was given the prompt
	inAgent    bool // the agent has the goroutine
	gone       bool // the agent ended the goroutine that worked on it

	// How it failed; err is nil if it did not. The rest is what is told of err.
	err      error
	code     string
	message  string // in the form that the caller is cleared for
	terminal bool   // another attempt would end the same way
}

// attempt takes a ready task out of the queue and gathers what it is granted.
func (r *run) attempt(i int) *attempt {
	a := r.acquire()
	now := time.Now()
	p := r.plan
	t := p.graph.Task(i)
	out := &r.tasks[i]
	out.Metrics.Attempts++
	a.index, a.number, a.member, a.task, a.start = i, out.Metrics.Attempts, int(p.members[i]), t, now
	a.caps, a.schema = &r.team.caps[a.member], p.schemas[i]
	r.must(r.queue.StartIndex(i, now))
	if a.number == 1 {
		out.Metrics.Start = now
		out.Status = task.InProgress
		if r.bus.live() {
			r.bus.emit(event.Event{Type: event.TaskStart, Task: t.ID, Title: t.Title, Agent: t.Assignee, Attempt: 1})
		}
	}
	for _, u := range t.Uses {
		o := handoff.Offer{Source: handoff.Source{Kind: handoff.Input, Name: u.Name}, Title: u.Name}
		if k, ok := p.inputs[strings.ToLower(u.Name)]; ok {
			o.Envelope = r.inputs[k]
		}
		a.offers = append(a.offers, o)
	}
	for j, up := range p.graph.Upstream(i) {
		d, from := &t.DependsOn[j], p.graph.Task(int(up))
		result, _ := r.queue.ResultIndex(int(up))
		a.offers = append(a.offers, handoff.Offer{
			Source: handoff.Source{Kind: handoff.Dependency, Name: string(d.Task)}, Title: from.Title, Assignee: from.Assignee,
			Status: r.queue.Status(int(up)), Envelope: result, As: d.As, Optional: d.Optional,
		})
	}
	return a
}

// work makes the attempt and hands it back to the run's owner, whatever
// happens: also when the agent panics, or ends the goroutine as a failed
// assertion of a test does.
func (a *attempt) work(ctx context.Context) {
	returned := false
	defer func() {
		if p := recover(); p != nil {
			whose := errInternal
			if a.inAgent {
				whose = ErrPanic
			}
			a.run.team.log.Error(whose.Error(), "task", a.task.Title, "agent", a.task.Assignee, "stack", string(debug.Stack()))
			a.judge(fmt.Errorf("%w: %v", whose, p))
		} else if !returned {
			a.gone = true
			a.judge(fmt.Errorf("%w: it ended its goroutine", ErrPanic))
		}
		a.end = time.Now()
		a.report()
		a.run.done <- a
	}()
	a.judge(a.try(ctx))
	returned = true
}

// try does everything that can fail.
func (a *attempt) try(ctx context.Context) error {
	text, err := a.open()
	if err != nil {
		return err
	}
	a.asked = true
	if bus := a.run.bus; bus.live() {
		bus.emit(event.Event{Type: event.AgentStart, Task: a.task.ID, Title: a.task.Title, Agent: a.task.Assignee, Attempt: a.number, Bytes: len(text.Text()), Receipt: a.receipt})
	}
	if !a.contract.ExpiresAt.IsZero() {
		limit := a.contract.ExpiresAt.Sub(a.start)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, a.contract.ExpiresAt, fmt.Errorf("%w: more than %v", ErrAttemptTimeout, limit))
		defer cancel()
	}
	a.inAgent = true
	a.reply, err = a.ask(ctx, text)
	if err != nil {
		return because(ctx, err)
	}
	a.inAgent = false
	return a.close(time.Now())
}

// ask lets the agent work, and subscribers know of the model calls that are
// made again. What the agent leaves running behind it tells nothing any more:
// its attempt is over, and a may serve another task by then.
func (a *attempt) ask(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
	does, bus := a.run.team.config.Agents[a.member].Agent, a.run.bus
	if !bus.live() {
		return does.Run(ctx, p)
	}
	var mu sync.Mutex // guards over, and keeps its end from passing a notice
	over := false
	defer func() {
		mu.Lock()
		over = true
		mu.Unlock()
	}()
	about := attempt{run: a.run, task: a.task, number: a.number, contract: a.contract}
	return does.Run(agent.NoticeRetries(ctx, func(_ int, err error, wait time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		c := code(err)
		bus.emit(event.Event{Type: event.Warning, Task: about.task.ID, Title: about.task.Title, Agent: about.task.Assignee, Attempt: about.number,
			Code: c, Message: about.run.explain(&about, c, err.Error()), Wait: wait})
	}), p)
}

// because adds to an agent's error why its context ended, if it did.
func because(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		err = fmt.Errorf("%w: %w", ErrCanceled, err)
	}
	return err
}

// judge takes in how the attempt ended and what is told of it. An error of an
// agent is code of the agent's: all that is asked of it is asked here, where a
// panic is caught.
func (a *attempt) judge(err error) {
	if a.err = err; err == nil {
		return
	}
	a.code, a.terminal = code(err), terminal(err)
	a.message = a.run.explain(a, a.code, err.Error())
}

// open makes the contract, takes the context through the gate and builds the prompt.
func (a *attempt) open() (prompt.Prompt, error) {
	r, t := a.run, a.task
	for i := range a.offers {
		o := &a.offers[i]
		if o.Envelope != nil {
			a.parts = append(a.parts, handoff.Part{Classification: o.Envelope.Classification(), Optional: o.Optional})
		}
		a.grants = append(a.grants, handoff.WholeOf(o.Source, ""))
	}
	contract, err := handoff.Negotiate(handoff.Request{
		Session: r.id + "/" + string(t.ID) + "/" + strconv.Itoa(a.number),
		Caller:  handoff.User, Run: r.id, Task: t.ID,
		Classification: handoff.Label(t.Classification, a.caps.Clearance(), a.parts),
		RequiredTags:   t.RequiredTags, Grants: a.grants, Duration: t.Timeout,
	}, a.caps, a.start)
	if err != nil {
		return prompt.Prompt{}, err
	}
	a.contract = contract
	gate := handoff.Compartment{Contract: contract}
	for i := range a.offers {
		s, err := gate.GateOutbound(&a.offers[i], a.start)
		if err != nil {
			return prompt.Prompt{}, err
		}
		a.sealed = append(a.sealed, s)
	}
	m, uses := &r.team.config.Agents[a.member], len(t.Uses)
	b := prompt.Brief{
		Contract: contract, Task: t, Untitled: r.untitled,
		System: m.SystemPrompt, SystemParams: m.SystemParams, SystemOrigin: m.Origin.String(),
		Inputs: a.sealed[:uses], Dependencies: a.sealed[uses:],
	}
	if a.schema != nil {
		b.Schema = a.schema.String()
	}
	text, receipt, err := prompt.Build(b)
	a.receipt = receipt
	return text, err
}

// close takes the reply through the gate: into the envelope of the result, and
// from there into what the caller may see of it.
func (a *attempt) close(now time.Time) error {
	gate := handoff.Compartment{Contract: a.contract}
	reply := handoff.Reply{
		ID:   envelope.ID(string(a.task.ID) + "/" + strconv.Itoa(a.number)),
		Text: cmp.Or(a.reply.Text, a.reply.JSON.Canonical()), JSON: a.reply.JSON, Tags: a.reply.Tags, Claim: a.reply.Claim, TTL: a.task.TTL,
	}
	var schema handoff.Validator
	if a.schema != nil {
		schema = a.schema
	}
	e, _, err := gate.GateInbound(reply, a.sealed, schema, now)
	if err != nil {
		return err
	}
	a.envelope = e
	if a.text, a.structured, err = a.run.forUser(e, a.task.ID, now); err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return nil
}

// report tells subscribers how the agent's work ended, if it began.
func (a *attempt) report() {
	bus := a.run.bus
	if !bus.live() || !a.asked {
		return
	}
	ev := event.Event{Type: event.AgentComplete, Task: a.task.ID, Title: a.task.Title, Agent: a.task.Assignee, Attempt: a.number,
		Status: task.Completed, Duration: a.end.Sub(a.start), Input: a.reply.Usage.InputTokens, Output: a.reply.Usage.OutputTokens, Bytes: len(a.reply.Text)}
	if a.err != nil {
		ev.Status, ev.Code, ev.Message = task.Failed, a.code, a.message
	}
	bus.emit(ev)
}

// acquire returns an attempt with empty buffers.
func (r *run) acquire() *attempt {
	if n := len(r.free); n > 0 {
		a := r.free[n-1]
		r.free = r.free[:n-1]
		return a
	}
	return &attempt{run: r}
}

// release keeps the buffers of an attempt for the next one, and its receipt for the result.
func (r *run) release(a *attempt) {
	if a.receipt != nil {
		out := &r.tasks[a.index]
		out.Receipts = append(out.Receipts, a.receipt)
	}
	clear(a.offers)
	clear(a.sealed)
	*a = attempt{run: r, offers: a.offers[:0], parts: a.parts[:0], grants: a.grants[:0], sealed: a.sealed[:0]}
	r.free = append(r.free, a)
}
