package engine

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Children work until their parent is late, is interrupted, or ends. Its clock stands while the run is
// paused, as theirs do: a pause may last, and no child moves on meanwhile.

// A childLife is what ends the work of the children of a turn.
type childLife struct {
	ctx    context.Context // of the children
	cancel context.CancelCauseFunc
	parent context.Context // ends when the parent is late, but not when it is interrupted
	late   context.CancelCauseFunc
}

// follow has the children end when the calls of the turn are interrupted. It returns their context.
func (l *childLife) follow(a *attempt, calls context.Context) context.Context {
	if l.ctx == nil {
		l.parent, l.late = context.WithCancelCause(a.ctx)
		l.ctx, l.cancel = context.WithCancelCause(l.parent)
	}
	context.AfterFunc(calls, func() {
		if errors.Is(context.Cause(calls), ErrInterrupted) {
			l.cancel(ErrInterrupted)
		}
	})
	return l.ctx
}

// end releases the contexts. No child works any more.
func (l *childLife) end() {
	if l.ctx != nil {
		l.cancel(nil)
		l.late(nil)
	}
}

// watch ends the work when the time of the parent is up, until stop is called, which moves the end of that
// time by the pauses meanwhile.
func (l *childLife) watch(a *attempt, x *modelCall) (stop func()) {
	if a.contract.ExpiresAt.IsZero() {
		return func() {}
	}
	s, over := a.run.steering, make(chan struct{})
	began, left := time.Now(), time.Until(a.contract.ExpiresAt)
	a.run.mu.Lock()
	before := s.pausedFor()
	a.run.mu.Unlock()
	paused := func() (d time.Duration, until chan struct{}) {
		a.run.mu.Lock()
		defer a.run.mu.Unlock()
		if s != nil {
			until = s.paused
		}
		return s.pausedFor() - before, until
	}
	rest := func() (time.Duration, chan struct{}) {
		shift, until := paused()
		return left - (time.Since(began) - shift), until
	}
	var work sync.WaitGroup
	work.Go(func() {
		if awaitClock(rest, nil, over) {
			l.late(&lateParent{a.late(), a.depth})
		}
	})
	return func() {
		close(over)
		work.Wait()
		shift, _ := paused()
		extend(a, x, shift)
	}
}

// extend moves the end of the time of an attempt, and of x, the turn that it is in.
func extend(a *attempt, x *modelCall, by time.Duration) {
	if a.contract.ExpiresAt.IsZero() {
		return
	}
	a.contract.ExpiresAt = a.contract.ExpiresAt.Add(by)
	if x != &a.modelCall {
		x.contract.ExpiresAt = x.contract.ExpiresAt.Add(by)
	}
}
