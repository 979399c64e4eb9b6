package engine

import (
	"context"
	"slices"

	"github.com/runteam/runteam/internal/readyqueue"
)

// Children take slots as attempts at tasks do, and places of their agents, and come before tasks that have
// not begun. Their parent lends its own slot and place while it waits for them, so any number of children
// ends with one slot and one place. It comes before children that have not begun.

// A slotRequest is the wait of a child or, if it lent its slot, of a parent.
type slotRequest struct {
	agent   string
	granted chan struct{} // closed when it has a slot, and a place of its agent
}

// A slotLoan is the slot of a parent, which its children have. The lock of the run guards it.
type slotLoan struct {
	working int         // children that have not ended
	lent    bool        // the parent waits for them
	back    slotRequest // of the parent, once none of them works
}

// request asks for a slot for a child.
func (l *slotLoan) request(child *attempt) slotRequest {
	s := child.scheduler
	q := slotRequest{child.caps.Agent, make(chan struct{})}
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	child.slotless = true
	s.slotless = append(s.slotless, q)
	l.working++
	grantSlots(s)
	return q
}

// lend gives away the slot and the place of a parent until its children have ended.
func (l *slotLoan) lend(parent *attempt) {
	s := parent.scheduler
	s.run.mu.Lock()
	parent.slotless, l.lent = true, true
	s.running--
	readyqueue.Vacate(s.run.queue, parent.caps.Agent)
	l.takeBack(parent)
	grantSlots(s)
	s.run.mu.Unlock()
	s.wakeUp()
}

// takeBack asks for a slot for the parent, before anything else gets that of its last child. The lock of the
// run is held.
func (l *slotLoan) takeBack(parent *attempt) {
	if l.lent && l.working == 0 {
		l.back = slotRequest{parent.caps.Agent, make(chan struct{})}
		parent.scheduler.slotless = slices.Insert(parent.scheduler.slotless, 0, l.back)
	}
}

// awaitBack waits until the parent has its slot and its place again.
func (l *slotLoan) awaitBack(ctx context.Context, parent *attempt) error {
	defer func() { l.lent = false }() // no child works that could look at it
	return awaitSlot(ctx, parent, l.back)
}

// end returns the slot and the place of a child that has ended.
func (l *slotLoan) end(parent, child *attempt) {
	s := child.scheduler
	s.run.mu.Lock()
	l.working--
	if !child.slotless {
		s.running--
		readyqueue.Vacate(s.run.queue, child.caps.Agent)
	}
	l.takeBack(parent)
	grantSlots(s)
	s.run.mu.Unlock()
	s.wakeUp()
}

// awaitSlot waits for a slot that was requested. An attempt at a task has its place again also if ctx ends
// first: the queue counts it until the attempt has ended.
func awaitSlot(ctx context.Context, a *attempt, q slotRequest) error {
	var ended error
	select {
	case <-q.granted:
	case <-ctx.Done():
		ended = ctx.Err()
	}
	s := a.scheduler
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	k := slices.IndexFunc(s.slotless, func(other slotRequest) bool { return other.granted == q.granted })
	if k < 0 {
		a.slotless = false
		return ended
	}
	s.slotless = slices.Delete(s.slotless, k, k+1)
	if !a.isChild() {
		readyqueue.Occupy(s.run.queue, q.agent)
	}
	return ended
}

// grantSlots gives the free slots to those that wait and whose agents have a place. The lock of the run is
// held.
func grantSlots(s *scheduler) {
	for s.running < s.run.options.MaxConcurrency {
		k := slices.IndexFunc(s.slotless, func(q slotRequest) bool { return readyqueue.HasPlace(s.run.queue, q.agent) })
		if k < 0 {
			return
		}
		q := s.slotless[k]
		s.slotless = slices.Delete(s.slotless, k, k+1)
		s.running++
		readyqueue.Occupy(s.run.queue, q.agent)
		close(q.granted)
	}
}
