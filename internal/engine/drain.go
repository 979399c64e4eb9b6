package engine

import (
	"context"
	"errors"
)

// A process that stops lets go of its runs without ending them. Once [RunOptions].Drain is closed, a run begins no
// call of a model, a tool or a person: what would begin one ends with errDrained, and is not recorded. Calls under
// way finish, and their results are recorded. Then the run is closed without an end, as a crash would leave it, and a
// later process continues it. A pause holds back the same calls, but waits.

// errDrained ends an attempt, a step or a child that would begin a call while the process is drained.
var errDrained = errors.New("the process is being stopped, and begins no call")

// ErrReleased is the cause with which a caller cancels the context of a run whose calls are to be interrupted, and
// that another process is to resume. Such a run has no end either.
var ErrReleased = errors.New("the process lets go of the run")

// isDraining reports whether the run begins no call any more.
func (r *runScope) isDraining() bool {
	select {
	case <-r.options.Drain:
		return true
	default:
		return false
	}
}

// isContinuedLater reports whether what ended with an error is open until a later process continues it: a person has to
// answer, or the process is drained. No entry says that it ended.
func isContinuedLater(err error) bool { return errors.Is(err, errLater) || errors.Is(err, errDrained) }

// isLeft reports whether the process stops and leaves a part of the run to a later one. A run that somebody cancels
// meanwhile, that is late or that has spent its budget is not left: it ends.
func (r *run) isLeft(ctx context.Context) bool {
	released := errors.Is(context.Cause(ctx), ErrReleased)
	if !released && (ctx.Err() != nil || !r.isDraining()) || r.stopped() {
		return false
	}
	c := r.coordinator
	isOpen := func(failed *TaskError) bool { return released || failed == nil || errors.Is(failed, errDrained) }
	switch {
	case r.plan == nil:
		return isOpen(c.unplanned)
	case !r.queue.IsComplete():
		return true
	}
	return r.answers && c.output == "" && isOpen(c.unanswered)
}
