package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/task"
)

// ErrLoopLimit reports a loop whose condition does not hold after its last round.
var ErrLoopLimit = codes.Condition(codes.LoopLimit)

// whyNoResult is the reason of a loop whose output task was needed in none of its rounds.
const whyNoResult = "Not needed: its output task was needed in no round."

// decideLoop ends a loop: its rounds have ended, or none of them runs.
func (b *brancher) decideLoop(ctx context.Context, i int, now time.Time) {
	why, err := b.whyNot(ctx, i, now)
	missing, none := b.missing(i)
	ups := b.run.plan.Graph.Upstream(i)
	first := int(ups[len(ups)-b.run.plan.Graph.Task(i).Reads-1]) // the first round, since the last one comes first
	switch {
	case err != nil:
		b.failLoop(i, err, now)
	case why != "":
		must(b.run.queue.Omit(i, why, now))
	case b.rounds[b.run.plan.Graph.Task(i).Title].isStuck():
		b.failLoop(i, b.rounds[b.run.plan.Graph.Task(i).Title].stuck, now)
	case none && b.isLeftOut(first): // there is no such item
		must(b.run.queue.Omit(i, whyLeftOut, now))
	case none && b.run.queue.Status(missing) == task.NotNeeded:
		must(b.run.queue.Omit(i, whyNoResult, now))
	case none:
		must(b.run.queue.Follow(i, missing, now))
	default:
		b.finishLoop(ctx, i, now)
	}
}

// finishLoop ends a loop whose rounds have ended: its result is that of the last round.
func (b *brancher) finishLoop(ctx context.Context, i int, now time.Time) {
	t, ups := b.run.plan.Graph.Task(i), b.run.plan.Graph.Upstream(i)
	results, reads := ups[:len(ups)-t.Reads], ups[len(ups)-t.Reads:]
	last := b.alternative(results)
	later := results[:slices.Index(results, int32(last))] // the last round comes first
	for _, up := range slices.Concat(reads, later) {
		if s := b.run.queue.Status(int(up)); s == task.Failed || s == task.Skipped {
			must(b.run.queue.Follow(i, int(up), now))
			return
		}
	}
	if err := b.checkLimit(ctx, i, now); err != nil {
		b.failLoop(i, err, now)
		return
	}
	from, out, decided := &b.run.tasks[last], &b.run.tasks[i], b.run.plan.Branches.Of(i)
	out.Envelope, out.Files, out.Label = gate.Raise(from.Envelope, decided), gate.Raise(from.Files, decided), from.Label.Join(decided)
	out.Result, out.Structured, out.Truncated, out.OutputFiles, out.Status = from.Result, from.Structured, from.Truncated, from.OutputFiles, task.Completed
	out.Metrics.Start, out.Metrics.End = now, now
	b.run.folders.left[t.ID] = b.run.folders.left[from.ID]
	if b.run.bus.live() {
		ev := event.Event{Type: event.TaskComplete, Task: t.ID, Title: t.Title, Agent: t.Assignee, Status: task.Completed, Bytes: len(out.Result)}
		b.run.bus.emit(ev)
	}
	must(b.run.queue.Start(i, now))
	must(b.run.queue.Complete(i, out.Envelope, now))
}

// checkLimit returns an error if a loop is to fail unless its condition holds at its end, and it
// does not: all rounds ran, or the last one left nothing to compare.
func (b *brancher) checkLimit(ctx context.Context, i int, now time.Time) error {
	t, rounds := b.run.plan.Graph.Task(i), 0
	if !t.Instance.Fails {
		return nil
	}
	for n, until := range slices.Backward(t.Instance.Until) {
		if !b.hasRead(until) {
			continue
		}
		if holds, err := b.evaluate(ctx, i, until, now); err != nil || holds {
			return err
		}
		rounds = n + 1
		break
	}
	if quorum := t.Instance.Quorum; quorum > 0 {
		return rejectedBy(quorum, max(rounds, 1))
	}
	return fmt.Errorf("%w: its condition does not hold after %d rounds", ErrLoopLimit, max(rounds, 1))
}

// hasRead reports whether a task has completed whose result a condition compares.
func (b *brancher) hasRead(c *task.Condition) (some bool) {
	c.Leaves(func(c *task.Condition) {
		up, _ := b.run.plan.Graph.Index(task.ID(c.Task))
		some = some || b.run.queue.Status(up) == task.Completed
	})
	return some
}

// failLoop ends a loop with an error.
func (b *brancher) failLoop(i int, err error, now time.Time) {
	t := &b.run.tasks[i]
	message := b.run.errorText(err.Error())
	t.Error = &TaskError{Code: code(err), Message: message, Task: t.ID, Title: t.Title, cause: func() error { return err }, words: b.run.bus.words()}
	must(b.run.queue.Fail(i, message, now))
}

// isLeftOut reports whether task i belongs to a round that did not run, or to an item that there is
// not. Results do not have such tasks.
func (b *brancher) isLeftOut(i int) bool {
	if b == nil || b.run.plan.Graph.Task(i).Instance == nil {
		return false
	}
	root, ok := b.run.queue.Root(i)
	return ok && b.run.queue.Status(i) == task.NotNeeded && b.run.queue.Reason(root) == whyLeftOut
}

// leaveOut takes the rounds that did not run out of a result.
func (b *brancher) leaveOut(res *Result) {
	if b.run.plan.Branches == nil {
		return
	}
	for _, of := range []*Result{res, res.recorded} {
		if of != nil {
			i := -1
			of.Tasks = slices.DeleteFunc(slices.Clone(of.Tasks), func(TaskResult) bool { i++; return b.isLeftOut(i) })
		}
	}
}
