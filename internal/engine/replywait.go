package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
)

// The calls of one turn that wait for replies all send their handoffs first, and then wait together.

// A replyClock counts how long the sender of a handoff has waited for the reply, without pauses of the
// run. It runs from the moment of sending. The lock of the run guards it.
type replyClock struct {
	spent  time.Duration // before it was started
	began  time.Time     // zero if it stands
	paused time.Duration // how long the run had been paused by then
}

// start starts a clock that stands.
func (c *replyClock) start(s *steering) {
	if c.began.IsZero() {
		c.began, c.paused = time.Now(), s.pausedFor()
	}
}

// waited returns how long it has counted.
func (c *replyClock) waited(s *steering) time.Duration {
	if c.began.IsZero() {
		return c.spent
	}
	return c.spent + time.Since(c.began) - (s.pausedFor() - c.paused)
}

// stop stops it.
func (c *replyClock) stop(s *steering) { *c = replyClock{spent: c.waited(s)} }

// A replyCall is a call that waits for a reply.
type replyCall struct {
	call    llm.ToolCall
	place   string
	handoff *sentHandoff
}

// A replyWait is the wait of an attempt for one reply. The lock of the run guards it.
type replyWait struct {
	attempt *attempt
	*replyCall
	ended        chan struct{} // of all waits of the turn, with capacity 1; something is sent when one ends
	over         bool
	timedOut     bool
	noReply      string // why no reply can come, for the agent; empty if one can
	noReplyShown string // the same with the titles of tasks, for the user
	suspended    bool   // the run has nothing else to do, and waits for people
}

// finish ends the wait.
func (w *replyWait) finish() {
	list := &w.attempt.scheduler.replies.list
	if i := slices.Index(*list, w); i >= 0 {
		*list = slices.Delete(*list, i, i+1)
		w.over = true
		select {
		case w.ended <- struct{}{}:
		default: // it is going to look
		}
	}
}

// replyWaits are the waits for replies, the oldest first.
type replyWaits struct{ list []*replyWait }

// attempts returns how many attempts wait.
func (l *replyWaits) attempts() (n int) {
	for i, w := range l.list {
		if !slices.ContainsFunc(l.list[:i], func(other *replyWait) bool { return other.attempt == w.attempt }) {
			n++
		}
	}
	return n
}

// suspend ends the waits until a later process resumes the run.
func (l *replyWaits) suspend() {
	for len(l.list) > 0 {
		w := l.list[0]
		w.suspended = true
		w.finish()
	}
}

// A turnWait are the waits of one turn, and the clock of the task meanwhile: a pause of the run counts
// neither towards the time limits of the waits nor towards that of the task.
type turnWait struct {
	attempt *attempt
	list    []*replyWait
	ended   chan struct{}
	began   time.Time
	paused  time.Duration // how long the run had been paused by then
	limit   time.Duration // until the task is late; zero if it has no limit
}

// awaitReplies fills in the answers of the calls that wait for replies once each has its reply, or its
// end. It reports whether anything was waited for. An error ends the attempt.
func (a *attempt) awaitReplies(x *modelCall, said *envelope.Envelope, answers []toolAnswer) (waited bool, err error) {
	t := a.beginWaits(answers)
	if waited = len(t.list) > 0; waited {
		ctx, end := a.run.steering.call(a.ctx, a)
		t.await(ctx)
		end()
		a.stopped = a.stopped || isInterrupted(a.ctx, context.Cause(ctx))
		err = t.end(ctx, x)
	}
	for i := range answers {
		c := answers[i].awaits
		if c == nil || c.handoff.reply == nil && c.handoff.end == "" {
			continue // it has an answer, or will have one in a later process
		}
		if problem := a.answerWait(x, said, c, &answers[i]); problem != nil {
			return waited, problem
		}
		answers[i].awaits = nil
	}
	return waited, err
}

// answerWait fills in the answer of a call that does not wait any more.
func (a *attempt) answerWait(x *modelCall, said *envelope.Envelope, c *replyCall, answer *toolAnswer) (err error) {
	h := c.handoff
	if answer.reply, answer.failed = h.reply, h.reply == nil; answer.failed {
		if answer.envelope, err = a.runtimeAnswer(x, said, c.call, h.end); err != nil {
			return err
		}
	}
	if a.priorCall(c.place) == nil { // else an earlier process has counted and recorded it
		answer.made = &ToolCallMetrics{Tool: plan.SendHandoff, Duration: h.clock.spent, Failed: answer.failed}
		a.recordRuntimeCall(c.place, answer)
	}
	return nil
}

// beginWaits begins to wait, and gives away the slot, unless there is nothing to wait for.
func (a *attempt) beginWaits(answers []toolAnswer) *turnWait {
	r, s := a.run, a.scheduler
	t := &turnWait{attempt: a, ended: make(chan struct{}, 1), began: time.Now()}
	r.mu.Lock()
	defer r.mu.Unlock()
	t.paused = r.steering.pausedFor()
	if !a.contract.ExpiresAt.IsZero() {
		t.limit = max(time.Until(a.contract.ExpiresAt), 1)
	}
	for i := range answers {
		c := answers[i].awaits
		if c == nil {
			continue
		}
		h := c.handoff
		switch h.clock.start(r.steering); {
		case h.reply != nil || h.end != "":
			h.clock.stop(r.steering)
		case r.priorRun.isStrict():
			h.end = h.sentText() + " No reply is recorded."
		case !a.canReceiveFrom(h.to):
			h.end = fmt.Sprintf("%s No reply: nothing that %s sends can reach you in this task.", h.sentText(), h.to)
		default:
			if h.clock.spent > 0 { // for a process that continues after this one
				a.recordPendingCall(c)
			}
			w := &replyWait{attempt: a, replyCall: c, ended: t.ended}
			h.wait = w
			t.list, s.replies.list = append(t.list, w), append(s.replies.list, w)
			t.emit(event.ReplyWait, h, func(ev *event.Event) { ev.Wait = h.limit - h.clock.waited(r.steering) })
		}
	}
	if len(t.list) > 0 {
		a.slotless = true
		s.running--
		must(s.run.queue.Retry(a.index, t.began))
		s.wakeUp()
	}
	return t
}

// recordPendingCall records how long a call has waited in the processes so far.
func (a *attempt) recordPendingCall(c *replyCall) {
	if a.run.ledger != nil {
		e := a.runtimeCallEntry(c.place, plan.SendHandoff, c.handoff.clock.spent)
		e.Code = codes.ReplyPending
		a.run.ledger.note(record.Entry{ToolResult: e})
	}
}

// canReceiveFrom reports whether anything that an agent sends can be delivered to the task, as the check before
// the run says. A sender may know only then what becomes of its handoffs.
func (a *attempt) canReceiveFrom(agent string) bool {
	i, known := a.by.Index(agent)
	return known && plan.Hears(a.scheduler.run.plan, a.index, i)
}

// emit emits an event about a handoff whose reply the attempt waits for.
func (t *turnWait) emit(kind event.Type, h *sentHandoff, set func(*event.Event)) {
	if t.attempt.run.bus.live() {
		ev := t.attempt.eventOf(kind)
		ev.From, ev.ID = h.to, h.id
		set(&ev)
		t.attempt.run.bus.emit(ev)
	}
}

// lasted returns how long it has lasted, without pauses.
func (t *turnWait) lasted() time.Duration {
	return time.Since(t.began) - (t.attempt.run.steering.pausedFor() - t.paused)
}

// await returns when all waits have ended, when ctx ends, or when the time of the task is up. The clocks
// stand while the run is paused.
func (t *turnWait) await(ctx context.Context) { awaitClock(t.remaining, t.ended, ctx.Done()) }

// awaitClock waits until no time is left, which it reports, or until over is closed. left says how long is
// left, and by which channel a pause of the run ends, if there is one: the time stands meanwhile. It is
// asked again after each pause, and each time that something is received from changed.
func awaitClock(left func() (rest time.Duration, paused chan struct{}), changed, over <-chan struct{}) (up bool) {
	for {
		rest, paused := left()
		if rest <= 0 {
			return true
		}
		timer := time.NewTimer(rest)
		ends := timer.C
		if paused != nil {
			ends = nil
		}
		select {
		case <-changed:
		case <-over:
			timer.Stop()
			return false
		case <-paused: // it has been resumed
		case <-ends: // but the run may have been paused meanwhile
		}
		timer.Stop()
	}
}

// remaining ends the waits whose time is up, and returns how long the others last at most, and the pause of
// the run, if there is one.
func (t *turnWait) remaining() (left time.Duration, paused chan struct{}) {
	s := t.attempt.run.steering
	t.attempt.run.mu.Lock()
	defer t.attempt.run.mu.Unlock()
	if s != nil {
		paused = s.paused
	}
	late := t.limit > 0 && t.lasted() >= t.limit
	for _, w := range t.list {
		rest := w.handoff.limit - w.handoff.clock.waited(s)
		if rest <= 0 && !w.over {
			w.timedOut = true
			w.finish()
		}
		if !w.over && (left == 0 || rest < left) {
			left = rest
		}
	}
	if late {
		return 0, paused
	}
	if t.limit > 0 {
		left = min(left, t.limit-t.lasted())
	}
	return left, paused
}

// end ends the waits and returns the slot to the attempt. ctx is what they waited under. An error ends
// the attempt.
func (t *turnWait) end(ctx context.Context, x *modelCall) (err error) {
	r := t.attempt.run
	r.mu.Lock()
	defer r.mu.Unlock()
	lasted, suspended := t.lasted(), false
	var open string // an agent whose reply is still missing
	for _, w := range t.list {
		if !w.over {
			open = w.handoff.to
		}
		w.finish()
		w.handoff.wait = nil
		w.handoff.clock.stop(r.steering)
		suspended = suspended || w.suspended && w.handoff.reply == nil && ctx.Err() == nil
	}
	extend(t.attempt, x, time.Since(t.began)-lasted)
	if !suspended {
		t.attempt.slotless = false
		t.attempt.scheduler.running++
		must(readyqueue.Continue(t.attempt.scheduler.run.queue, t.attempt.index, time.Now()))
	}
	for _, w := range t.list {
		code := t.endOf(w)
		t.emit(event.ReplyEnd, w.handoff, func(ev *event.Event) { ev.Code, ev.Duration = code, w.handoff.clock.spent })
	}
	switch {
	case suspended:
		return errLater
	case t.attempt.ctx.Err() != nil:
		return withCause(t.attempt.ctx, t.attempt.ctx.Err())
	case open != "" && !t.attempt.stopped:
		return t.attempt.lateWaiting(open)
	}
	return nil
}

// endOf sets what the sender is told in place of a reply, unless it has the reply or goes on waiting in a
// later process. It returns the code of the end; empty if there is a reply.
func (t *turnWait) endOf(w *replyWait) (code string) {
	h, r := w.handoff, t.attempt.run
	var text string
	switch {
	case h.reply != nil:
		return ""
	case w.noReply != "":
		code, text = codes.NoReply, "No reply: "+w.noReply+"."
		if r.bus.live() {
			ev := t.attempt.eventOf(event.Warning)
			ev.Message = fmt.Sprintf("task %q got no reply from %q: %s", t.attempt.task.Title, h.to, w.noReplyShown)
			r.bus.emit(ev)
		}
	case w.timedOut:
		code, text = codes.Timeout, fmt.Sprintf("No reply within %v.", h.limit)
		if _, unread := r.messages.readerOf(h.msg); unread {
			text = fmt.Sprintf("No reply within %v: %s has not read it.", h.limit, h.to)
		}
	case t.attempt.stopped:
		code, text = codes.Interrupted, callStopped
	case w.suspended:
		t.attempt.scheduler.run.tasks[t.attempt.index].WaitingFor = h.to
		t.attempt.recordPendingCall(w.replyCall)
		return codes.ReplyPending
	case t.attempt.ctx.Err() != nil:
		return codes.Canceled
	default:
		return codes.Timeout // of the task
	}
	h.end = h.sentText() + " " + text
	return code
}
