package serve

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/run"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/cli/view"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
)

// liveRuns are the runs that this process works on. It is safe for concurrent use.
type liveRuns struct {
	fanout inspector.Fanout

	mu       sync.Mutex // guards monitors
	monitors map[string]*record.Monitor
}

// attend adds a run of this process; see [run.Attend].
func (l *liveRuns) attend(id string) *run.Attendant {
	push, end := l.fanout.Begin(id)
	m := &record.Monitor{}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.monitors == nil {
		l.monitors = map[string]*record.Monitor{}
	}
	l.monitors[id] = m
	return &run.Attendant{Stream: push, Monitor: m, Close: func(bool) {}, Ended: func() {
		end()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.monitors, id)
	}}
}

// monitor returns the monitor of a run, or nil if this process does not work on it.
func (l *liveRuns) monitor(id string) *record.Monitor {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.monitors[id]
}

// underWay returns the runs, and how many calls of models and tools they wait for.
func (l *liveRuns) underWay() (runs []string, calls int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, m := range l.monitors {
		runs, calls = append(runs, id), calls+m.Calls()
	}
	return runs, calls
}

// addStreams adds to the documents of tasks which of their models write, as the user of the run may see it.
func (l *liveRuns) addStreams(run string, tasks []*view.Task) {
	writing := l.fanout.Writing(run)
	for _, t := range tasks {
		if last, ok := writing[t.ID]; ok && t.Connection == runstate.Connected {
			t.Streaming = true
			if last.After(t.Active) {
				t.Active = last
			}
		}
	}
}

// streams yields what models write in the runs of this process that a guest may see.
type streams struct{ *guest }

// Subscribe subscribes to a run; see [inspector.Streams].
func (s streams) Subscribe(ctx context.Context, name string) (inspector.Subscription, error) {
	found, err := journals.Find(ctx, s.j, name)
	if err != nil {
		return nil, problem(err)
	}
	if found.Live() && *found.Holder != journal.ThisHolder() {
		return nil, &inspector.Error{Code: inspector.NotFound, Message: "no model output: another process works on the run", Hint: "read its events and results"}
	}
	return &checkedSubscription{Subscription: s.live.fanout.Subscribe(found.Run), guest: s.guest, run: found.Run}, nil
}

// A checkedSubscription ends if its guest does not see the run any more: the process that works on it may have raised its label
// since the guest subscribed.
type checkedSubscription struct {
	inspector.Subscription
	*guest
	run  string
	seen time.Time // when the guest was last known to see the run; zero before the first piece
}

// Next returns the pieces since the last call.
func (c *checkedSubscription) Next(ctx context.Context) ([]event.Delta, error) {
	pieces, err := c.Subscription.Next(ctx)
	if err == nil && len(pieces) > 0 && time.Since(c.seen) > seenTime {
		if _, err = c.j.Find(ctx, c.run); err != nil {
			return nil, problem(err)
		}
		c.seen = time.Now()
	}
	return pieces, err
}

// escaped returns a writer that escapes JSON as in all output of the command.
func escaped(w io.Writer) io.Writer { return &terminal.JSONWriter{W: w} }
