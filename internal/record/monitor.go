package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/steer"
)

// ErrNoRun reports a [Monitor] whose run has not begun.
var ErrNoRun = errors.New("no run to look at")

// Phase says how far a run is.
type Phase string

// The phases of a run.
const (
	PhasePlanning  Phase = "planning"  // the coordinator plans the tasks
	PhaseRunning   Phase = "running"   // tasks run
	PhaseSynthesis Phase = "synthesis" // the coordinator answers
	PhaseEnded     Phase = "ended"
)

// SnapshotVersion is the version of a [Snapshot].
const SnapshotVersion = 1

// A Snapshot is the state of a run at one moment. It contains unredacted payloads, so it
// must not be logged.
type Snapshot struct {
	Version  int             `json:"version"`
	RunID    string          `json:"runId"`
	Name     string          `json:"name,omitempty"`
	Phase    Phase           `json:"phase"`
	Usage    llm.Usage       `json:"tokenUsage"`
	Queue    json.RawMessage `json:"queue,omitempty"`    // for queue.FromSnapshot; nil while there is no plan
	Messages json.RawMessage `json:"messages,omitempty"` // for mailbox.FromSnapshot; nil without messages
}

// Format writes the run and its phase, so that no verb prints a payload.
func (s Snapshot) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "snapshot of run %q, %s", s.RunID, s.Phase)
}

// LogValue returns what [Snapshot.Format] writes.
func (s Snapshot) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(s)) }

// A Monitor shows one run during and after its execution. The zero value is ready for use.
// It is safe for concurrent use; with several runs, it shows the most recent one. A nil
// *Monitor shows nothing.
type Monitor struct {
	mu   sync.Mutex // guards the rest
	run  monitored  // nil before the first run, and once a run has ended
	last *Snapshot  // how the run ended; nil before that
}

// monitored is a run. Its snapshot is durable before it is returned.
type monitored interface {
	Snapshot(ctx context.Context) (Snapshot, error)
	Steer(ctx context.Context, c steer.Command) error
	Policy() (*Policy, error)
	Calls() int
}

// Format writes what it is, so that no verb prints a payload.
func (m *Monitor) Format(f fmt.State, _ rune) { fmt.Fprint(f, "monitor of a run") }

// Snapshot returns the current state of the run once that state is durable. It waits for
// the journal until ctx ends. Before a run has begun, the error is [ErrNoRun].
func (m *Monitor) Snapshot(ctx context.Context) (Snapshot, error) {
	if m == nil {
		return Snapshot{}, ErrNoRun
	}
	m.mu.Lock()
	run, last := m.run, m.last
	m.mu.Unlock()
	switch {
	case last != nil:
		return *last, nil
	case run == nil:
		return Snapshot{}, ErrNoRun
	}
	return run.Snapshot(ctx)
}

// Steer has a command take effect in the run. It returns once the command is durable and has taken
// effect. The error wraps [steer.ErrInvalid], [steer.ErrNotRunning] or [steer.ErrRefused].
func (m *Monitor) Steer(ctx context.Context, c steer.Command) error {
	if m == nil {
		return steer.ErrNotRunning
	}
	m.mu.Lock()
	run := m.run
	m.mu.Unlock()
	if run == nil {
		return steer.ErrNotRunning
	}
	return run.Steer(ctx, c)
}

// Policy returns the policy of the run that works; see [steer.ReplacePolicy]. The error is [ErrNoRun]
// or [steer.ErrNotRunning] if none does.
func (m *Monitor) Policy() (*Policy, error) {
	if m == nil {
		return nil, ErrNoRun
	}
	m.mu.Lock()
	run, last := m.run, m.last
	m.mu.Unlock()
	switch {
	case run != nil:
		return run.Policy()
	case last != nil:
		return nil, steer.ErrNotRunning
	}
	return nil, ErrNoRun
}

// Calls returns how many calls of models and tools are under way.
func (m *Monitor) Calls() int {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	run := m.run
	m.mu.Unlock()
	if run == nil {
		return 0
	}
	return run.Calls()
}

// Begin makes m show a run.
func (m *Monitor) Begin(run monitored) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.run, m.last = run, nil
}

// End keeps the last state of a run and releases the run, unless m shows another one.
func (m *Monitor) End(run monitored) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run == run && run != nil {
		last, _ := run.Snapshot(context.Background()) // everything is durable, or never will be
		m.run, m.last = nil, &last
	}
}
