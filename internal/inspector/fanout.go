package inspector

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/task"
)

// A Fanout sends what models write in the runs of this process to any number of subscribers. The zero
// value has no runs. It is safe for concurrent use.
type Fanout struct {
	mu   sync.Mutex // guards runs
	runs map[string]*broadcast
}

// A broadcast is what models write in one run.
type broadcast struct {
	mu    sync.Mutex // guards the rest, and the fields of its subscribers
	texts map[task.ID]*liveText
	order []*liveText // those of texts
	subs  map[*subscriber]bool
	ended bool
}

// A liveText is what the model of a task has written. Bytes are only appended, so subscribers share them.
type liveText struct {
	of   event.Delta // without the text
	text []byte
	last time.Time // when the last piece came
}

// A subscriber has the pieces of texts that it has not taken yet, oldest first.
type subscriber struct {
	from   *broadcast
	queue  []*pending
	waits  map[task.ID]*pending
	signal chan struct{} // has a value if there is something to take
}

// A pending piece is the part of a text from a position on.
type pending struct {
	text  *liveText
	start int
	reset bool
	done  bool
}

// Begin adds a run. Call push for each piece that a model writes, and end when the run has ended.
func (f *Fanout) Begin(run string) (push func(event.Delta), end func()) {
	b := &broadcast{texts: map[task.ID]*liveText{}, subs: map[*subscriber]bool{}}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.runs == nil {
		f.runs = map[string]*broadcast{}
	}
	f.runs[run] = b
	return b.push, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.runs[run] == b {
			delete(f.runs, run)
		}
		b.end()
	}
}

// push adds a piece.
func (b *broadcast) push(d event.Delta) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.texts[d.Task]
	if t == nil || d.Reset {
		b.forget(d.Task)
		t = &liveText{}
		if !d.Done {
			b.texts[d.Task] = t
			b.order = append(b.order, t)
		}
	}
	start := len(t.text)
	t.text, t.last = append(t.text, d.Text...), time.Now()
	t.of = d
	t.of.Text = ""
	for s := range b.subs {
		s.add(t, start, d)
	}
	if d.Done {
		b.forget(d.Task)
	}
}

// forget drops the text of a task, which is complete or was discarded.
func (b *broadcast) forget(id task.ID) {
	t := b.texts[id]
	if t == nil {
		return
	}
	delete(b.texts, id)
	for i := range b.order {
		if b.order[i] == t {
			b.order = append(b.order[:i:i], b.order[i+1:]...)
			return
		}
	}
}

func (b *broadcast) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	for s := range b.subs {
		s.wake()
	}
}

// add queues a piece, or extends the queued piece of the same text. What is taken back does not stay queued: a
// policy may deny it now.
func (s *subscriber) add(t *liveText, start int, d event.Delta) {
	if d.Reset {
		s.queue = slices.DeleteFunc(s.queue, func(p *pending) bool { return p.text.of.Task == d.Task })
		delete(s.waits, d.Task)
	}
	p := s.waits[d.Task]
	if p == nil || p.done { // a completed text stays queued
		p = &pending{text: t, start: start, reset: d.Reset}
		s.waits[d.Task] = p
		s.queue = append(s.queue, p)
	}
	p.done = d.Done
	s.wake()
}

func (s *subscriber) wake() {
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// Subscribe subscribes to the run with an ID; see [Streams]. For a run that it does not have, it returns a subscription
// that has ended.
func (f *Fanout) Subscribe(run string) Subscription {
	f.mu.Lock()
	b := f.runs[run]
	f.mu.Unlock()
	if b == nil {
		b = &broadcast{subs: map[*subscriber]bool{}, ended: true}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &subscriber{from: b, waits: map[task.ID]*pending{}, signal: make(chan struct{}, 1)}
	b.subs[s] = true
	for _, t := range b.order {
		if len(t.text) > 0 {
			d := t.of
			d.Reset, d.Done = true, false
			s.add(t, 0, d)
		}
	}
	if b.ended {
		s.wake()
	}
	return s
}

// Writing returns the tasks of a run whose models are writing, and when the last piece of each came. It is empty for a
// run of another process.
func (f *Fanout) Writing(run string) map[task.ID]time.Time {
	f.mu.Lock()
	b := f.runs[run]
	f.mu.Unlock()
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	last := map[task.ID]time.Time{}
	for id, t := range b.texts {
		if len(t.text) > 0 {
			last[id] = t.last
		}
	}
	return last
}

// Next returns all queued pieces; see [Subscription].
func (s *subscriber) Next(ctx context.Context) ([]event.Delta, error) {
	for {
		list, ended := s.take()
		if len(list) > 0 || ended {
			return list, nil
		}
		select {
		case <-s.signal:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// take returns the queued pieces, and whether the run has ended.
func (s *subscriber) take() (list []event.Delta, ended bool) {
	s.from.mu.Lock()
	defer s.from.mu.Unlock()
	for _, p := range s.queue {
		d := p.text.of
		d.Text, d.Reset, d.Done = string(p.text.text[p.start:]), p.reset, p.done
		list = append(list, d)
	}
	s.queue = nil
	clear(s.waits)
	return list, s.from.ended
}

// Close ends the subscription.
func (s *subscriber) Close() {
	s.from.mu.Lock()
	defer s.from.mu.Unlock()
	delete(s.from.subs, s)
}
