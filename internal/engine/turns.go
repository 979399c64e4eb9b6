package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
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
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/oneline"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/internal/workspace"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A turn is the second or a later model call of an attempt. Its prompt is that of the turn
// before, followed by the agent's reply and the results of its tool calls. It has its own
// contract, decisions, receipt, budget reservation and entries in the journal.
type turn struct {
	call   modelCall
	of     *attempt
	before prompt.Prompt // the prompt of the turn before
	prompt prompt.Prompt

	grant      string   // what lets its context through: tools, or outputSchema if it corrects an answer
	limit      []int    // bytes that the agent gets of each result
	calls      []string // the ids of their calls
	unsaved    []bool   // for which whole results the workspace had no room
	hasProblem bool     // the offer behind the results is what the runtime tells the agent: what is wrong with its answer, or that it repeats itself
}

// A conversation is what the turns of an attempt have in common.
type conversation struct {
	shared  tool.Shared     // what its calls of tools have in common
	earlier []*modelCall    // the turns that have ended with calls of tools
	output  atomic.Int64    // bytes that the calls of the turn have returned
	made    map[string]bool // the IDs of its calls of tools; guarded by mu
	conversationFiles
	returned   returnedFiles
	toolCalls  []ToolCallMetrics // those that this process made, without the turn that is making its calls
	cachedTurn bool              // the first turn is one of an earlier process
	loops      loopDetector
	lowered    int  // how many calls have arguments that a declassifier lowers
	external   bool // a tool with an external effect that must not be repeated was called
	provider   providerTurns
}

// conversationFiles are what a conversation has in its workspace.
type conversationFiles struct {
	place    workspacePlace
	hasFiles atomic.Bool // there is a workspace
	fate     fate        // set when the attempt ends
	keptName string      // of a folder that is kept for the user
	above    bool        // the last call left it above its limits
	resumed  string      // the last call that an earlier process made in it; empty if it is a new one

	mu        sync.Mutex         // guards the rest, and the calls that were made
	folder    *workspace.Folder  // nil if there is none yet
	steps     [][]prompt.Message // what each turn added
	written   int                // how many of them are in the workspace
	sizes     map[string]int     // of the files that the runtime wrote, by path
	results   int                // bytes of the results among them
	keptAt    string             // the path of a folder that was kept
	removable string             // the path of one that can be removed once the end of the attempt is durable
}

// turnPart returns the end of the session of a turn.
func turnPart(n int) string { return record.TurnPrefix + strconv.Itoa(n) }

// converse makes the tool calls that the agent requested, performs the next turn with their
// results, and repeats until the agent answers. That answer is the one of the attempt. rejected
// says what is wrong with the first answer, if the agent did not call tools. After
// an external call the task is not retried: errors that a retry might fix wrap
// [ErrEffectsUncertain].
func (a *attempt) converse(ctx context.Context, first prompt.Prompt, rejected *schema.RejectedError) error {
	if a.conversation == nil {
		a.conversation = newConversation(a)
	}
	last, err := a.performTurns(ctx, first, rejected)
	switch {
	case err == nil && last == nil:
		err = a.performHolder(ctx)
	case err == nil:
		limited, cancel := a.untilExpiry(ctx)
		err = a.acceptTurn(limited, last)
		cancel()
	}
	if err != nil && a.external && ctx.Err() == nil && !terminal(err) && !isContinuedLater(err) {
		return fmt.Errorf("%w, so the task is not retried: %w", ErrEffectsUncertain, err)
	}
	return err
}

// newConversation returns the conversation that an attempt begins.
func newConversation(a *attempt) *conversation {
	c := &conversation{}
	c.place, c.keptName = placeOf(a), string(a.task.ID)
	return c
}

// closeShared closes what the calls of tools shared. ctx is that of the run, and err how the
// conversation ended.
func (a *attempt) closeShared(ctx context.Context, err error) {
	a.fate = fateOfFiles(ctx, a, err)
	if err := a.shared.Close(); err != nil {
		a.run.team.Log.Warn("resources of tools could not be closed", "task", a.task.Title, "error", err)
	}
}

// offerResults makes the requested calls and offers their results to the agent.
func (t *turn) offerResults(ctx context.Context, current *modelCall) error {
	a := t.of
	said, err := saidIn(current)
	if err != nil {
		return err
	}
	warning, err := t.detectLoop(current)
	if err != nil { // before any of its calls is made
		return err
	}
	if current.visibility().hidden {
		a.run.bus.hide(a.task.ID)
	}
	a.provider.add(max(current.turn, 1), current.reply.Provider)
	a.recordTurn(current, said)
	a.showCost()
	answers, err := a.callTools(ctx, current, said)
	if err != nil || a.next != nil {
		return err
	}
	a.keepForHolders(current, said, answers)
	t.offer(said, answers)
	if warning != "" {
		return t.offerFault(said, warning)
	}
	return nil
}

// offerProblem offers the agent its answer and what is wrong with it.
func (t *turn) offerProblem(current *modelCall, rejected *schema.RejectedError) error {
	said, err := rejectedAnswer(current)
	if err != nil {
		return err
	}
	t.of.keepForHolders(current, said, nil)
	t.offerSaid(said, t.call.limits.On(gate.Source{Kind: handoff.Draft}, 0)) // cut like other context
	return t.offerFault(said, rejected.Problem)
}

// offerFault offers what the runtime tells the agent about what it said.
func (t *turn) offerFault(said *envelope.Envelope, text string) error {
	h, now := said.Header(), time.Now()
	h.ID, h.Producer, h.CreatedAt, h.DerivedFrom = h.ID+"/problem", gate.Runtime, now, []envelope.ID{h.ID}
	problem, err := envelope.New(h, envelope.Text(text))
	if err != nil {
		return err
	}
	t.add(gate.Offer{Source: gate.Source{Kind: handoff.Fault, Name: string(t.call.task.ID) + t.call.part}, Title: "problem", Envelope: problem}, gate.CorrectionTerms(gate.Runtime, t.call.caps.Agent), maxSaid)
	t.hasProblem = true
	return nil
}

// takeCalls takes a reply that calls tools: the first turn of an attempt begins a
// conversation, and a later one continues it.
func takeCalls(ctx context.Context, x *modelCall, o purpose, text prompt.Prompt) error {
	if attemptOf(o) == nil {
		return noSuchTool(&x.reply)
	}
	turns := providerTurnsOf(o)
	if err := turns.check(&x.reply); err != nil {
		return err
	}
	if a, first := o.(*attempt); first {
		return a.converse(ctx, text, nil)
	}
	_, err := saidIn(x)
	return err
}

// noSuchTool returns the error of a call by an agent that has no tools.
func noSuchTool(r *agent.Reply) error {
	return fmt.Errorf("%w: %s", codes.Condition(codes.ToolCall), oneline.Of(r.ToolCalls[0].Name))
}

// saidIn makes the envelope of what the agent said in a turn that is not its last. It gives
// each call of a tool an ID, and makes its arguments a JSON value.
func saidIn(x *modelCall) (*envelope.Envelope, error) {
	if x.envelope != nil {
		return x.envelope, nil // it is made, or of an earlier process
	}
	if n := len(x.reply.ToolCalls); n > plan.MaxToolCalls {
		return nil, fmt.Errorf("%w: the agent asks for %d calls at once, at most %d", codes.Condition(codes.ToolCall), n, plan.MaxToolCalls)
	}
	x.reply.ToolCalls = slices.Clone(x.reply.ToolCalls) // the model may keep its own
	calls := make([]brief.Call, len(x.reply.ToolCalls))
	for i := range x.reply.ToolCalls {
		c := &x.reply.ToolCalls[i]
		c.ID = fmt.Sprintf("%s%d_%d", record.CallPrefix, max(x.turn, 1), i+1)
		if x.reply.TextCall {
			c.ID += textCallMark
		}
		if !toolName().MatchString(c.Name) {
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

// textCallMark is behind the ID of a call that the agent wrote as text. So each process that continues the conversation
// knows of it.
const textCallMark = "_text"

// toolName matches what can be the name of a tool.
var toolName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
})

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
	if x != &a.modelCall || a.run.ledger == nil || a.run.memo.Is(memo.Strict) || a.cachedTurn {
		return
	}
	e := a.journalCall()
	e.Part, e.End, e.Context = a.part+turnPart(1), time.Now(), event.Context{}
	e.Result = gate.RecordOf(said)
	e.CallsTools, e.Sends, e.Provider = true, a.outbox.used(), providerEntry(&x.reply, x.before)
	a.run.ledger.note(record.Entry{Turn: e})
}

// offerSaid offers what the agent said.
func (t *turn) offerSaid(said *envelope.Envelope, limit int) {
	source := gate.Source{Kind: handoff.Draft, Name: string(t.call.task.ID) + t.call.part}
	t.add(gate.Offer{Source: source, Title: "said", Envelope: said, As: formOf(said)}, gate.CorrectionTerms(said.Producer(), t.call.caps.Agent), limit)
}

// offer offers what the agent said, and what its calls gave.
func (t *turn) offer(said *envelope.Envelope, answers []toolAnswer) {
	t.offerSaid(said, maxSaid)
	for i := range answers {
		r := &answers[i]
		t.calls = append(t.calls, r.id)
		if r.reply != nil {
			t.offerReply(*r.reply)
			continue
		}
		terms := t.call.by.Terms(r.envelope.Producer(), t.call.caps.Agent)
		if r.envelope.Producer() == gate.Runtime {
			terms = gate.CorrectionTerms(gate.Runtime, t.call.caps.Agent)
		}
		o := gate.Offer{Source: gate.Source{Kind: handoff.ToolResult, Name: r.id}, Envelope: r.envelope, As: formOf(r.envelope), Optional: true, ShowsParents: !t.of.run.bus.hides(t.of.task.ID)}
		if o.Title = r.title; o.Title == "" && r.failed {
			o.Title = "error"
		}
		limit := r.limit
		if t.of.readsFiles() {
			limit = gate.MaxRedact // what the agent does not get is in a file
		}
		t.limit = append(t.limit, r.limit)
		t.add(o, terms, limit)
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
	g := gate.WholeOf(o.Source, t.grant)
	g.Terms, g.MaxBytes = terms, limit
	t.call.offers, t.call.grants = append(t.call.offers, o), append(t.call.grants, g)
}

// maxSaid bounds what an agent said in one turn, as its later prompts repeat it.
const maxSaid = 1 << 20

// open takes what the turn adds through the gate, and appends it to the conversation.
func (t *turn) open(ctx context.Context) (prompt.Prompt, error) {
	for _, x := range t.of.earlier {
		if err := checkFresh(x.sealed, time.Now()); err != nil {
			return prompt.Prompt{}, err
		}
	}
	if err := checkFresh(t.of.returned.sealed, time.Now()); err != nil {
		return prompt.Prompt{}, err
	}
	if err := t.call.seal(ctx); err != nil {
		return prompt.Prompt{}, err
	}
	if err := t.fitResults(); err != nil {
		return prompt.Prompt{}, err
	}
	added := brief.Turn{
		Contract: t.call.contract, Number: t.call.turn, Title: t.call.title(), MaxBytes: t.call.limits.MaxPromptBytes, HasFiles: t.of.readsFiles(),
		Said: t.call.sealed[0], Results: t.call.sealed[1 : 1+len(t.limit)], Messages: t.messages(), Unsaved: t.unsaved,
	}
	if t.hasProblem {
		added.Problem = &t.call.sealed[1+len(t.limit)]
	}
	p, receipt, err := prompt.Continue(t.before, &added)
	if err != nil {
		return prompt.Prompt{}, err
	}
	messages := p.Messages()
	step := slices.Clone(messages[len(messages)-added.Len():])
	if err := t.of.addStep(step); err != nil {
		return prompt.Prompt{}, err
	}
	t.prompt = p
	receipt.Returned = t.of.provider.returned(t.call.turn-1, t.of.earlier[len(t.of.earlier)-1].reply.ToolCalls, t.call.by.Rules.Words())
	t.call.setReceipt(p, receipt)
	t.call.sentSize = t.sentBytes(messages)
	if t.call.run.keyed() {
		before := t.of.earlier[len(t.of.earlier)-1]
		files := t.of.sealed
		if len(t.of.returned.sealed) > 0 {
			files = slices.Concat(files, t.of.returned.sealed)
		}
		t.call.key = withFiles(keyOfTurn(before.key, step, p.Added()), files, &t.call.run.contents)
		t.call.core, t.call.prior = t.call.key, withFiles(keyOfTurn(before.prior, step, p.Added()), files, &t.call.run.contents)
	}
	return p, nil
}

// messages returns those of the user, which are behind everything else that the turn adds.
func (t *turn) messages() []gate.Sealed {
	n := 1 + len(t.limit)
	if t.hasProblem {
		n++
	}
	return t.call.sealed[n:]
}

func (t *turn) started() *Outbox {
	if t.of.root != nil {
		return nil // a child or a later holder sends nothing
	}
	t.of.outbox = t.of.newOutbox(&t.call)
	return t.of.outbox
}

func (*turn) ended(context.Context) {}
