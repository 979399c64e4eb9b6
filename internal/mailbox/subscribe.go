package mailbox

import (
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
)

// Subscribe calls fn for every message that is sent to an agent from now on,
// broadcasts among them, until cancel is called. A name that is no agent's is
// an [ErrUnknown], no function an [ErrInvalid].
//
// The bus starts no goroutine: a call is always inside a Send or Broadcast.
// Each subscription gets its messages in the order of sending and one at a
// time. If one is being called when a message is sent, the same goroutine calls it
// for that message too; otherwise the call has ended when Send returns. So a slow
// function holds up a sender: one that has to wait should hand over to a
// goroutine of its own.
//
// Fn is called without the lock and may call the bus; what it sends to its own
// agent reaches it when it has returned. The message is in the inbox before fn is
// called and stays there. A panic of fn ends that call only; the first of each
// subscription is logged, with its stack and without its value, which may quote the
// message.
//
// After cancel has returned fn is not called again: cancel waits for a call of
// fn that is under way, so its caller must hold nothing that fn waits for. From
// within a subscriber's function it cannot wait, and returns at once. It may be
// called more than once.
func (b *Bus) Subscribe(agent string, fn func(Message)) (cancel func(), err error) {
	if fn == nil {
		return nil, fmt.Errorf("subscribe: %w function: it is nil", ErrInvalid)
	}
	box, err := b.box("subscribe", agent)
	if err != nil {
		return nil, err
	}
	s := &subscription{fn: fn, report: func(m Message) {
		b.options.Logger.Error("a subscriber of messages panicked", "agent", agent, "message", m, "stack", string(debug.Stack()))
	}}
	s.idle.L = &s.mu
	b.mu.Lock()
	defer b.mu.Unlock()
	box.subscriptions = append(box.subscriptions, s)
	return func() {
		b.mu.Lock()
		box.subscriptions = slices.DeleteFunc(box.subscriptions, func(other *subscription) bool { return other == s })
		b.mu.Unlock()
		s.end()
	}, nil
}

// A subscription is one function with the messages that it is still to get.
type subscription struct {
	fn     func(Message)
	report func(Message)
	failed bool // fn panicked before; used only while busy is set

	mu    sync.Mutex // guards what follows; taken after the bus's lock, or alone
	idle  sync.Cond  // busy became false
	queue []Message
	busy  bool // some goroutine is in deliver
}

// push queues a message.
func (s *subscription) push(m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, m)
}

// deliver calls the function for what is queued, unless another goroutine, or
// this one further up its stack, is at it already.
func (s *subscription) deliver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		return
	}
	s.busy = true
	defer func() { // also when fn ends the goroutine; then the rest is left to the next call
		s.busy = false
		s.idle.Broadcast()
	}()
	for len(s.queue) > 0 {
		m := s.queue[0]
		s.queue = s.queue[1:]
		s.call(m)
	}
	s.queue = nil
}

// call gives the function one message, without the lock that its caller holds.
func (s *subscription) call(m Message) {
	s.mu.Unlock()
	defer s.mu.Lock()
	defer func() {
		if p := recover(); p != nil && !s.failed {
			s.failed = true
			s.report(m)
		}
	}()
	s.fn(m)
}

// end prevents further calls and waits for the call in progress. No message is
// pushed any more, since the bus has removed the subscription.
func (s *subscription) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = nil
	if s.busy && withinCall() {
		return
	}
	for s.busy {
		s.idle.Wait()
	}
}

var callName = runtime.FuncForPC(reflect.ValueOf((*subscription).call).Pointer()).Name()

// withinCall reports whether this goroutine is inside a subscriber's function:
// to wait there for a call to end may be to wait for oneself, or for another
// who waits for us. Its stack is all that a goroutine can know itself by.
func withinCall() bool {
	callers := make([]uintptr, 64)
	n := runtime.Callers(1, callers)
	for n == len(callers) {
		callers = make([]uintptr, 2*len(callers))
		n = runtime.Callers(1, callers)
	}
	for frames := runtime.CallersFrames(callers[:n]); ; {
		frame, more := frames.Next()
		if frame.Function == callName {
			return true
		}
		if !more {
			return false
		}
	}
}
