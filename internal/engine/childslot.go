package engine

import (
	"context"
	"slices"
)

// Children take slots as attempts at tasks do, and come before tasks that have not begun. Their parent
// lends its own while it waits for them, so any number of children ends with one slot. It comes before
// children that have not begun.

// requestSlot asks for a slot for a child. It is granted when the channel is closed.
func (g *childGroup) requestSlot(child *attempt) (granted chan struct{}) {
	s := child.scheduler
	granted = make(chan struct{})
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	g.left++
	child.slotless = true
	s.slotless = append(s.slotless, granted)
	grantSlots(s)
	return granted
}

// lendSlot lends the slot of the parent, unless all children have ended.
func (g *childGroup) lendSlot() bool {
	s := g.of.scheduler
	s.run.mu.Lock()
	lent := g.left > 0
	if lent {
		g.lent, g.of.slotless = true, true
		s.running--
		grantSlots(s)
	}
	s.run.mu.Unlock()
	s.wakeUp()
	return lent
}

// awaitSlot waits for a slot that was requested.
func awaitSlot(ctx context.Context, s *scheduler, a *attempt, granted chan struct{}) error {
	var ended error
	select {
	case <-granted:
	case <-ctx.Done():
		ended = ctx.Err()
	}
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	if k := slices.Index(s.slotless, granted); k >= 0 {
		s.slotless = slices.Delete(s.slotless, k, k+1)
	} else {
		a.slotless = false
	}
	return ended
}

// returnSlot returns the slot of a child that has ended. With the last child the parent asks for its own at the
// same moment, so that no task begins between them.
func (g *childGroup) returnSlot(child *attempt) {
	s := child.scheduler
	s.run.mu.Lock()
	if !child.slotless {
		s.running--
	}
	if g.left--; g.left == 0 && g.lent {
		g.lent, g.slot = false, make(chan struct{})
		s.slotless = slices.Insert(s.slotless, 0, g.slot)
	}
	grantSlots(s)
	s.run.mu.Unlock()
	s.wakeUp()
}

// grantSlots gives the free slots to those that wait. The lock of the run is held.
func grantSlots(s *scheduler) {
	for len(s.slotless) > 0 && s.running < s.run.options.MaxConcurrency {
		s.running++
		close(s.slotless[0])
		s.slotless = slices.Delete(s.slotless, 0, 1)
	}
}
