package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/oneline"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A turn is the second or a later model call of an attempt. Its prompt is that of the turn
// before, followed by the agent's reply and the results of its tool calls. It has its own
// contract, decisions, receipt, budget reservation and entries in the journal.
type turn struct {
	modelCall
	of     *attempt
	before prompt.Prompt // the prompt of the turn before
	prompt prompt.Prompt

	corrects bool // the agent is to correct its answer
}

// A conversation is what the turns of an attempt have in common.
type conversation struct {
	shared     tool.Shared        // what its calls of tools have in common
	earlier    []*modelCall       // the turns that have ended with calls of tools
	steps      [][]prompt.Message // what each turn added
	written    int                // how many of them are in the workspace
	hasFiles   atomic.Bool        // there is a workspace
	mu         sync.Mutex         // guards made
	made       map[string]bool    // the IDs of its calls of tools
	cachedTurn bool               // the first turn is one of an earlier process
	external   bool               // a tool with an external effect that must not be repeated was called
}

// turnPart returns the end of the session of a turn.
func turnPart(n int) string { return "/turn/" + strconv.Itoa(n) }

// converse makes the tool calls that the agent requested, performs the next turn with their
// results, and repeats until the agent answers. That answer is the one of the attempt. After
// an external call the task is not retried: errors that a retry might fix wrap
// [ErrEffectsUncertain].
func (a *attempt) converse(ctx context.Context, first prompt.Prompt) (err error) {
	if a.conversation == nil {
		a.conversation = &conversation{}
	}
	defer a.closeShared()
	if a.contract.Duration > 0 { // the calls of tools count towards it
		if a.contract.ExpiresAt.IsZero() {
			a.contract.Start(time.Now())
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, a.contract.ExpiresAt, a.late())
		defer cancel()
	}
	defer func() {
		if err != nil && a.external && ctx.Err() == nil && !terminal(err) {
			err = fmt.Errorf("%w, so the task is not retried: %w", ErrEffectsUncertain, err)
		}
	}()
	current, last := &a.modelCall, &turn{prompt: first}
	var rejected *schema.RejectedError // of the last answer; corrected once
	for n := 2; n <= maxConversation && len(current.reply.ToolCalls) > 0 || rejected != nil && current.err != nil; n++ {
		t := &turn{modelCall: modelCall{run: a.run, request: a.side(turnPart(n), time.Now())}, of: a, before: last.prompt}
		t.turn, t.worked, t.tools, t.least = n, current.worked, a.tools, current.contract.MaxInput
		if current.err != nil {
			err = t.offerProblem(current, rejected)
		} else {
			err = t.offerResults(ctx, current)
		}
		if err != nil {
			return err
		}
		a.earlier = append(a.earlier, current)
		t.start = time.Now() // tool calls may have taken long
		t.began = t.start
		serve(ctx, &a.modelCall, &t.modelCall, t)
		a.later, a.worked = len(a.spent), t.worked
		again, isRejected := errors.AsType[*schema.RejectedError](t.err)
		switch {
		case t.err == nil:
		case isRejected && rejected == nil && !errors.Is(again, schema.ErrGuard):
			rejected = again
			a.reject(t.reply.Text, again.Problem, a.number)
		case isRejected && !errors.Is(again, schema.ErrGuard):
			return fmt.Errorf("%w, even after one correction: %w", schema.ErrMismatch, again.Err)
		default:
			return t.err
		}
		last, current = t, &t.modelCall
	}
	if len(current.reply.ToolCalls) > 0 {
		return fmt.Errorf("%w: after %d turns", codes.Condition(codes.MaxTurns), maxConversation)
	}
	own := a.reply
	a.reply = last.reply
	a.reply.Usage, a.reply.Turns, a.reply.Warnings, a.reply.Reasoning = own.Usage, own.Turns, own.Warnings, own.Reasoning // later turns account for their own
	return a.accept(ctx, last.envelope, time.Now())
}

// closeShared closes what the calls of tools shared.
func (a *attempt) closeShared() {
	if err := a.shared.Close(); err != nil {
		a.run.team.Log.Warn("resources of tools could not be closed", "task", a.task.Title, "error", err)
	}
}

// maxConversation bounds the turns of an agent that has no bound of its own.
const maxConversation = 200

// offerResults makes the requested calls and offers their results to the agent.
func (t *turn) offerResults(ctx context.Context, current *modelCall) error {
	a := t.of
	said, err := saidIn(current)
	if err != nil {
		return err
	}
	a.recordTurn(current, said)
	a.showCost()
	answers, err := a.callTools(ctx, current, said)
	if err != nil {
		return err
	}
	t.offer(said, answers)
	return nil
}

// offerProblem offers the agent its answer and what is wrong with it.
func (t *turn) offerProblem(current *modelCall, rejected *schema.RejectedError) error {
	now := time.Now()
	said, err := (&gate.Compartment{Contract: current.contract}).GateTurn(envelope.ID(current.identity()+"/said"), current.reply.Text, jsonvalue.Value{}, current.sealed, now)
	if err != nil {
		return err
	}
	h := said.Header()
	h.ID, h.Producer, h.CreatedAt, h.DerivedFrom = h.ID+"/problem", gate.Runtime, now, []envelope.ID{h.ID}
	problem, err := envelope.New(h, envelope.Text(rejected.Problem))
	if err != nil {
		return err
	}
	t.offer(said, nil)
	t.add(gate.Offer{Source: gate.Source{Kind: handoff.Fault, Name: string(t.task.ID) + t.part}, Title: "problem", Envelope: problem}, gate.CorrectionTerms(gate.Runtime, t.caps.Agent), maxSaid)
	t.corrects = true
	return nil
}

// takeCalls takes a reply that calls tools: the first turn of an attempt begins a
// conversation, and a later one continues it.
func takeCalls(ctx context.Context, x *modelCall, o purpose, text prompt.Prompt) error {
	if len(x.tools) == 0 {
		return fmt.Errorf("%w: %s", codes.Condition(codes.ToolCall), oneline.Of(x.reply.ToolCalls[0].Name))
	}
	if a, first := o.(*attempt); first {
		return a.converse(ctx, text)
	}
	_, err := saidIn(x)
	return err
}

// saidIn makes the envelope of what the agent said in a turn that is not its last. It gives
// each call of a tool an ID, and makes its arguments a JSON value.
func saidIn(x *modelCall) (*envelope.Envelope, error) {
	if x.envelope != nil {
		return x.envelope, nil // it is made, or of an earlier process
	}
	if n := len(x.reply.ToolCalls); n > maxCalls {
		return nil, fmt.Errorf("%w: the agent asks for %d calls at once, at most %d", codes.Condition(codes.ToolCall), n, maxCalls)
	}
	calls := make([]brief.Call, len(x.reply.ToolCalls))
	for i := range x.reply.ToolCalls {
		c := &x.reply.ToolCalls[i]
		c.ID = fmt.Sprintf("call_%d_%d", max(x.turn, 1), i+1)
		if !toolName.MatchString(c.Name) {
			c.Name = "unknown" // an endpoint would refuse the conversation
		}
		calls[i] = brief.Call{ID: c.ID, Name: c.Name, Arguments: argumentsOf(c.Arguments)}
		c.Arguments = string(calls[i].Arguments)
	}
	raw, err := json.Marshal(brief.Said{Calls: calls})
	if err != nil {
		return nil, err
	}
	if n := len(raw) + len(x.reply.Text); n > maxSaid {
		return nil, fmt.Errorf("%w: the calls of tools in one reply have %d bytes, at most %d", brief.ErrTooLarge, n, maxSaid)
	}
	v, err := jsonvalue.Parse(string(raw))
	if err != nil {
		return nil, fmt.Errorf("tool calls: %w", err)
	}
	x.envelope, err = (&gate.Compartment{Contract: x.contract}).GateTurn(envelope.ID(x.identity()+"/said"), x.reply.Text, v, x.sealed, time.Now())
	return x.envelope, err
}

// maxCalls bounds the calls of one turn.
const maxCalls = 128

// toolName matches what can be the name of a tool.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// argumentsOf returns the arguments of a call as JSON. What is no JSON value is a string, to
// which no schema of a tool applies.
func argumentsOf(text string) json.RawMessage {
	if text == "" {
		return json.RawMessage(`{}`)
	}
	if v, err := jsonvalue.Parse(text); err == nil {
		return json.RawMessage(v.Canonical())
	}
	raw, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return raw
}

// recordTurn records what the agent said in the first turn of an attempt. The turns after it
// have entries of their own.
func (a *attempt) recordTurn(x *modelCall, said *envelope.Envelope) {
	if x != &a.modelCall || a.run.ledger == nil || a.run.priorRun.isStrict() || a.cachedTurn {
		return
	}
	e := a.view().call()
	e.Part, e.End, e.Context = a.part+turnPart(1), time.Now(), event.Context{}
	e.Result = gate.RecordOf(said)
	e.CallsTools = true
	a.run.ledger.note(record.Entry{Turn: e})
}

// offer offers what the agent said, and what its calls gave.
func (t *turn) offer(said *envelope.Envelope, answers []toolAnswer) {
	source := gate.Source{Kind: handoff.Draft, Name: string(t.task.ID) + t.part}
	t.add(gate.Offer{Source: source, Title: "said", Envelope: said, As: formOf(said)}, gate.CorrectionTerms(said.Producer(), t.caps.Agent), maxSaid)
	for i := range answers {
		r := &answers[i]
		terms := t.run.team.Terms(r.envelope.Producer(), t.caps.Agent)
		if r.envelope.Producer() == gate.Runtime {
			terms = gate.CorrectionTerms(gate.Runtime, t.caps.Agent)
		}
		o := gate.Offer{Source: gate.Source{Kind: handoff.ToolResult, Name: r.id}, Envelope: r.envelope, As: formOf(r.envelope), Optional: true}
		if r.failed {
			o.Title = "error"
		}
		t.add(o, terms, r.limit)
	}
}

// formOf returns the form that delivers all parts of an envelope.
func formOf(e *envelope.Envelope) task.Payload {
	if e.Structured() {
		return task.Both
	}
	return task.Output
}

// add adds an offer, and the grant of all of it.
func (t *turn) add(o gate.Offer, terms *gate.Terms, limit int) {
	g := gate.WholeOf(o.Source, "tools")
	g.Terms, g.MaxBytes = terms, limit
	t.offers, t.grants = append(t.offers, o), append(t.grants, g)
}

// maxSaid bounds what an agent said in one turn, as its later prompts repeat it.
const maxSaid = 1 << 20

// open takes what the turn adds through the gate, and appends it to the conversation.
func (t *turn) open(ctx context.Context) (prompt.Prompt, error) {
	for _, x := range t.of.earlier {
		if err := x.checkFresh(time.Now()); err != nil {
			return prompt.Prompt{}, err
		}
	}
	if err := t.seal(ctx); err != nil {
		return prompt.Prompt{}, err
	}
	added := brief.Turn{Contract: t.contract, Number: t.turn, Title: t.task.Title, MaxBytes: t.limits.MaxPromptBytes, Said: t.sealed[0], Results: t.sealed[1:]}
	if t.corrects {
		added.Results, added.Problem = nil, &t.sealed[1]
	}
	p, receipt, err := prompt.Continue(t.before, &added)
	if err != nil {
		return prompt.Prompt{}, err
	}
	t.of.steps = append(t.of.steps, p.Messages()[len(t.before.Messages()):])
	if err := t.of.writeHistory(); err != nil {
		return prompt.Prompt{}, err
	}
	t.prompt, t.whole = p, receipt
	t.receipt, t.shownSize = t.run.receiptOf(p, receipt)
	t.hidden = t.receipt != receipt
	if t.run.keyed() {
		t.key = keyOf(t.caps.Agent, t.run.team.Find(t.caps.Agent).AnswerVersion(), p)
		t.core = t.key
	}
	return p, nil
}

func (t *turn) started() *Outbox {
	if t.of.outbox == nil {
		t.of.outbox = t.of.started()
	}
	return t.of.outbox
}

func (*turn) ended(context.Context) {}

// cachedTurn returns what the agent said to the same prompt before the run was interrupted,
// if it called tools then.
func (x answerCache) cachedTurn() *record.AgentCall {
	p := x.run.priorRun
	if p == nil || !p.own || p.strict || x.run.fresh[x.task.ID] {
		return nil
	}
	for _, s := range p.toolCalls { // the workspace is gone, so the conversation begins again
		if s.Task == x.task.ID && s.Effect == string(tool.Workspace) {
			return nil
		}
	}
	return p.turns[p.key(x.modelCall)]
}

// continueFrom continues a conversation whose first turn an earlier process had. taken says
// whether that turn could be used.
func (a *attempt) continueFrom(ctx context.Context, e *record.AgentCall, first prompt.Prompt) (taken bool, err error) {
	if taken, err := a.cache().reissueTurn(e); !taken || err != nil {
		return false, err
	}
	a.conversation = &conversation{cachedTurn: true}
	a.releaseBatch()
	if err := a.permitted(ctx); err != nil {
		return true, err
	}
	return true, a.converse(ctx, first)
}

// reissueTurn takes what the agent said in an earlier process through the gate again.
func (x answerCache) reissueTurn(e *record.AgentCall) (taken bool, err error) {
	if e.Result == nil || e.Missing != "" {
		return false, nil
	}
	reply, old, err := gate.Reissue(e.Result, time.Now())
	if err != nil || old.Producer() != x.caps.Agent || old.Classification() > x.contract.MaxInput {
		return false, nil
	}
	said, err := (&gate.Compartment{Contract: x.contract}).GateTurn(envelope.ID(x.identity()+"/said"), reply.Text, reply.JSON, x.sealed, time.Now())
	if err != nil {
		return false, nil
	}
	calls, err := prompt.CallsOf(reply.JSON.Canonical())
	if err != nil {
		return false, nil
	}
	x.reply = agent.Reply{Text: reply.Text, Call: e.Call, Warnings: e.Warnings}
	for _, c := range calls {
		x.reply.ToolCalls = append(x.reply.ToolCalls, llm.ToolCall(c))
	}
	x.envelope = said
	return true, nil
}

// reissueTurnOf takes a later turn of an earlier process as this turn.
func (x answerCache) reissueTurnOf(e *record.AgentCall, own bool) (taken bool, err error) {
	if taken, err = x.reissueTurn(e); taken {
		x.recalled, x.own = e, own
	}
	return taken, err
}
