package engine

import (
	"context"
	"errors"
	"time"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// With a journal, a prompt must be durable before it is sent. The
// tasks that come next are therefore prefetched while others hold the slots:
// their prompts are built and brought to the journal, and when a slot is free
// the call waits for nothing.

// maxPrefetched bounds how many attempts are prepared before their turn comes,
// and so how many prompts wait in memory.
const maxPrefetched = 64

// A prefetch makes an attempt wait for its turn before it calls the agent.
type prefetch struct {
	permit    chan struct{} // closed when a prefetched attempt may start, or must not; nil for any other
	forbidden bool          // it must not; set before permit is closed
}

// errNotStarted ends a prefetched attempt that was never started.
var errNotStarted = errors.New("its turn did not come")

// prefetch prepares the tasks that come next.
func (s *scheduler) prefetch(ctx context.Context) {
	r, most := s.run, min(s.limit, maxPrefetched)
	if r.log == nil || s.order != nil || r.messages != nil || len(s.prefetched) >= most {
		return
	}
	for _, i := range r.queue.Upcoming(most) {
		if s.prefetched[i] != nil || len(s.prefetched) >= most || !r.mayWait(i) {
			continue
		}
		a := s.newAttempt(ctx, i)
		a.permit = make(chan struct{})
		if s.prefetched == nil {
			s.prefetched = map[int]*attempt{}
		}
		s.prefetched[i] = a
		s.busy++
		s.begun = append(s.begun, a)
	}
}

// mayWait reports whether the prompt of a task stays as it is while it waits:
// nothing in it expires, and it does not depend on what happens meanwhile.
func (r *results) mayWait(i int) bool {
	t := r.plan.Graph.Task(i)
	if t.MemoryScope == task.ScopeAll || r.governed().Config.ApprovesLoweringFor(t.Assignee) {
		return false
	}
	for j := range t.Uses {
		if r.plan.Input(t.Uses[j]).TTL > 0 {
			return false
		}
	}
	for _, up := range r.plan.Graph.Upstream(i) {
		if e, ok := r.queue.Result(int(up)); ok && e != nil && !e.ExpiresAt().IsZero() {
			return false
		}
	}
	e := r.plannedText(i)
	return e == nil || e.ExpiresAt().IsZero()
}

// permit starts a prefetched attempt.
func (s *scheduler) permit(a *attempt) {
	delete(s.prefetched, a.index)
	s.run.takeOut(a, time.Now())
	s.run.ledger.add(nil, record.Entry{Begun: &record.PrefetchStart{Session: a.session(), Time: a.began}})
	close(a.permit)
}

// forbid ends the prefetched attempts, whose turn does not come any more.
func (s *scheduler) forbid() {
	for _, a := range s.prefetched {
		if !a.forbidden {
			a.forbidden = true
			close(a.permit)
		}
	}
}

// permitted waits until a prefetched model call may start.
func (x *modelCall) permitted(ctx context.Context) error {
	if x.permit == nil {
		return nil
	}
	x.releaseBatch()
	select {
	case <-x.permit:
	case <-ctx.Done():
		return withCause(ctx, ctx.Err())
	}
	if x.forbidden {
		return errNotStarted
	}
	return nil
}

// neverStarted reports whether a prefetched attempt ended before it was started.
func (a *attempt) neverStarted() bool {
	return a.aborted || errors.Is(a.err, errNotStarted) || errors.Is(a.err, errDrained)
}
