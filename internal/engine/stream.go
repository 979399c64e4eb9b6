package engine

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/supervise"
	"github.com/runteam/runteam/llm"
)

// A stream shows the caller what the model of an attempt writes while it arrives: a text that the
// caller may see whole when it is the result. It is redacted as the result will be, and what can
// still change waits. A nil *stream shows nothing.
type stream struct {
	to      *deltas
	pending pendingDelta

	mu      sync.Mutex       // guards the rest
	text    *gate.TextStream // of the model call that runs; nil if none does
	shown   strings.Builder  // what the caller has of the text
	attempt int              // of the model that writes the text
	opened  bool             // the decision about it is recorded
	stops   int              // how often a policy has denied it
	done    bool             // the caller has all of the result
}

// newStream returns the stream of an attempt at a task whose result is a text, or nil if nobody
// watches.
func newStream(x *modelCall) *stream {
	d := x.run.deltas
	if d == nil || x.schema != nil {
		return nil
	}
	return &stream{to: d, pending: pendingDelta{Delta: event.Delta{Task: x.task.ID, Title: x.task.Title, Agent: x.caps.Agent, Attempt: x.number}}}
}

// watch returns a context whose model call is streamed, and what ends that. The caller sees nothing
// before the decision about it is durable.
func (s *stream) watch(ctx context.Context, x *modelCall) (watched context.Context, end func()) {
	if s == nil || !s.open(ctx, x) {
		return ctx, func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.opened { // another policy came meanwhile
		return ctx, func() {}
	}
	s.text, s.attempt = gate.NewTextStream(), 0
	s.reset()
	return supervise.WithStream(ctx, func(d llm.Delta) { s.add(ctx, d) }), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.text = nil
	}
}

// open has the gate decide, once for each attempt, whether the caller may see what the model writes.
// The label of a reply is that of its prompt. An agent in Go may call models for
// anything, so only agents that stream what becomes their result are watched.
func (s *stream) open(ctx context.Context, x *modelCall) bool {
	s.mu.Lock()
	opened, stops := s.opened, s.stops
	s.mu.Unlock()
	if does, ok := x.does.(interface{ Streams() bool }); !ok || !does.Streams() || !x.run.seesResult(x.makers(), x.contract.MaxInput) {
		return false
	}
	if opened {
		return true
	}
	now := time.Now()
	e, err := (&gate.Compartment{Contract: x.contract}).GateFault(envelope.ID(x.identity()+"/stream"), "…", x.sealed, now)
	if err == nil && x.holders != "" {
		e, err = gate.Transferred(e, x.holders, x.contract.MaxInput, e.ID())
	}
	if err != nil {
		return false
	}
	seen, err := x.run.toUser(ctx, e, gate.Source{Kind: gate.Stream, Name: string(x.task.ID)}, now)
	if err != nil || seen.partly {
		return false
	}
	if b := x.run.ledger.latest(); b != nil && x.run.ledger.wait(ctx, b) != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = s.stops == stops // else the decision is by a policy that does not hold any more
	return s.opened
}

// add shows the next piece, as far as nothing that follows can change it.
func (s *stream) add(ctx context.Context, d llm.Delta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text == nil {
		return
	}
	if d.Attempt != s.attempt {
		if s.attempt > 0 {
			s.text = gate.NewTextStream()
			s.reset()
		}
		s.attempt = d.Attempt
	}
	s.show(s.text.Write(ctx, d.Text))
}

// show hands over what follows of the text.
func (s *stream) show(text string) {
	if text == "" {
		return
	}
	_, _ = s.shown.WriteString(text)
	s.to.push(&s.pending, event.Delta{Text: text})
}

// reset takes back what the caller has of the text.
func (s *stream) reset() {
	if s.shown.Len() > 0 {
		s.shown.Reset()
		s.to.push(&s.pending, event.Delta{Reset: true})
	}
}

// finish ends the stream of an attempt that has ended: with the rest of its result as the gate
// delivered it, or without one.
func (s *stream) finish(x *modelCall) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = nil
	if x.err != nil || x.envelope == nil || !x.run.seesResult(x.envelope.Producer(), x.envelope.Classification()) {
		s.reset()
		return
	}
	rest, continues := strings.CutPrefix(x.text, s.shown.String())
	if !continues {
		s.reset()
		rest = x.text
	}
	s.done = true
	s.to.push(&s.pending, event.Delta{Text: rest, Done: true})
}

// stop shows the caller nothing more before the end of the attempt, and takes back what was shown:
// the policy denies it.
func (s *stream) stop() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text, s.opened = nil, false
	s.stops++
	s.reset()
}

// reopen has the gate decide anew: another agent writes what follows.
func (s *stream) reopen(agent string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = false
	s.reset()
	s.to.setAgent(&s.pending, agent)
}

// takeBack takes back what the caller has of an attempt that does not count.
func (s *stream) takeBack() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = nil
	if s.done {
		s.done = false
		s.to.push(&s.pending, event.Delta{Reset: true})
		return
	}
	s.reset()
}
