package serve

import (
	"context"
	"io"
	"sync"

	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/run"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
)

// liveRuns are the runs that work in this process. It is safe for concurrent use.
type liveRuns struct {
	fanout inspector.Fanout

	mu       sync.Mutex // guards monitors
	monitors map[string]*record.Monitor
}

// attend accompanies a run of this process; see [run.Attend].
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

// monitor returns the monitor of a run, or nil if it does not work in this process.
func (l *liveRuns) monitor(id string) *record.Monitor {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.monitors[id]
}

// streams has what models write in the runs of this process.
type streams struct{ *site }

// Subscribe subscribes to a run; see [inspector.Streams]. What models write is in the form for the
// caller of the run, piece by piece and without a label, so nobody with a lower clearance gets it.
func (s streams) Subscribe(ctx context.Context, name string) (inspector.Subscription, error) {
	found, err := journals.Find(ctx, s.j, name)
	if err != nil {
		return nil, problem(err)
	}
	if s.accepts < label.Confidential {
		return nil, &inspector.Error{Code: inspector.Forbidden, Message: "what models write is not shown below the clearance of the user of the run", Hint: "the results are, once they are complete"}
	}
	return s.live.fanout.Subscribe(found.Run)
}

// escaped returns a writer that escapes JSON as all JSON that the command prints.
func escaped(w io.Writer) io.Writer { return &terminal.JSONWriter{W: w} }
