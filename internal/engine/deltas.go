package engine

import (
	"context"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/runteam/runteam/internal/event"
)

// deltas hands the caller what models write, in a goroutine of its own. Pieces that the caller has
// not taken yet are merged, so a slow caller holds up nothing. A nil *deltas has no caller.
type deltas struct {
	fn   func(event.Delta)
	log  *slog.Logger
	done chan struct{} // closed when the goroutine has ended

	mu    sync.Mutex // guards the rest, and the fields of streams
	more  *sync.Cond
	queue []*pendingDelta // with something to hand over, in the order in which it came
	ended bool
}

// A pendingDelta is what the caller has not taken of one text.
type pendingDelta struct {
	event.Delta
	text   strings.Builder
	queued bool
}

func newDeltas(fn func(event.Delta), log *slog.Logger) *deltas {
	if fn == nil {
		return nil
	}
	d := &deltas{fn: fn, log: log, done: make(chan struct{})}
	d.more = sync.NewCond(&d.mu)
	go d.deliver()
	return d
}

// push adds a piece to what waits of a text.
func (d *deltas) push(p *pendingDelta, piece event.Delta) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if piece.Reset {
		p.Reset = true
		p.text.Reset()
	}
	_, _ = p.text.WriteString(piece.Text)
	p.Done = piece.Done
	if !p.queued {
		p.queued = true
		d.queue = append(d.queue, p)
		d.more.Signal()
	}
}

// setAgent names the agent that writes what follows of a text.
func (d *deltas) setAgent(p *pendingDelta, agent string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p.Agent = agent
}

// take returns what waits of the text that has waited longest, or false at the end.
func (d *deltas) take() (event.Delta, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.queue) == 0 && !d.ended {
		d.more.Wait()
	}
	if len(d.queue) == 0 {
		return event.Delta{}, false
	}
	p := d.queue[0]
	d.queue = d.queue[1:]
	next := p.Delta
	next.Text = p.text.String()
	p.Reset, p.queued = false, false
	p.text = strings.Builder{}
	return next, true
}

func (d *deltas) deliver() {
	defer close(d.done)
	for failed := false; ; {
		next, ok := d.take()
		if !ok {
			return
		}
		func() {
			defer func() {
				if p := recover(); p != nil && !failed {
					failed = true
					d.log.Error("the function that takes the stream panicked", "panic", p, "stack", string(debug.Stack()))
				}
			}()
			d.fn(next)
		}()
	}
}

// close lets the caller take what waits, for as long as [drainTime].
func (d *deltas) close() {
	if d == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	d.mu.Lock()
	d.ended = true
	d.mu.Unlock()
	d.more.Signal()
	select {
	case <-d.done:
	case <-ctx.Done():
		d.log.Warn("the stream was not taken in time", "limit", drainTime)
	}
}
