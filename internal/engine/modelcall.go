package engine

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
	"github.com/runteam/runteam/internal/callwait"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/membudget"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A modelCall is one prompt to one agent and its reply, the only path between the
// two: a handshake fixes a contract, the gate seals what the contract grants, a
// prompt is built from the sealed copies, the agent answers, and the gate makes an
// envelope of the answer. An attempt at a task is one, and so is a step of the
// coordinator. One goroutine at a time works on it.
type modelCall struct {
	run *runScope
	request
	gatedContext
	builtPrompt
	answer
	cacheHit
	expenses
	failure
	prefetch
	about  *approvedThing // that a person is asked about; nil for any other model call
	waits  *attempt       // that may wait for approvals of declassifiers; nil if there are none, or for any other model call
	stream *stream        // to the caller; nil if the caller does not watch, or the result is no text

	outbox *Outbox // nil if the agent may send no messages, or was not called
	batch  *batch  // what becomes durable together with the gate decisions; nil once it was released

	stage   callStage
	inAgent bool // the agent has the goroutine
	gone    bool // the agent ended the goroutine that worked on it
	end     time.Time
}

// A callStage is how far a model call has come.
type callStage int

const (
	inPreparation callStage = iota
	announced               // the journal was told that the agent is called
	givenPrompt             // the agent was given the prompt
)

// A request is the task of a model call, its agent and its limits.
type request struct {
	task         *task.Task
	number       int // of the attempt, from 1
	does         agent.Agent
	by           *plan.Roster // whose policy its prompt is made by
	recalls      bool         // it only takes what was answered under that policy, which does not hold any more
	caps         *gate.Capabilities
	schema       *schema.Schema
	bound        label.Classification // of the prompt and the result, as the static check has it
	limits       plan.ReaderLimits    // on the sizes of its context
	tools        []*tool.Tool         // that the agent may call
	least        label.Classification // its label, at least: that of the turns before, and what its tools may return
	turn         int                  // which model call of the attempt it is; zero means the first
	heading      string               // of its prompt, in place of the title of the task; only of a child
	child        string               // the ID that the events of a child have; empty for any other attempt
	part         string               // end of its session if it serves an attempt, such as /turn/2; empty for the attempt's own
	declassified bool                 // the policy lowers everything that leaves the task
	holders      string               // who held the conversation before its agent, as a chain; empty if nobody did
	began        time.Time            // when it was dispatched
	before       string               // of a later turn: the session under which the turn before is recorded; empty for any other model call
	start        time.Time            // context that was sent or stored by then is offered
	existed      int                  // bytes of all inputs and results when it was dispatched, as the caller may see them
}

// eventOf returns an event about the attempt that the request belongs to.
func (r *request) eventOf(kind event.Type) event.Event {
	return event.Event{Type: kind, Task: r.task.ID, Title: r.task.Title, Agent: r.caps.Agent, Attempt: r.number, Child: r.child, Work: event.Work{Inner: r.isInner()}}
}

// isInner reports whether the model call is a later turn, a call of a tool or a child of its attempt.
func (r *request) isInner() bool {
	return record.IsInner(r.part)
}

// A gatedContext is the context that is offered to an agent, and what the gate made of it.
type gatedContext struct {
	contextLists
	contract gate.Contract
	check    gateContext // of the check that runs
	given    *givenFiles // of an attempt at a task; nil if it is granted none
}

// contextLists are the lists of a gated context, whose memory later model calls use.
type contextLists struct {
	offers  []gate.Offer
	grants  []gate.Grant     // parallel to offers
	sealed  []gate.Sealed    // parallel to offers, once all were sealed
	rulings []*gate.Decision // parallel to offers, also if something was withheld
}

// A builtPrompt is what the run knows of a prompt in addition to its text.
type builtPrompt struct {
	receipt   *prompt.Receipt // as the caller may see it
	whole     *prompt.Receipt // of the prompt, with nothing hidden from the caller
	shownSize int             // bytes of the prompt as the caller may see it
	sentSize  int             // bytes of the whole request: with the turns before and the definitions of tools
	hidden    bool            // the caller may not see all of the prompt
	sent      int             // shownSize once the agent was given the prompt
	key       record.Key      // of the prompt; zero if nothing is cached
	core      record.Key      // of the same without messages and memory
	prior     record.Key      // key of the prompt to the agent as it was in the run that is replayed
}

// An answer is what an agent replied and what the gate made of it.
type answer struct {
	reply         agent.Reply
	rejected      *record.LabeledText // a reply that was not accepted; nil if there is none
	rejectedAgain *record.LabeledText // the corrected reply, if that was not accepted either
	reasoning     *record.LabeledText // what the model wrote before its answer; nil if nothing

	envelope      *envelope.Envelope
	outputs       *envelope.Envelope // its output files; nil if the task declares none
	outputsText   string             // as the caller may see them
	outputsBefore string             // what they were before, likewise
	text          string             // the result as the caller may see it
	structured    string
	partly        bool         // the caller may not see all of the result
	readBy        *plan.Roster // by whose policy the caller got it
}

// A cacheHit is an answer that the agent gave earlier.
type cacheHit struct {
	recalled *record.AgentCall // nil if the agent was called
	repeated bool              // of a replay: the prompt is one that the run had
	own      bool              // of this run, so that what it took counts
	reissued string            // the session under which an earlier process recorded the turn; empty if the agent was called
}

// expenses are what a model call and the calls that serve it took.
type expenses struct {
	cost      llm.Money     // of its model calls, by counted tokens and known prices
	paid      llm.Money     // what its model calls were charged, including estimates
	costShown llm.Money     // the part of the cost that showCost added already
	spent     []sideCall    // translations before this prompt, and later turns
	later     int           // how many of spent came after it
	worked    time.Duration // how long its agent worked so far, including side calls
	broke     exhausted     // which budget of the run had not enough left for a call
}

// A purpose is what a model call is made for.
type purpose interface {
	open(context.Context) (prompt.Prompt, error) // gathers the context and builds the prompt
	started() *Outbox                            // called when the agent is given the prompt; what it may send messages with
	ended(context.Context)                       // called when the model call has ended, in any case
}

// perform makes a model call. It returns a result even if the agent panics, or ends
// the goroutine as a failed assertion of a test does.
func perform(ctx context.Context, x *modelCall, o purpose) {
	if x.schema != nil || len(x.tools) > 0 { // else nothing decodes what the agent says
		var giveBack func()
		ctx, giveBack = membudget.Within(ctx, membudget.Attempt)
		defer giveBack()
	}
	returned := false
	defer func() {
		if p := recover(); p != nil {
			whose := errInternal
			if x.inAgent {
				whose = ErrPanic
			}
			x.run.team.Log.Error(whose.Error(), "task", x.task.Title, "agent", x.caps.Agent, "stack", string(debug.Stack()))
			x.setError(ctx, fmt.Errorf("%w: %v", whose, p))
		} else if !returned {
			x.gone = true
			x.setError(ctx, fmt.Errorf("%w: it ended its goroutine", ErrPanic))
		}
		x.end = time.Now()
		x.releaseBatch()
		if x.part == "" { // a later turn shares the stream of the first
			x.stream.finish(x)
		}
		o.ended(ctx)
	}()
	err := x.try(ctx, o)
	x.keepLabeledTexts(err)
	x.setError(ctx, err)
	returned = true
}

// try does everything that can fail.
func (x *modelCall) try(ctx context.Context, o purpose) error {
	text, err := o.open(ctx)
	if isContinuedLater(err) { // a person has to approve a part of its context, or it needs a call of its own
		return err
	}
	if err == nil {
		if done, err := x.useCached(ctx, o, text); done || err != nil {
			return err
		}
	}
	if err == nil && x.recalls {
		return ErrPolicyReplaced
	}
	if err == nil && x.run.isDraining() {
		return errDrained
	}
	if err == nil {
		err = checkEffects(o)
	}
	if err == nil && !x.isPerson() {
		err = checkBudgets(x)
	}
	if err := x.run.recordPrompt(ctx, x, text, err); err != nil {
		return err
	}
	if err := x.permitted(ctx); err != nil {
		return err
	}
	if a, ok := o.(*attempt); ok && x.isPerson() {
		return a.askPerson(ctx, text)
	}
	return x.callAgent(ctx, o, text)
}

// useCached takes an answer that the journal has, or corrects one that it has as
// rejected. It reports whether the model call needs no other call.
func (x *modelCall) useCached(ctx context.Context, o purpose, text prompt.Prompt) (done bool, err error) {
	r, found := x.run, memo.Found{}
	if r.memo != nil && !r.fresh.has(x.task.ID) {
		found = r.memo.Find(record.Keys{Key: x.prior, Core: x.core}, x.task, r.team.Find(x.caps.Agent).Process() != nil)
	}
	if a, ok := o.(*attempt); ok {
		if found.Turn != nil {
			if done, err := a.continueFrom(ctx, found.Turn, text); done || err != nil {
				return done, err
			}
		}
		if found.Rejected != nil {
			if done, err := a.correctAgain(ctx, found.Rejected, text); done || err != nil {
				return done, err
			}
		}
	}
	if done, err := x.takeCachedAnswer(ctx, text, found.Answer); done || err != nil {
		return done, err
	}
	if a, ok := o.(*attempt); ok && x.isPerson() {
		return takeGiven(ctx, a, text)
	}
	return false, nil
}

// callAgent gives the agent the prompt, within the budget and the time limit of the
// attempt, and takes its reply. If that calls tools, or the first answer does not match the
// schema, it performs the later turns too.
func (x *modelCall) callAgent(ctx context.Context, o purpose, text prompt.Prompt) (err error) {
	outer := ctx // without the time limit and the budget of this call
	meter := x.run.budgets.meter(x)
	defer func() {
		x.paid, x.cost = meter.addUsage(&x.reply) // also of an agent that panics
		x.broke = cmp.Or(x.broke, meter.end())
	}()
	if err := checkStart(ctx, x, o, meter); err != nil {
		return err
	}
	announce(x)
	x.outbox = o.started()
	defer x.outbox.end()                           // also if the agent panics
	if x.outbox != nil || OutboxFrom(ctx) != nil { // that of a run around this one is not this agent's
		ctx = context.WithValue(ctx, outboxKey{}, x.outbox)
	}
	x.inAgent = true
	called := time.Now()
	x.contract.Start(called.Add(-x.worked))
	before := x.worked
	defer func() {
		if x.inAgent { // it panicked or ended its goroutine
			x.worked = before + time.Since(called)
		}
	}()
	if !x.contract.ExpiresAt.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, x.contract.ExpiresAt, x.late())
		defer cancel()
	}
	ctx, endCall := x.run.steering.call(ctx, attemptOf(o))
	defer endCall()
	watched, end := x.stream.watch(ctx, x)
	x.reply, err = x.ask(meter.context.Begin(withWorkspace(watched, x, o), meter, max(x.turn, 1), providerTurnsOf(o).turns), text)
	end()
	if err == nil && (x.schema != nil || len(x.reply.ToolCalls) > 0) {
		err = membudget.Take(ctx, decodedReply(&x.reply))
	}
	err = asRecorded(x, attemptOf(o), err)
	err = meter.settleReply(&x.reply, err)
	x.paid, x.cost = meter.addUsage(&x.reply)
	now := time.Now()
	if x.worked = before + now.Sub(called); x.reply.Truncated {
		err = acceptTruncated(&x.reply, x.task, x.schema != nil, err)
	}
	if err == nil && len(x.reply.ToolCalls) > 0 {
		x.inAgent = false
		return takeCalls(outer, x, o, text)
	}
	if err != nil {
		a, ok := o.(*attempt)
		if rejected, faulty := errors.AsType[*schema.RejectedError](err); faulty && ok && x.schema != nil && ctx.Err() == nil && !errors.Is(err, schema.ErrGuard) {
			x.inAgent = false
			return a.correct(outer, text, rejected)
		}
		return withCause(ctx, err)
	}
	x.inAgent = false
	return x.close(ctx, o, now)
}

// checkBudgets returns an error if the budgets have nothing left for the call.
func checkBudgets(x *modelCall) error {
	if len(x.run.budgets.of(x.caps.Agent)) == 0 {
		return nil
	}
	m := x.run.budgets.meter(x)
	err := m.checkLeft()
	if err != nil {
		x.broke = cmp.Or(x.broke, m.end())
	}
	return err
}

// checkStart returns why the agent must not be given the prompt now.
func checkStart(ctx context.Context, x *modelCall, o purpose, m *meter) error {
	if err := m.checkLeft(); err != nil {
		return err
	}
	if isOutdated(x.run.steering, attemptOf(o)) {
		return ErrInterrupted
	}
	if limit := x.contract.Duration; limit > 0 && x.worked >= limit { // translations took all of it
		return x.late()
	}
	if errors.Is(context.Cause(ctx), ErrPolicyReplaced) {
		return withCause(ctx, ctx.Err())
	}
	return nil
}

// announce notes that the agent is given the prompt.
func announce(x *modelCall) { x.stage, x.sent = givenPrompt, x.shownSize }

// acceptTruncated returns the error of a truncated answer: nil if the task accepts
// it. An answer that does not match the schema is not accepted.
func acceptTruncated(reply *agent.Reply, t *task.Task, hasSchema bool, err error) error {
	if err != nil && !errors.Is(err, codes.Condition(codes.Truncated)) {
		return err
	}
	structured := reply.JSON.Canonical() != ""
	usable := structured || strings.TrimSpace(reply.Text) != "" && (!hasSchema || err == nil)
	if t.AcceptTruncated && usable {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%w: the agent reports it; raise its limit, or set acceptTruncated on the task", codes.Condition(codes.Truncated))
	}
	return err
}

// late is the error of an attempt that took longer than it may.
func (x *gatedContext) late() error {
	return fmt.Errorf("%w: more than %v", ErrAttemptTimeout, x.contract.Duration)
}

// lateWaiting is the error of an attempt whose time was up while it waited for the reply of an agent.
func (x *gatedContext) lateWaiting(agent string) error {
	return fmt.Errorf("%w, while %w from %q", x.late(), ErrReplyTimeout, agent)
}

// releaseBatch lets what becomes durable together with the gate decisions go to the journal.
func (x *modelCall) releaseBatch() {
	x.run.ledger.release(x.batch)
	x.batch = nil
}

// ask runs the agent. Its model calls are paid from the run's budget. Subscribers get an
// event for each call that is retried or waits for the limits of an endpoint. Goroutines
// that the agent leaves running emit no events: its model call has ended, and x may serve
// another task.
func (x *modelCall) ask(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
	if !x.isPerson() {
		x.run.underWay.Add(1)
		defer x.run.underWay.Add(-1)
	}
	bus := x.run.bus
	if !bus.live() {
		return x.does.Run(ctx, p)
	}
	var mu sync.Mutex // guards over, and orders its end after a running notification
	over := false
	defer func() {
		mu.Lock()
		over = true
		mu.Unlock()
	}()
	about := modelCall{run: x.run, request: x.request, gatedContext: gatedContext{contract: x.contract, contextLists: contextLists{sealed: x.sealed}}}
	return x.does.Run(callwait.Observe(ctx, func(w callwait.Wait) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case over, x.hidden: // how often a call waits depends on its prompt
			return
		case w.Err == nil:
			about.run.reportLimit(&about, w)
			return
		}
		ev := about.eventOf(event.Warning)
		ev.Code, ev.Wait = code(w.Err), w.For
		ev.Message, _ = about.run.explain(&about, ev.Code, w.Err.Error())
		bus.emit(ev)
	}), p)
}

// decodedReply returns what reading a reply takes, in bytes.
func decodedReply(r *agent.Reply) int64 {
	n := membudget.Decoded(r.Text)
	for i := range r.ToolCalls {
		n += membudget.Decoded(r.ToolCalls[i].Arguments)
	}
	return n
}

// withCause adds to an agent's error why its context ended, if it did.
func withCause(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		err = fmt.Errorf("%w: %w", ErrCanceled, err)
	}
	return err
}

// session identifies a model call among those of all runs.
func (x *modelCall) session() string {
	return x.run.id + "/" + string(x.task.ID) + "/" + strconv.Itoa(x.number) + x.part
}

// identity identifies a model call, which has a contract, among those of its run.
func (x *modelCall) identity() string { return x.contract.Session[len(x.run.id)+1:] }
