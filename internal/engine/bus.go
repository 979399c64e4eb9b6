package engine

import (
	"cmp"
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// drainTime is how long subscribers may take to catch up when a run has ended.
const drainTime = 5 * time.Second

// messageTime limits the search for secrets and personal data in one message.
// Above it, the event has the code of the error instead of the message.
const messageTime = time.Second

// A bus hands events to subscribers. Each has a goroutine and a queue without
// bound, so none can hold up the run or another one.
type bus struct {
	run    string
	texts  atomic.Pointer[ownEndpoints] // of messages
	subs   []*subscriber
	ledger *ledger // events wait here until they are durable; nil if nobody reads events

	mu    sync.Mutex         // guards names and hidden, and the order in which events go to the ledger
	names map[task.ID]string // of instances, by the keys of their items; nil if none has one

	hidden map[task.ID]bool // tasks with a prompt or an answer that the caller may not see: they have no inner events
}

func newBus(fns []func(event.Event), run string, words *ownEndpoints, log *slog.Logger) *bus {
	b := &bus{run: run, subs: make([]*subscriber, 0, len(fns))}
	b.texts.Store(words)
	for _, fn := range fns {
		s := &subscriber{fn: fn, log: log, done: make(chan struct{})}
		s.more = sync.NewCond(&s.mu)
		go s.deliver()
		b.subs = append(b.subs, s)
	}
	return b
}

// words returns what redacts messages.
func (b *bus) words() *ownEndpoints { return b.texts.Load() }

// govern has messages redacted as another policy says.
func (b *bus) govern(endpoints []string, words *redact.Redactor) {
	if b.live() {
		b.texts.Store(newOwnEndpoints(endpoints, words))
	}
}

// live reports whether events have a reader: a subscriber or the journal. Without one,
// no event needs to be made.
func (b *bus) live() bool { return b != nil && b.ledger != nil }

// clean returns a message as events have it. Error texts of agents and endpoints are for the caller and may contain
// personal data. Events go to logs and screens, which may name only the base URLs of the team's own endpoints. The code
// replaces a message that cannot be searched.
func (b *bus) clean(message, code string) string {
	if message == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), messageTime)
	defer cancel()
	clean, err := b.words().text(ctx, message)
	if err != nil {
		return cmp.Or(code, "[withheld]")
	}
	return clean
}

// differing returns a message as events have it; empty if there is no difference, or if no event has it.
func (b *bus) differing(message, code string) string {
	if !b.live() {
		return ""
	}
	if clean := b.clean(message, code); clean != message {
		return clean
	}
	return ""
}

// emit stamps an event that says what no other entry does, and adds it to the entries of the run.
func (b *bus) emit(e event.Event) {
	if !b.live() {
		return
	}
	e.Message = b.clean(e.Message, e.Code)
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.Inner && b.hidden[e.Task] {
		return
	}
	e.Run, e.Time = b.run, time.Now()
	e.Name, e.Because = b.names[e.Task], cmp.Or(b.names[e.Root], e.Because)
	b.ledger.note(record.Entry{Event: &e})
}

// hide drops the inner events and records of a task from now on: how many there are depends on
// what the caller may not see.
func (b *bus) hide(id task.ID) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hidden == nil {
		b.hidden = map[task.ID]bool{}
	}
	b.hidden[id] = true
}

// hides reports whether the caller learns nothing of the inner calls of a task.
func (b *bus) hides(id task.ID) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hidden[id]
}

// name sets the name of an instance, for the events that follow.
func (b *bus) name(id task.ID, name string) {
	if !b.live() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.names == nil {
		b.names = map[task.ID]string{}
	}
	b.names[id] = name
}

// publish queues an event for all subscribers.
func (b *bus) publish(e event.Event) {
	for _, s := range b.subs {
		s.push(e)
	}
}

// close lets the subscribers finish what is queued, for as long as drainTime.
func (b *bus) close() {
	for _, s := range b.subs {
		s.end()
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	for _, s := range b.subs {
		s.wait(ctx)
	}
}

// A subscriber is one function with its queue and goroutine.
type subscriber struct {
	fn   func(event.Event)
	log  *slog.Logger
	done chan struct{} // closed when its goroutine has ended

	mu     sync.Mutex // guards queue and ended
	more   *sync.Cond
	queue  []event.Event
	ended  bool
	failed bool // it panicked before; used by its goroutine alone
}

func (s *subscriber) push(e event.Event) {
	s.mu.Lock()
	s.queue = append(s.queue, e)
	s.mu.Unlock()
	s.more.Signal()
}

func (s *subscriber) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.more.Signal()
}

// wait returns when the subscriber has received all events, or when ctx ends. A
// subscriber that is done counts as done even after the end of ctx, so that the caller
// may read what it wrote although another subscriber is stuck.
func (s *subscriber) wait(ctx context.Context) {
	select {
	case <-s.done:
		return
	case <-ctx.Done():
	}
	select {
	case <-s.done:
	default:
		s.log.Warn("a subscriber did not take its events in time", "limit", drainTime)
	}
}

func (s *subscriber) deliver() {
	defer close(s.done)
	for {
		s.mu.Lock()
		for len(s.queue) == 0 && !s.ended {
			s.more.Wait()
		}
		batch := s.queue
		s.queue = nil
		s.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, e := range batch {
			s.call(e)
		}
	}
}

// call gives the function one event. A panic is logged once and ends nothing.
func (s *subscriber) call(e event.Event) {
	defer func() {
		if p := recover(); p != nil && !s.failed {
			s.failed = true
			s.log.Error("a subscriber of events panicked", "event", e.Type, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	s.fn(e)
}
