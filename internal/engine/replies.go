package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A reply is a handoff that names the one that it answers, which its sender was given. Each handoff has
// at most one reply. A required one is the result of the call that sent the handoff: until it comes, the
// attempt waits, and holds neither a slot nor a place among the tasks of its agent.

// A sentHandoff is a handoff of the run. The lock of the run guards it.
type sentHandoff struct {
	id, from, to string
	expects      string          // of the reader: plan.NoReply, plan.OptionalReply or plan.RequiredReply
	limit        time.Duration   // of the wait for a required reply
	sender       task.ID         // the task that sent it
	msg          mailbox.Message // the zero value if it is lost
	lost         bool            // its reader had too many unread messages of its task
	unread       string          // why it is not going to be read, for a sender that may know; empty if it may be read
	isRead       bool            // the task that was given it has ended
	isOver       bool            // the task that sent it has ended
	isAnswered   bool

	// Of a required reply:
	reply *mailbox.Message
	end   string // what the sender is told in place of a reply once it does not wait any more
	clock replyClock
	wait  *turnWait // nil if no attempt waits
}

// newSentHandoff returns the handoff that a call sends.
func newSentHandoff(id, from string, sender task.ID, d *handoffCall) *sentHandoff {
	h := &sentHandoff{id: id, from: from, to: d.To, sender: sender, expects: cmp.Or(d.Response.Expectation, plan.OptionalReply)}
	if h.limit = plan.DefaultReplyTimeout; d.Response.TimeoutMs > 0 {
		h.limit = time.Duration(d.Response.TimeoutMs) * time.Millisecond
	}
	return h
}

// awaited reports whether a call returns the reply.
func (h *sentHandoff) awaited() bool { return h != nil && h.expects == plan.RequiredReply }

// sentText is what the sender is told.
func (h *sentHandoff) sentText() string {
	return fmt.Sprintf("Sent to %s as handoff %s.", h.to, h.id) + h.unread
}

// checkResponse refuses a required reply of an agent that cannot reply.
func (d *handoffCall) checkResponse(team *plan.Roster, sender int) error {
	to, known := team.Index(d.To)
	if _, back := team.Network.Reaches(to, sender); d.Response.Expectation != plan.RequiredReply || known && back {
		return nil
	}
	return fmt.Errorf("%s cannot send anything to you, and so cannot reply; leave response out", d.To)
}

// answeredHandoff returns the handoff that a call answers; nil if it names none. Errors are about handoffs only
// that the agent has seen.
func (a *attempt) answeredHandoff(x *modelCall, d *handoffCall) (*sentHandoff, error) {
	if d.ContextRef == "" {
		return nil, nil
	}
	h := a.run.messages.handoffs[d.ContextRef]
	switch {
	case h == nil || !a.hasDelivered(d.ContextRef, x):
		return nil, fmt.Errorf("contextRef: unknown handoff %q; name one that you were sent, or leave it out", d.ContextRef)
	case h.from != d.To:
		return nil, fmt.Errorf("contextRef: handoff %s came from %s; send the reply to %[2]s, or leave contextRef out", h.id, h.from)
	case h.expects == plan.NoReply:
		return nil, fmt.Errorf("contextRef: handoff %s expects no reply; leave contextRef out", h.id)
	case h.isAnswered:
		return nil, fmt.Errorf("contextRef: handoff %s was answered already; leave contextRef out to send something else", h.id)
	case h.awaited() && (h.end != "" || isTaskOver(a.scheduler.run, h.sender)):
		return nil, fmt.Errorf("contextRef: %s does not wait for a reply to handoff %s any more; leave contextRef out to send it all the same", h.from, h.id)
	}
	return h, nil
}

// isTaskOver reports whether a task has ended.
func isTaskOver(r *results, id task.ID) bool {
	i, known := r.queue.Index(id)
	return known && r.queue.Status(i).Terminal()
}

// hasDelivered reports whether the turns before x, or x, were delivered a handoff.
func (c *conversation) hasDelivered(id string, x *modelCall) bool {
	for _, of := range append(slices.Clip(c.earlier), x) {
		for i := range of.sealed {
			if s := &of.sealed[i]; s.Source().Kind == handoff.Message && s.Source().Name == id && !s.Withheld() {
				return true
			}
		}
	}
	return false
}

// answer takes in the reply to a handoff, unless of is nil. A required one leaves the inbox.
func (m *runMessages) answer(of, reply *sentHandoff) {
	if of == nil {
		return
	}
	of.isAnswered = true
	if !of.awaited() {
		return
	}
	list, err := m.bus.Take(reply.to, func(one mailbox.Message) bool { return one.ID == reply.msg.ID })
	must(err) // the bus is one of this roster
	if len(list) == 0 {
		return
	}
	of.reply = &list[0]
	of.wait.review()
}

// canBeRead reports whether a task is left that may read a handoff, which is in an inbox. The lock of the run is held.
func canBeRead(s *scheduler, h *sentHandoff) bool {
	r := s.run
	to, _ := r.team.Index(h.to)
	x := r.team.MessageCrossing(h.from, h.msg.Envelope.Classification(), &r.team.Capabilities[to])
	if x.Withheld() {
		return false
	}
	for i := range r.tasks {
		if plan.MayHold(r.plan, i, h.to) && !r.queue.Status(i).Terminal() && x.After <= plan.Bound(r.plan, i) {
			return true
		}
	}
	return false
}

// isUnread reports whether a message waits in an inbox.
func (m *runMessages) isUnread(msg mailbox.Message) bool {
	for _, by := range []map[int][]mailbox.Message{m.given, m.again, m.directed, m.turns} {
		for _, list := range by {
			if slices.ContainsFunc(list, func(one mailbox.Message) bool { return one.ID == msg.ID }) {
				return false
			}
		}
	}
	for _, in := range m.holders {
		if in.has(msg) {
			return false
		}
	}
	return true
}

// restoreHandoff takes in a handoff that an earlier process sent.
func (m *runMessages) restoreHandoff(s *record.SentMessage) {
	var d handoffCall
	if s.Message != nil && s.Message.JSON != nil {
		_ = json.Unmarshal(s.Message.JSON, &d) // one that cannot be read is lost, as putBack warns
	}
	d.To = s.To
	h := newSentHandoff(s.ID, s.From, taskOfCall(s.Call), &d)
	m.keep(h)
	e, own := m.run.memo.Call(s.Call).Result, m.run.memo.Is(memo.Own)
	if own && e != nil && e.Code == codes.Tool && e.Result != nil {
		h.end = e.Result.Text
	}
	if hasEnded := e != nil && e.Code != codes.ReplyPending; own && h.awaited() && !hasEnded {
		h.clock.spent = m.run.memo.WaitedFor(s)
	}
	var ok bool
	if h.msg, ok = m.putBack(s); ok {
		m.answer(m.handoffs[d.ContextRef], h)
	}
}

// contextsAfterWait returns the contexts of the calls that come after a wait.
func (a *attempt) contextsAfterWait() (ctx, interruptible context.Context, end func()) {
	ctx, cancel := a.untilExpiry(a.ctx)
	interruptible, endCall := a.run.steering.call(ctx, a)
	if a.stopped {
		stopped, stop := context.WithCancelCause(interruptible)
		stop(ErrInterrupted)
		interruptible = stopped
	}
	return ctx, interruptible, func() {
		endCall()
		cancel()
	}
}

// offerReply offers the reply that a call waited for as its result.
func (t *turn) offerReply(reply mailbox.Message) {
	limit := cmp.Or(t.call.limits.On(gate.Source{Kind: handoff.Message}, 0), tool.DefaultMaxOutput)
	t.limit = append(t.limit, limit)
	if t.of.readsFiles() {
		limit = gate.MaxRedact // what the agent does not get is in a file
	}
	t.call.run.mu.Lock()
	defer t.call.run.mu.Unlock()
	t.addMessage(reply, limit)
}
