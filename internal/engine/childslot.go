package engine

import (
	"context"
	"slices"
)

// Children take slots as attempts at tasks do, and come before tasks that have not begun. Their parent
// lends its own while it waits for them, so any number of children ends with one slot. It comes before
// children that have not begun.

// requestSlot asks for a slot for a child or, if it lent its own, for its parent. The slot is granted when
// the channel is closed.
func requestSlot(a *attempt) (granted chan struct{}) {
	s := a.scheduler
	granted = make(chan struct{})
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	if a.slotless {
		s.slotless = slices.Insert(s.slotless, 0, granted)
	} else {
		s.slotless = append(s.slotless, granted)
	}
	a.slotless = true
	grantSlots(s)
	return granted
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

// returnSlot returns the slot of a child that has ended.
func returnSlot(child *attempt) {
	s := child.scheduler
	s.run.mu.Lock()
	if !child.slotless {
		s.running--
		grantSlots(s)
	}
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
