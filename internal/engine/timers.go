package engine

import (
	"container/heap"
	"slices"
	"time"
)

// timers hold the tasks that wait for their next attempt. They share one timer
// of the clock, set to the earliest.
type timers struct {
	waits waits
	timer *time.Timer
}

type wait struct {
	at    time.Time
	index int
}

func newTimers() timers {
	t := timers{timer: time.NewTimer(0)}
	t.timer.Stop()
	return t
}

func (t *timers) empty() bool { return len(t.waits) == 0 }

// add makes a task wait until the given time.
func (t *timers) add(index int, at time.Time) {
	heap.Push(&t.waits, wait{at, index})
	t.reset()
}

// fired delivers once the earliest wait is over; it never does when nothing waits.
func (t *timers) fired() <-chan time.Time { return t.timer.C }

// due takes out the tasks whose wait is over, earliest first.
func (t *timers) due() []int {
	if t.empty() {
		return nil
	}
	now := time.Now()
	var due []int
	for len(t.waits) > 0 && !t.waits[0].at.After(now) {
		due = append(due, heap.Pop(&t.waits).(wait).index)
	}
	t.reset()
	return due
}

// remove ends the wait of a task.
func (t *timers) remove(index int) {
	if k := slices.IndexFunc(t.waits, func(w wait) bool { return w.index == index }); k >= 0 {
		heap.Remove(&t.waits, k)
		t.reset()
	}
}

// reset sets the timer to the earliest wait.
func (t *timers) reset() {
	if t.empty() {
		t.timer.Stop()
		return
	}
	t.timer.Reset(time.Until(t.waits[0].at))
}

func (t *timers) stop() { t.timer.Stop() }

// waits is a heap by time, then by index.
type waits []wait

func (w waits) Len() int { return len(w) }
func (w waits) Less(i, j int) bool {
	if !w[i].at.Equal(w[j].at) {
		return w[i].at.Before(w[j].at)
	}
	return w[i].index < w[j].index
}
func (w waits) Swap(i, j int) { w[i], w[j] = w[j], w[i] }
func (w *waits) Push(x any)   { *w = append(*w, x.(wait)) }
func (w *waits) Pop() any {
	old := *w
	last := old[len(old)-1]
	*w = old[:len(old)-1]
	return last
}
