package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/memo"
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

// A turnWait is the wait of an attempt for the replies to the handoffs of one turn. It ends when each has its
// reply or is late, or when no reply can come: the task that read the handoff has ended, or the run is quiet.
// A pause of the run counts neither towards the time limits of the handoffs nor towards that of the task. The
// lock of the run guards it.
type turnWait struct {
	attempt   *attempt
	calls     []*replyCall
	ended     chan struct{} // capacity 1; something is sent when it may have ended
	began     time.Time
	paused    time.Duration // how long the run had been paused by then
	limit     time.Duration // until the task is late; zero if it has no limit
	quiet     bool          // nothing else runs or can start
	suspended bool          // the run has nothing else to do, and waits for people
}

// isOpen reports whether the reply to a handoff is still waited for.
func (t *turnWait) isOpen(h *sentHandoff) bool { return h.reply == nil && !h.isRead && !t.isLate(h) }

// open returns the first handoff whose reply is still waited for; nil if there is none.
func (t *turnWait) open() *sentHandoff {
	for _, c := range t.calls {
		if t.isOpen(c.handoff) {
			return c.handoff
		}
	}
	return nil
}

// isLate reports whether the reply to a handoff is late.
func (t *turnWait) isLate(h *sentHandoff) bool {
	return h.clock.waited(t.attempt.run.steering) >= h.limit
}

// review ends the wait if no handoff is open.
func (t *turnWait) review() {
	if t != nil && t.open() == nil {
		t.leave()
	}
}

// leave ends the wait.
func (t *turnWait) leave() {
	s := t.attempt.scheduler
	s.replyWaits = slices.DeleteFunc(s.replyWaits, func(other *turnWait) bool { return other == t })
	select {
	case t.ended <- struct{}{}:
	default: // it is going to look
	}
}

// endQuietWaits is called when nothing runs and nothing can start. If only replies are waited for, it ends the
// newest wait: then its task goes on, and may send the reply that another one waits for. If people are waited
// for, or the process is drained, all waits end until a later process resumes the run. The lock of the run is held.
func (s *scheduler) endQuietWaits(ctx context.Context) {
	if n := len(s.replyWaits); n > 0 && !s.awaitsPerson() && ctx.Err() == nil && !s.run.isDraining() {
		newest := s.replyWaits[n-1]
		newest.quiet = true
		newest.leave()
		return
	}
	s.personWaits.giveUp()
	for len(s.replyWaits) > 0 {
		s.replyWaits[0].suspended = true
		s.replyWaits[0].leave()
	}
}

// awaitsPerson reports whether a task waits for a person, be it in an attempt or until a later process.
func (s *scheduler) awaitsPerson() bool {
	r := s.run
	for i := range r.tasks {
		if r.tasks[i].WaitingFor != "" && !r.queue.Status(i).Terminal() {
			return true
		}
	}
	return false
}

// awaitReplies fills in the answers of the calls that wait for replies once each has its reply, or its
// end. It reports whether anything was waited for. An error ends the attempt.
func (a *attempt) awaitReplies(x *modelCall, said *envelope.Envelope, answers []toolAnswer) (waited bool, err error) {
	if !slices.ContainsFunc(answers, func(one toolAnswer) bool { return one.awaits != nil }) {
		return false, nil
	}
	t := a.beginWaits(answers)
	if waited = len(t.calls) > 0; waited {
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
		case r.memo.Is(memo.Strict):
			h.end = h.sentText() + " No reply is recorded."
		case !a.canReceiveFrom(h.to):
			h.end = fmt.Sprintf("%s No reply: nothing that %s sends can reach you in this task.", h.sentText(), h.to)
		case h.lost:
			h.end = fmt.Sprintf("%s No reply: the inbox of %s is full, so it was not delivered.", h.sentText(), h.to)
		case h.unread != "":
			h.end = h.sentText()
		default:
			if h.clock.spent > 0 { // for a process that continues after this one
				a.recordPendingCall(c)
			}
			h.wait, t.calls = t, append(t.calls, c)
			t.emit(event.ReplyWait, h, func(ev *event.Event) { ev.Wait = h.limit - h.clock.waited(r.steering) })
		}
	}
	if len(t.calls) > 0 {
		a.slotless = true
		s.replyWaits = append(s.replyWaits, t)
		t.review()
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

// remaining returns how long the wait lasts at most, and the pause of the run, if there is one. It ends the wait
// if no handoff is open any more.
func (t *turnWait) remaining() (left time.Duration, paused chan struct{}) {
	s := t.attempt.run.steering
	t.attempt.run.mu.Lock()
	defer t.attempt.run.mu.Unlock()
	if s != nil {
		paused = s.paused
	}
	if t.quiet || t.suspended || t.open() == nil {
		t.leave()
		return 0, paused
	}
	left = math.MaxInt64
	if t.limit > 0 {
		left = t.limit - t.lasted()
	}
	for _, c := range t.calls {
		if h := c.handoff; t.isOpen(h) {
			left = min(left, h.limit-h.clock.waited(s))
		}
	}
	return left, paused
}

// end ends the waits and returns the slot to the attempt. ctx is what they waited under. An error ends
// the attempt.
func (t *turnWait) end(ctx context.Context, x *modelCall) (err error) {
	r := t.attempt.run
	r.mu.Lock()
	defer r.mu.Unlock()
	lasted, open := t.lasted(), t.open()
	suspended := t.suspended && open != nil && ctx.Err() == nil
	t.leave()
	for _, c := range t.calls {
		c.handoff.wait = nil
		c.handoff.clock.stop(r.steering)
	}
	extend(t.attempt, x, time.Since(t.began)-lasted)
	if !suspended {
		t.attempt.slotless = false
		t.attempt.scheduler.running++
		must(readyqueue.Continue(t.attempt.scheduler.run.queue, t.attempt.index, time.Now()))
	}
	for _, c := range t.calls {
		code := t.endOf(c)
		t.emit(event.ReplyEnd, c.handoff, func(ev *event.Event) { ev.Code, ev.Duration = code, c.handoff.clock.spent })
	}
	switch {
	case suspended:
		return errLater
	case t.attempt.ctx.Err() != nil:
		return withCause(t.attempt.ctx, t.attempt.ctx.Err())
	case open != nil && !t.quiet && !t.attempt.stopped:
		return t.attempt.lateWaiting(open.to)
	}
	return nil
}

// endOf sets what the sender is told in place of a reply, unless it has the reply or goes on waiting in a
// later process. It returns the code of the end; empty if there is a reply.
func (t *turnWait) endOf(c *replyCall) (code string) {
	h, r := c.handoff, t.attempt.run
	var text, missing string
	switch {
	case h.reply != nil:
		return ""
	case h.isRead:
		missing = fmt.Sprintf("no task of %s is left that could reply", h.to)
	case t.isLate(h):
		code, text = codes.Timeout, fmt.Sprintf("No reply within %v.", h.limit)
		if r.messages.isUnread(h.msg) {
			text = fmt.Sprintf("No reply within %v: %s has not read it.", h.limit, h.to)
		}
	case t.quiet:
		missing = "none can come, since nothing else runs or can start"
	case t.attempt.stopped:
		code, text = codes.Interrupted, callStopped
	case t.suspended:
		t.attempt.scheduler.run.tasks[t.attempt.index].WaitingFor = h.to
		t.attempt.recordPendingCall(c)
		return codes.ReplyPending
	case t.attempt.ctx.Err() != nil:
		return codes.Canceled
	default:
		return codes.Timeout // of the task
	}
	if missing != "" {
		code, text = codes.NoReply, "No reply: "+missing+"."
		if r.bus.live() {
			ev := t.attempt.eventOf(event.Warning)
			ev.Message = fmt.Sprintf("task %q got no reply from %q: %s", t.attempt.task.Title, h.to, missing)
			r.bus.emit(ev)
		}
	}
	h.end = h.sentText() + " " + text
	return code
}
