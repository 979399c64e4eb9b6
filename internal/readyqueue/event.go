package readyqueue

import (
	"slices"

	"github.com/runteam/runteam/task"
)

// An Event is something that [Queue.On] reports.
type Event string

// The events. AllComplete comes once, when the last task has ended; adding a
// task that has not ended makes it possible once more.
const (
	Ready       Event = "task:ready" // also after a retry
	Completed   Event = "task:complete"
	Failed      Event = "task:failed"
	Skipped     Event = "task:skipped"
	NotNeeded   Event = "task:not_needed"
	AllComplete Event = "all:complete"
)

// On calls fn for every event of one kind from now on, with the task as it
// stood then; for AllComplete the task is empty. The returned function ends
// that and may be called more than once.
//
// Handlers run in the order of their subscription, within the call that caused
// the event, after it has changed the whole state and before it returns. A
// handler may call the queue: its calls take effect at once, and the events
// that they cause are delivered after those that wait already. So a handler may
// find the queue ahead of the event that it handles.
func (q *Queue) On(event Event, fn func(task.Task)) (cancel func()) {
	return q.events.on(event, fn)
}

// events are the subscribers, and the events that they have not received yet.
type events struct {
	handlers    []*handler
	undelivered []notice
	delivering  bool
	over        bool // AllComplete was delivered, and no task was added since
}

type handler struct {
	event Event
	fn    func(task.Task) // nil once canceled
}

type notice struct {
	event Event
	task  task.Task
}

func (e *events) on(event Event, fn func(task.Task)) (cancel func()) {
	h := &handler{event: event, fn: fn}
	e.handlers = append(e.handlers, h)
	return func() {
		if h.fn == nil {
			return
		}
		h.fn = nil
		// A new slice: a delivery may be going through the old one.
		e.handlers = slices.DeleteFunc(slices.Clone(e.handlers), func(other *handler) bool { return other == h })
	}
}

// wants reports whether there is a handler of an event.
func (e *events) wants(event Event) bool {
	return len(e.handlers) > 0 && slices.ContainsFunc(e.handlers, func(h *handler) bool { return h.event == event })
}

func (e *events) note(event Event, t task.Task) {
	e.undelivered = append(e.undelivered, notice{event, t})
}

// deliver calls the handlers, unless a call of deliver is doing so already.
func (e *events) deliver() {
	if e.delivering || len(e.undelivered) == 0 {
		return
	}
	e.delivering = true
	defer func() { e.delivering = false }() // a handler that panics leaves the rest to the next call
	for len(e.undelivered) > 0 {
		n := e.undelivered[0]
		e.undelivered = e.undelivered[1:]
		for _, h := range e.handlers {
			if h.event == n.event && h.fn != nil {
				h.fn(n.task)
			}
		}
	}
	e.undelivered = nil
}
