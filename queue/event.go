package queue

import (
	"slices"

	"github.com/runteam/runteam/task"
)

// An Event is something that [Queue.On] tells of.
type Event string

// The events. AllComplete comes once, when the last task has ended; adding a
// task that has not ended makes it possible once more.
const (
	Ready       Event = "task:ready" // also after a retry
	Completed   Event = "task:complete"
	Failed      Event = "task:failed"
	Skipped     Event = "task:skipped"
	AllComplete Event = "all:complete"
)

// events are the subscribers, and what they are still to be told.
type events struct {
	handlers    []*handler
	undelivered []notice
	delivering  bool
	over        bool // AllComplete was told, and no task has been added since
}

type handler struct {
	event Event
	fn    func(task.Task) // nil once canceled
}

type notice struct {
	event Event
	task  task.Task
}

// On calls fn for every event of one kind from now on, with the task as it
// stood then; for AllComplete the task is empty. The returned function ends
// that and may be called more than once.
//
// Handlers run in the order of their subscription, within the call that caused
// the event, after it has changed the whole state and before it returns. A
// handler may call the queue: its calls take effect at once, and the events
// that they cause are delivered after those that wait already. It may so find
// the queue ahead of the event that it was told of.
func (q *Queue) On(event Event, fn func(task.Task)) (cancel func()) {
	h := &handler{event: event, fn: fn}
	q.handlers = append(q.handlers, h)
	return func() {
		if h.fn == nil {
			return
		}
		h.fn = nil
		// A new slice: a delivery may be going through the old one.
		q.handlers = slices.DeleteFunc(slices.Clone(q.handlers), func(other *handler) bool { return other == h })
	}
}

// emit notes an event, if anybody wants to know. Index none is no task.
func (q *Queue) emit(event Event, i int) {
	if len(q.handlers) == 0 || !slices.ContainsFunc(q.handlers, func(h *handler) bool { return h.event == event }) {
		return
	}
	n := notice{event: event}
	if i >= 0 {
		n.task = q.Task(i)
	}
	q.undelivered = append(q.undelivered, n)
}

// deliver tells the subscribers, unless a call of deliver is at it already.
func (q *Queue) deliver() {
	if q.delivering || len(q.undelivered) == 0 {
		return
	}
	q.delivering = true
	defer func() { q.delivering = false }() // a handler that panics leaves the rest to the next call
	for len(q.undelivered) > 0 {
		n := q.undelivered[0]
		q.undelivered = q.undelivered[1:]
		for _, h := range q.handlers {
			if h.event == n.event && h.fn != nil {
				h.fn(n.task)
			}
		}
	}
	q.undelivered = nil
}
