package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/mailbox"
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
}

// runtimeTool returns the tool of the runtime with this name that the agent may call, or nil.
func (a *runtimeCalls) runtimeTool(name string) *plan.RuntimeTool {
	i := slices.IndexFunc(a.runtimeTools, func(t plan.RuntimeTool) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &a.runtimeTools[i]
}

// A runtimeCaller performs the calls of tools of the runtime in one attempt.
type runtimeCaller struct{ *attempt }

// call performs a tool of the runtime. A call that cannot be performed has an answer that says
// why; an error ends the attempt.
func (a runtimeCaller) call(x *modelCall, said *envelope.Envelope, call llm.ToolCall, t *plan.RuntimeTool) (toolAnswer, error) {
	began := time.Now()
	v, err := jsonvalue.Parse(call.Arguments)
	if err == nil {
		if err = t.Arguments.Validate(v); err != nil {
			err = errors.New(schema.Problem(err))
		}
	}
	if err != nil {
		return refuseCall(a.attempt, x, said, call, "Invalid arguments: "+err.Error()+".")
	}
	text, err := a.sendHandoff(x, &call, v)
	failed := err != nil
	if failed {
		text = "Not sent: " + refusalOf(err) + "."
	}
	e, err := a.runtimeAnswer(x, said, call, text)
	return toolAnswer{id: call.ID, envelope: e, failed: failed, made: &ToolCallMetrics{Tool: t.Name, Duration: time.Since(began), Failed: failed}}, err
}

// A handoffCall is what an agent passes to send_handoff.
type handoffCall struct {
	To      string `json:"to"`
	Message string `json:"message"`
}

// sendHandoff sends a handoff and returns what the sender learns. The same call, made again by a
// resumed process or a later attempt, sends nothing.
func (a runtimeCaller) sendHandoff(x *modelCall, call *llm.ToolCall, v jsonvalue.Value) (string, error) {
	r := a.run
	var h handoffCall
	if err := json.Unmarshal([]byte(v.Canonical()), &h); err != nil {
		return "", err
	}
	to, known := plan.NeighborShownAs(a.by, a.member, h.To)
	if !known {
		return "", fmt.Errorf("there is no edge to %s", h.To)
	}
	h.To = to
	structured, err := withoutMembers(v, "to", "message")
	if err != nil {
		return "", err
	}
	hops := 0
	for _, of := range a.earlier {
		hops = max(hops, gate.HopsOf(of.sealed))
	}
	header, err := (&gate.Compartment{Contract: x.contract}).GateMessage(x.sealed, hops, time.Now())
	if err != nil {
		return "", err
	}
	place, _ := r.calls.of(x, call)
	id := handoffID(strings.TrimPrefix(place, r.id))
	sent := fmt.Sprintf("Sent to %s as handoff %s.", h.To, id)
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.messages
	if m.sentHandoffs[id] {
		return sent, nil
	}
	if a.handoffs >= plan.MaxHandoffs {
		return "", fmt.Errorf("an attempt at a task sends at most %d handoffs", plan.MaxHandoffs)
	}
	msg, notify, err := m.post.Send(mailbox.Draft{From: a.caps.Agent, To: h.To, Content: h.Message, Structured: structured, Classification: header.Classification}, header)
	switch {
	case errors.Is(err, mailbox.ErrFull): // what the reader has not read is nothing that the sender may know
		r.warn(fmt.Sprintf("a handoff from %q to %q was lost: %v", a.caps.Agent, h.To, err))
	case err != nil:
		return "", err
	default:
		m.record(msg, record.SentMessage{ID: id, Session: x.contract.Session, Call: place})
		m.notifyOnceDurable(notify)
		emitSent(x, msg)
	}
	a.handoffs++
	m.sentHandoffs[id] = true
	return sent, nil
}

// emitSent emits an event for a handoff that was sent.
func emitSent(x *modelCall, msg mailbox.Message) {
	if bus := x.run.bus; bus.live() {
		ev := x.eventOf(event.MessageSent)
		ev.ID, ev.To, ev.Bytes = x.run.messages.name(msg), msg.To, x.run.sizeOf(msg.Envelope)
		bus.emit(ev)
	}
}

// withoutMembers returns an object without some of its members; the zero value if none is left.
func withoutMembers(v jsonvalue.Value, names ...string) (left jsonvalue.Value, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(v.Canonical()), &members); err != nil {
		return left, err
	}
	for _, name := range names {
		delete(members, name)
	}
	if len(members) == 0 {
		return left, nil
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return left, err
	}
	return jsonvalue.Parse(string(raw))
}

// handoffID returns the id of a handoff, a UUID of version 5 made of the place of its call. It says
// nothing about other handoffs, and is the same in every run.
func handoffID(place string) string { return uuid.NewSHA1(handoffNamespace, []byte(place)).String() }

// handoffNamespace is the namespace of the ids of handoffs.
var handoffNamespace = uuid.MustParse("2f7c1e54-0b6d-5a0f-9d3b-416a77e290c8")

// takeUnread returns the messages that wait for the agent of an attempt and that it may read, and
// gives them to the task: later attempts get them too.
func (m *runMessages) takeUnread(a *attempt) []mailbox.Message {
	r, now := m.run, time.Now()
	list, err := m.bus.Take(a.task.Assignee, func(msg mailbox.Message) bool {
		x := r.team.MessageCrossing(msg.Envelope.Producer(), msg.Envelope.Classification(), a.caps)
		return !x.Withheld() && x.After <= a.bound && !errors.Is(msg.Envelope.Fresh(now), envelope.ErrExpired)
	})
	must(err) // the bus is one of this roster
	return list
}

// offerOf offers a message to an agent. The title of a handoff that the agent can answer is its id.
func (m *runMessages) offerOf(msg mailbox.Message, member int) gate.Offer {
	name := m.name(msg)
	o := gate.Offer{Source: gate.Source{Kind: handoff.Message, Name: name}, Title: msg.From, Assignee: msg.From, Envelope: msg.Envelope, As: formOf(msg.Envelope), Optional: true}
	if from, known := m.run.team.Index(msg.From); known && m.sentHandoffs[name] {
		if _, back := m.run.team.Network.Reaches(member, from); back {
			o.Title = name
		}
	}
	return o
}
