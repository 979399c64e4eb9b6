package engine

import (
	"context"
	"slices"
)

// Children take slots as attempts at tasks do, and come before tasks that have not begun. Their parent
// lends its own while it waits for them, so any number of children ends with one slot.

// awaitSlot waits for a slot for a child.
func (s *scheduler) awaitSlot(ctx context.Context, child *attempt) error {
	granted := make(chan struct{})
	s.run.mu.Lock()
	s.waiting = append(s.waiting, granted)
	s.grantSlots()
	s.run.mu.Unlock()
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
	}
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	if k := slices.Index(s.waiting, granted); k >= 0 {
		s.waiting = slices.Delete(s.waiting, k, k+1)
		child.slotless = true
		return ctx.Err()
	}
	s.running-- // it was granted at the same time
	s.grantSlots()
	return ctx.Err()
}

// returnSlot returns the slot of a child that has ended.
func (s *scheduler) returnSlot(child *attempt) {
	s.run.mu.Lock()
	if !child.slotless {
		s.running--
		s.grantSlots()
	}
	s.run.mu.Unlock()
	s.wakeUp()
}

// grantSlots gives the free slots to children that wait. The lock of the run is held.
func (s *scheduler) grantSlots() {
	for len(s.waiting) > 0 && s.running < s.run.options.MaxConcurrency {
		s.running++
		close(s.waiting[0])
		s.waiting = s.waiting[1:]
	}
}
