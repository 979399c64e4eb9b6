package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/task"
)

// endAttempt records the outcome of an attempt. It returns when the task is to be tried
// again; zero if it is not.
func (r *results) endAttempt(ctx context.Context, a *attempt) (retry time.Time) {
	t := &r.tasks[a.index]
	r.account(t, a)
	if r.messages != nil && (a.stage == givenPrompt || a.recalled != nil || a.answered || a.conversation != nil && a.cachedTurn) {
		r.messages.read[a.index] = true
	}
	keepFiles(r.runScope, t, lastHolder(a))
	switch {
	case errors.Is(a.err, errLater):
		awaitPerson(r, a)
		return time.Time{}
	case errors.Is(a.err, errDrained): // still in progress
		t.addReceipts(a)
		return time.Time{}
	}
	if a.err != nil {
		retry = r.failed(ctx, a)
		t.addReceipts(a)
		return retry
	}
	r.warnTruncated(&a.modelCall, "task", t.Title)
	if t.Truncated = a.envelope.Truncated() && !a.isPartial(); t.Truncated {
		r.warn(fmt.Sprintf("task %q: the answer was truncated by a limit on tokens, and acceptTruncated takes it", t.Title))
	}
	call := visibility{t.Metrics.Partial}.callInfo(a.reply.Call)
	t.Envelope, t.Result, t.Structured, t.Label, t.Status = a.envelope, a.text, a.structured, a.envelope.Classification(), task.Completed
	t.Call = call
	t.Files, t.OutputFiles = a.outputs, outputFiles(a.outputs, a.outputsText)
	if r.bus.live() { // before the queue reports the tasks that this one makes ready
		ev := a.eventOf(event.TaskComplete)
		ev.Status, ev.Bytes = task.Completed, len(a.text)
		ev.Work = event.Work{Duration: visibility{t.Metrics.Partial}.duration(a.end.Sub(r.workStart(a))), Partial: t.Metrics.Partial, Truncated: t.Truncated, Reused: a.reusedFrom(), Call: nonZero(call)}
		ev.SetUsage(t.Metrics.Usage)
		r.bus.emit(ev)
	}
	r.totalBytes += r.sizeOf(a.envelope)
	must(r.queue.Complete(a.index, a.envelope, a.end))
	r.messages.send(a)
	settle(r, a.index)
	t.addReceipts(a)
	return time.Time{}
}

// workStart returns when the work on a task started in this process: an earlier process
// may have ended long ago.
func (r *results) workStart(a *attempt) time.Time {
	if start := r.tasks[a.index].Metrics.Start; start.After(r.start) {
		return start
	}
	return a.began
}

// account adds the usage of an attempt, and stores the attempt in the journal.
func (r *results) account(t *TaskResult, a *attempt) {
	t.Reused, t.Saved = a.visibility().savedUsage(a.recalled, a.own)
	t.Repeated = a.repeated
	r.count(&a.modelCall)
	r.addModelWarnings(&a.modelCall)
	t.Rejected = append(t.Rejected, rejectedAnswers(a.rejected, a.rejectedAgain)...)
	r.overdrawn = cmp.Or(r.overdrawn, a.broke)
	if a.err == nil {
		r.folders.keep(a)
	}
	if a.conversation != nil && !a.isPartial() {
		t.Metrics.ToolCalls = append(t.Metrics.ToolCalls, a.toolCalls...)
	}
	cutOff := a.aborted && (a.isPerson() || a.stage == inPreparation)         // no entry tells of it: it is asked again, or nobody was called
	if a.own || r.memo.Is(memo.Strict) || isContinuedLater(a.err) || cutOff { // it was counted when it was made, or is when it is answered
		t.Metrics.Attempts--
		if t.Metrics.End.IsZero() {
			t.Metrics.End = a.end
		}
		if a.conversation != nil && !a.own && !r.memo.Is(memo.Strict) { // it waits for an approval
			a.showCost()
			t.Metrics.Usage, t.Metrics.Partial = t.Metrics.Usage.Add(a.shownUsage()), t.Metrics.Partial || a.isPartial()
			measure(r, t, a)
		}
		return
	}
	defer removeFiles(r.runScope, a)
	a.showCost()
	t.Metrics.Usage, t.Metrics.End = t.Metrics.Usage.Add(a.shownUsage()), a.end
	t.Metrics.Partial = t.Metrics.Partial || a.isPartial()
	measure(r, t, a)
	if a.needsJournalEntry() {
		if a.err == nil && a.outputs != nil {
			r.ledger.add(r.batch, a.filesEntry(r.folders.left[t.ID].mounts))
		}
		r.ledger.add(r.batch, a.journalEntry())
	}
}

// measure counts the context of an attempt.
func measure(r *results, t *TaskResult, a *attempt) {
	of := a.measureContext()
	r.context, t.Metrics.TokensSaved = r.context.Add(of), t.Metrics.TokensSaved+of.TokensSaved
}

// reusedFrom is the run that an answer was taken from, were it this one before
// it was interrupted; empty for one that was just made.
func (a *attempt) reusedFrom() string {
	if a.own {
		return a.run.id
	}
	from, _ := a.visibility().savedUsage(a.recalled, a.own)
	return from
}

// failed decides what a failed attempt means: abort, another attempt at the time
// that it returns, or the end of its task.
func (r *results) failed(ctx context.Context, a *attempt) (retry time.Time) {
	t := r.plan.Graph.Task(a.index)
	if errors.Is(a.err, ErrJournal) && r.journalErr == nil {
		r.journalErr = a.err
	}
	if a.canceled {
		settle(r, a.index)
		must(r.queue.Skip(a.index, canceledTask, time.Now()))
		return time.Time{}
	}
	if beginsAgain(ctx, r, a) {
		return a.end
	}
	if again := isInterrupted(ctx, a.err); again && !r.stopped() && !a.terminal {
		r.steering.uncounted[a.index]++
		must(r.queue.Retry(a.index, a.end))
		return a.end
	}
	if a.aborted {
		return time.Time{} // still in progress: it is skipped with the rest once everything is drained
	}
	if r.tries(a.index) > t.MaxRetries || a.terminal {
		r.fail(a)
		return time.Time{}
	}
	if ctx.Err() != nil || r.stopped() {
		return time.Time{} // there will be no other attempt: skipped as well
	}
	wait := Backoff(t.RetryDelay, t.RetryBackoff, r.tries(a.index), r.options.Random())
	must(r.queue.Retry(a.index, a.end))
	if r.bus.live() {
		ev := a.eventOf(event.TaskRetry)
		ev.Code, ev.Message, ev.Wait = a.code, a.message, wait
		r.bus.emit(ev)
	}
	return a.end.Add(wait)
}

// made is how many attempts this process made at a task.
func made(r *results, i int) int {
	return r.tasks[i].Metrics.Attempts - r.memo.Attempts(r.tasks[i].ID).Begun()
}

// tries is how many of them count towards the limit of retries.
func (r *results) tries(i int) int {
	n := made(r, i)
	if r.steering != nil {
		n -= r.steering.uncounted[i]
	}
	return n
}

// fail ends a task, and through the queue's cascade what depends on it.
func (r *results) fail(a *attempt) {
	t, err := &r.tasks[a.index], a.err
	r.faults[a.index], t.Call = a.fault, a.visibility().callInfo(a.reply.Call)
	r.warnTruncated(&a.modelCall, "task", t.Title)
	settle(r, a.index)
	t.Error = &TaskError{Code: a.code, Message: a.message, Task: t.ID, Title: t.Title, Name: t.Name, cause: func() error { return err }, said: a.fault, words: r.bus.words()}
	must(r.queue.Fail(a.index, a.message, time.Now()))
}

// cascaded records that a task ended without a result, by itself or because of a dependency.
func (r *results) cascaded(t task.Task, kind event.Type) {
	i, _ := r.queue.Index(t.ID)
	out := &r.tasks[i]
	out.Status, out.Result, out.WaitingFor = t.Status, r.queue.Reason(i), ""
	ev := event.Event{Type: kind, Task: t.ID, Title: t.Title, Agent: t.Assignee, Status: t.Status, Attempt: out.Metrics.Attempts, Problem: event.Problem{Message: out.Result}}
	if root, ok := r.queue.Root(i); ok && root != i {
		ev.Root, ev.Because = r.tasks[root].ID, r.tasks[root].Title
		if t.Status == task.Failed {
			out.Error = &TaskError{Code: codes.Dependency, Message: out.Result, Task: t.ID, Title: t.Title, Name: out.Name, Root: ev.Root, cause: func() error { return ErrDependency }}
		}
	}
	switch {
	case out.Error != nil:
		out.Error.Accepted = acceptsFailure(&t.Spec, out.Error.Code, r.overdrawn)
		ev.Code, ev.Accepted = out.Error.Code, out.Error.Accepted
	case r.branches.isLeftOut(i):
		ev.Code = codes.LeftOut
	case ev.Root == "":
		ev.Code = skipCodes[out.Result]
	}
	if r.bus.live() {
		r.bus.emit(ev)
	}
}

// count records whether the endpoints of the run answer at all.
func (r *tally) count(a *modelCall) {
	r.recalled = r.recalled || a.recalled != nil
	if a.reply.Turns > 0 || a.reached == modelAnswered {
		r.answered = true
		return
	}
	switch {
	case endedByCommand(a.err): // which says nothing about an endpoint
	case a.reached == modelMissing:
		r.called = true
	default:
		switch {
		case a.stage != givenPrompt, refusedByBudget(a.err): // no call was made
		case len(a.caps.Endpoints) > 0: // it gave up, or was given up, before its model answered
			r.called = true
		default:
			r.answeredInGo = true
		}
	}
}

// must stops the program on a step that the queue does not allow: the run's
// own bookkeeping would be wrong, and nothing that it says could be trusted.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("runteam: %v", err))
	}
}
