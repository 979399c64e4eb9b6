package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/readyqueue"
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
	lost         bool            // the inbox of its reader was full
	isAnswered   bool

	// Of a required reply:
	reply  *mailbox.Message
	end    string        // what the sender is told in place of a reply once it does not wait any more
	waited time.Duration // so far, without pauses
	wait   *replyWait    // nil if no attempt waits
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
func (h *sentHandoff) sentText() string { return fmt.Sprintf("Sent to %s as handoff %s.", h.to, h.id) }

// checkResponse refuses a required reply of an agent that cannot reply.
func (a runtimeCaller) checkResponse(d *handoffCall) error {
	team := a.run.team
	to, known := team.Index(d.To)
	if _, back := team.Network.Reaches(to, a.member); d.Response.Expectation != plan.RequiredReply || known && back {
		return nil
	}
	return fmt.Errorf("%s cannot send anything to you, and so cannot reply; leave response out", d.To)
}

// answered returns the handoff that a call answers; nil if it names none. Errors are about handoffs only
// that the agent has seen.
func (a runtimeCaller) answered(x *modelCall, d *handoffCall) (*sentHandoff, error) {
	if d.ContextRef == "" {
		return nil, nil
	}
	h := a.run.messages.handoffs[d.ContextRef]
	switch {
	case h == nil || !a.sees(x, d.ContextRef):
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

// sees reports whether the conversation so far has a handoff.
func (a runtimeCaller) sees(x *modelCall, id string) bool {
	for _, of := range append(slices.Clip(a.earlier), x) {
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
	if of.wait != nil {
		of.wait.finish()
	}
}

// restoreHandoff takes in a handoff that an earlier process sent.
func (m *runMessages) restoreHandoff(s *record.SentMessage) {
	var d handoffCall
	if s.Message != nil && s.Message.JSON != nil {
		_ = json.Unmarshal(s.Message.JSON, &d) // one that cannot be read is lost, as putBack warns
	}
	d.To = s.To
	p := m.run.priorRun
	_, at, _ := strings.Cut(s.Call, "/") // behind the id of the run
	sender, _, _ := strings.Cut(at, "/")
	h := newSentHandoff(s.ID, s.From, task.ID(sender), &d)
	m.handoffs[s.ID] = h
	if e := p.results[s.Call]; p.own && e != nil {
		if h.waited = e.End.Sub(e.Start); e.Code == codes.Tool && e.Result != nil {
			h.end = e.Result.Text
		}
	}
	var ok bool
	if h.msg, ok = m.putBack(s); ok {
		m.answer(m.handoffs[d.ContextRef], h)
	}
}

// A replyWait is the wait of an attempt for a reply. The lock of the run guards it.
type replyWait struct {
	*attempt
	handoff   *sentHandoff
	limit     time.Duration // of this wait, without pauses
	began     time.Time
	paused    time.Duration // how long the run had been paused by then
	over      chan struct{} // closed when it has ended
	hopeless  string        // why no reply can come, for the agent; empty if one can
	titled    string        // the same with the titles of tasks, for the user
	suspended bool          // the run has nothing else to do, and waits for people
}

// finish ends the wait.
func (w *replyWait) finish() {
	list := &w.scheduler.replies.list
	if i := slices.Index(*list, w); i >= 0 {
		*list = slices.Delete(*list, i, i+1)
		close(w.over)
	}
}

// lasted returns how long it has lasted, without pauses.
func (w *replyWait) lasted() time.Duration {
	return time.Since(w.began) - (w.run.steering.pausedFor() - w.paused)
}

// replyWaits are the waits for replies, the oldest first.
type replyWaits struct{ list []*replyWait }

// suspend ends the waits until a later process resumes the run.
func (l *replyWaits) suspend() {
	for len(l.list) > 0 {
		w := l.list[0]
		w.suspended = true
		w.finish()
	}
}

// awaitReply returns when a handoff has its reply, or when the agent is told its end instead. An
// error ends the attempt. A pause of the run counts neither towards the time limit of the wait nor
// towards that of the task.
func (a runtimeCaller) awaitReply(x *modelCall, h *sentHandoff, place string) error {
	w := a.beginWait(h)
	if w == nil {
		return nil
	}
	ctx, end := a.run.steering.call(a.ctx, a.attempt)
	timedOut := w.await(ctx)
	end()
	a.waited, a.stopped = true, isInterrupted(a.ctx, context.Cause(ctx))
	r := a.run
	r.mu.Lock()
	defer r.mu.Unlock()
	lasted := w.lasted()
	w.finish()
	h.wait, h.waited = nil, h.waited+lasted
	if shift := time.Since(w.began) - lasted; !a.contract.ExpiresAt.IsZero() {
		a.contract.ExpiresAt = a.contract.ExpiresAt.Add(shift)
		if x != &a.modelCall {
			x.contract.ExpiresAt = x.contract.ExpiresAt.Add(shift)
		}
	}
	if w.suspended && h.reply == nil && ctx.Err() == nil {
		a.scheduler.run.tasks[a.index].WaitingFor = h.to
		if e := a.entryOf(place, h.waited); r.ledger != nil {
			e.Code = codes.ReplyPending
			r.ledger.note(record.Entry{ToolResult: e})
		}
		return errLater
	}
	a.slotless = false
	a.scheduler.running++
	must(readyqueue.Continue(a.scheduler.run.queue, a.index, time.Now()))
	var text string
	switch {
	case h.reply != nil:
		return nil
	case w.hopeless != "":
		text = "No reply: " + w.hopeless + "."
		if r.bus.live() {
			ev := a.eventOf(event.Warning)
			ev.Message = fmt.Sprintf("task %q got no reply from %q: %s", a.task.Title, h.to, w.titled)
			r.bus.emit(ev)
		}
	case a.stopped:
		text = callStopped
	case a.ctx.Err() != nil:
		return withCause(a.ctx, a.ctx.Err())
	case timedOut && h.waited < h.limit:
		return a.lateWaiting(h.to)
	default:
		text = fmt.Sprintf("No reply within %v.", h.limit)
	}
	h.end = h.sentText() + " " + text
	return nil
}

// beginWait begins to wait, and gives away the slot. It returns nil if there is nothing to wait for.
func (a runtimeCaller) beginWait(h *sentHandoff) *replyWait {
	r := a.run
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case h.reply != nil || h.end != "":
		return nil
	case r.priorRun.isStrict():
		h.end = h.sentText() + " No reply is recorded."
		return nil
	}
	w := &replyWait{attempt: a.attempt, handoff: h, limit: h.limit - h.waited, began: time.Now(), paused: r.steering.pausedFor(), over: make(chan struct{})}
	if !a.contract.ExpiresAt.IsZero() {
		w.limit = min(w.limit, time.Until(a.contract.ExpiresAt))
	}
	h.wait = w
	s := a.scheduler
	a.slotless = true
	s.running--
	must(s.run.queue.Retry(a.index, w.began))
	s.replies.list = append(s.replies.list, w)
	s.wakeUp()
	return w
}

// await returns when the wait has ended, when ctx ends, or when the time is up, which it reports. The
// clock stops while the run is paused.
func (w *replyWait) await(ctx context.Context) (timedOut bool) {
	for {
		w.run.mu.Lock()
		left := w.limit - w.lasted()
		var paused chan struct{}
		if s := w.run.steering; s != nil {
			paused = s.paused
		}
		w.run.mu.Unlock()
		if left <= 0 {
			return true
		}
		var up <-chan time.Time // never while the run is paused
		timer := time.NewTimer(left)
		if paused == nil {
			up = timer.C
		}
		select {
		case <-w.over:
			timer.Stop()
			return false
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-paused: // it has been resumed
		case <-up: // but the run may have been paused meanwhile
		}
		timer.Stop()
	}
}

// afterWait returns the contexts of the calls that come after a wait.
func (a runtimeCaller) afterWait() (ctx, interruptible context.Context, end func()) {
	a.waited = false
	ctx, cancel := turnLoop{a.attempt}.untilExpiry(a.ctx)
	interruptible, endCall := a.run.steering.call(ctx, a.attempt)
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
	limit := cmp.Or(t.limits.On(gate.Source{Kind: handoff.Message}, 0), tool.DefaultMaxOutput)
	t.limit = append(t.limit, limit)
	if t.of.readsFiles() {
		limit = gate.MaxRedact // what the agent does not get is in a file
	}
	t.run.mu.Lock()
	defer t.run.mu.Unlock()
	t.addMessage(reply, limit)
}
