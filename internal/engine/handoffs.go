package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/llm"
)

// An agent with neighbors sends them handoffs with the tool send_handoff. A handoff waits in the inbox
// of its reader as soon as the call is made, whatever becomes of the attempt. What the call returns
// depends on the spec and on what the sender did, and not on the reader.

// runtimeCalls are what an attempt has that may call tools of the runtime.
type runtimeCalls struct {
	runtimeTools []plan.RuntimeTool // among its tools
	handoffs     int                // that it sent; guarded by the lock of the run
	stopped      bool               // the user interrupted the last wait for replies
}

// sendsHandoff reports whether a call of a tool with this name sends a handoff.
func (a *runtimeCalls) sendsHandoff(name string) bool {
	return name == plan.SendHandoff && a.runtimeTool(name) != nil
}

// runtimeTool returns the tool of the runtime with this name that the agent may call, or nil.
func (a *runtimeCalls) runtimeTool(name string) *plan.RuntimeTool {
	i := slices.IndexFunc(a.runtimeTools, func(t plan.RuntimeTool) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &a.runtimeTools[i]
}

// callRuntimeTool performs a tool of the runtime. A call that cannot be performed has an answer that says
// why; an error ends the attempt.
func (a *attempt) callRuntimeTool(ctx context.Context, x *modelCall, said *envelope.Envelope, call llm.ToolCall, t *plan.RuntimeTool) (answer toolAnswer, err error) {
	began := time.Now()
	v, err := jsonvalue.Parse(call.Arguments)
	if err == nil {
		if err = t.Arguments().Validate(v); err != nil {
			err = handoffProblem(t, v, err)
		}
	}
	if err != nil {
		return refuseCall(a, x, said, call, "Invalid arguments: "+err.Error()+".")
	}
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), ErrInterrupted) {
		return refuseCall(a, x, said, call, notMade)
	}
	place, key := a.run.calls.of(x, &call)
	if t.To != nil {
		return a.transfer(ctx, x, said, call, t, place)
	}
	answer.id = call.ID
	earlier := a.priorCall(place)
	if earlier != nil && earlier.Result != nil && earlier.Result.Producer == gate.Runtime {
		answer.envelope, err = a.runtimeAnswer(x, said, call, earlier.Result.Text)
		answer.failed = !earlier.Completed()
		return answer, err
	}
	h, err := a.sendHandoff(x, placedCall{place, key}, v)
	var text string
	switch {
	case err != nil:
		text, answer.failed = "Not sent: "+refusalOf(err)+".", true
	case h.awaited():
		answer.awaits = &replyCall{call: call, place: place, handoff: h}
		return answer, nil
	case h.lost && a.canReceiveFrom(h.to):
		text, answer.failed = fmt.Sprintf("Not sent: the inbox of %s is full.", h.to), true
	default:
		text = h.sentText()
	}
	if answer.envelope, err = a.runtimeAnswer(x, said, call, text); err != nil {
		return answer, err
	}
	if earlier == nil {
		answer.made = &ToolCallMetrics{Tool: t.Name, Duration: time.Since(began), Failed: answer.failed}
		a.recordRuntimeCall(place, &answer)
	}
	return answer, nil
}

// priorCall returns how a call ended in an earlier process, in the conversation that continues; nil if it
// did not.
func (a *attempt) priorCall(place string) *record.AgentCall {
	if m := a.run.memo; m.Is(memo.Own) && a.cachedTurn {
		if e := m.Call(place).Result; e != nil && e.Code != codes.ReplyPending && e.Missing == "" {
			return e
		}
	}
	return nil
}

// recordRuntimeCall records how a call of a tool of the runtime ended.
func (a *attempt) recordRuntimeCall(place string, answer *toolAnswer) {
	if a.run.ledger == nil {
		return
	}
	e := a.runtimeCallEntry(place, plan.SendHandoff, answer.made.Duration)
	if answer.reply != nil {
		e.Result = gate.RecordOf(answer.reply.Envelope)
	} else {
		e.Result = gate.RecordOf(answer.envelope)
	}
	if answer.failed {
		e.Code = codes.Tool
	}
	a.run.ledger.note(record.Entry{ToolResult: e})
}

// handoffProblem says what is wrong with the arguments of send_handoff. A tool that takes no response is
// that of an agent to which no edge leads back.
func handoffProblem(t *plan.RuntimeTool, v jsonvalue.Value, err error) error {
	if _, asks := jsonvalue.At(v.Value(), []string{"response"}); asks && !t.Required {
		return errors.New("response: no agent that you may send to can send to you, and so none can reply; leave response out")
	}
	return errors.New(schema.Problem(err))
}

// runtimeCallEntry returns what the journal stores of a call of a tool of the runtime that took this long.
func (r *request) runtimeCallEntry(place, tool string, took time.Duration) *record.AgentCall {
	now := time.Now()
	return &record.AgentCall{
		CallID: record.CallID{Session: place, Task: r.task.ID, Title: r.task.Title, Agent: gate.ToolReader(tool), Attempt: r.number, Part: "/tool"},
		Start:  now.Add(-took), End: now,
	}
}

// A placedCall is a call of a tool with its ID in the run and the key of its arguments.
type placedCall struct {
	id  string
	key record.Key
}

// A handoffCall is what an agent passes to send_handoff.
type handoffCall struct {
	To         string `json:"to"`
	Message    string `json:"message"`
	ContextRef string `json:"contextRef"`
	Response   struct {
		Expectation string `json:"expectation"`
		TimeoutMs   int64  `json:"timeoutMs"`
	} `json:"response"`
}

// parseHandoff reads the arguments of a call, and what else the handoff says. All of it has at most so many bytes.
func parseHandoff(v jsonvalue.Value, most int) (h handoffCall, structured jsonvalue.Value, err error) {
	if err = json.Unmarshal([]byte(v.Canonical()), &h); err != nil {
		return h, structured, err
	}
	if structured, err = withoutMembers(v, "to", "message"); err != nil {
		return h, structured, err
	}
	if n := len(h.Message) + len(structured.Canonical()); n > most { // the schema counts characters, of the message alone
		err = tooLong(n, most)
	}
	return h, structured, err
}

// tooLong is the error about a message that is larger than an agent may send.
func tooLong(bytes, most int) error {
	return fmt.Errorf("it has %d bytes, at most %d: send less, or in several messages", bytes, most)
}

// sendHandoff sends a handoff. The same call, made again by a resumed process or a later attempt, sends
// nothing.
func (a *attempt) sendHandoff(x *modelCall, at placedCall, v jsonvalue.Value) (*sentHandoff, error) {
	r := a.run
	d, structured, err := parseHandoff(v, r.team.Config.MaxMessageBytes)
	if err != nil {
		return nil, err
	}
	to, known := plan.NeighborShownAs(a.by, a.member, d.To)
	if !known {
		return nil, fmt.Errorf("there is no edge to %s", d.To)
	}
	d.To = to
	hops := 0
	for _, of := range a.earlier {
		hops = max(hops, gate.HopsOf(of.sealed))
	}
	id := record.HandoffID(strings.TrimPrefix(at.id, r.id))
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.messages
	if h := m.handoffs[id]; h != nil {
		return h, nil
	}
	if a.handoffs >= plan.MaxHandoffs {
		return nil, fmt.Errorf("an attempt at a task sends at most %d handoffs", plan.MaxHandoffs)
	}
	if err := d.checkResponse(a.run.team, a.member); err != nil {
		return nil, err
	}
	of, err := a.answeredHandoff(x, &d)
	if err != nil {
		return nil, err
	}
	header, err := (&gate.Compartment{Contract: x.contract}).GateMessage(x.sealed, hops, time.Now())
	if err != nil {
		return nil, err
	}
	h := newSentHandoff(id, a.caps.Agent, a.task.ID, &d)
	draft := mailbox.Draft{From: a.caps.Agent, To: d.To, Content: d.Message, Structured: structured, Classification: header.Classification, Name: id, Task: a.task.ID}
	if err := a.postHandoff(x, h, of, draft, header, at); err != nil {
		return nil, err
	}
	h.clock.start(r.steering)
	a.handoffs++
	m.keep(h)
	return h, nil
}

// postHandoff puts a handoff, which may be the reply to another one, into the inbox of its reader. One too
// many of this task that the reader has not read is lost. The lock of the run is held.
func (a *attempt) postHandoff(x *modelCall, h, of *sentHandoff, draft mailbox.Draft, header envelope.Header, at placedCall) error {
	m := a.run.messages
	msg, notify, err := m.post.Send(draft, header)
	if errors.Is(err, mailbox.ErrFull) && of.awaited() { // it does not wait in the inbox
		msg, err = m.post.Restore(draft, header)
		notify = nil
	}
	if errors.Is(err, mailbox.ErrFull) {
		a.run.warn(fmt.Sprintf("a handoff from %q to %q was lost: %v", h.from, h.to, err))
		h.lost = true
		return nil
	}
	if err != nil {
		return err
	}
	m.record(msg, record.SentMessage{Session: x.contract.Session, Call: at.id, Key: at.key})
	m.notifyOnceDurable(notify)
	h.msg = msg
	if !of.awaited() && a.canReceiveFrom(h.to) && !canBeRead(a.scheduler, h) {
		h.unread = fmt.Sprintf(" No task of %s is left that could read it.", h.to)
	}
	m.answer(of, h)
	return nil
}

// withoutMembers returns an object without some of its members; the zero value if none is left.
func withoutMembers(v jsonvalue.Value, names ...string) (left jsonvalue.Value, err error) {
	members, _ := v.Value().(map[string]any)
	for _, name := range names {
		delete(members, name)
	}
	if len(members) == 0 {
		return left, nil
	}
	return jsonvalue.Encode(members)
}

// takeUnread takes the messages that wait for the agent of an attempt and that it may read out of its inbox.
func (m *runMessages) takeUnread(a *attempt) []mailbox.Message {
	now := time.Now()
	list, err := m.bus.Take(a.task.Assignee, func(msg mailbox.Message) bool {
		x := a.by.MessageCrossing(msg.Envelope.Producer(), msg.Envelope.Classification(), a.caps)
		return !x.Withheld() && x.After <= a.bound && !errors.Is(msg.Envelope.Fresh(now), envelope.ErrExpired)
	})
	must(err) // the bus is one of this roster
	for _, msg := range list {
		m.adopt(msg) // the program can mark one as unread that an earlier run had
	}
	return list
}

// offerOf offers a message to an agent. The title of a handoff that the agent can answer is its id.
func (m *runMessages) offerOf(msg mailbox.Message, member int) gate.Offer {
	name := m.name(msg)
	o := gate.Offer{Source: gate.Source{Kind: handoff.Message, Name: name}, Title: msg.From, Assignee: msg.From, Envelope: msg.Envelope, As: formOf(msg.Envelope), Optional: true}
	if from, known := m.run.team.Index(msg.From); known && m.handoffs[name] != nil {
		if _, back := m.run.team.Network.Reaches(member, from); back {
			o.Title = name
		}
	}
	return o
}
