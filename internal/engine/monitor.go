package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/runteam/runteam/llm"
)

// ErrNoRun reports a monitor that no run has been given.
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

// A Snapshot is a run as data, as it stood at one moment. It holds payloads as
// their producers made them, so it is data to keep, not a log.
type Snapshot struct {
	Version  int             `json:"version"`
	RunID    string          `json:"runId"`
	Name     string          `json:"name,omitempty"`
	Phase    Phase           `json:"phase"`
	Usage    llm.Usage       `json:"tokenUsage"`
	Queue    json.RawMessage `json:"queue,omitempty"`    // for queue.FromSnapshot; nil while there is no plan
	Messages json.RawMessage `json:"messages,omitempty"` // for mailbox.FromSnapshot; nil without messages
}

// Format writes which run it is, so that no verb prints a payload.
func (s Snapshot) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "snapshot of run %q, %s", s.RunID, s.Phase)
}

// LogValue returns what [Snapshot.Format] writes.
func (s Snapshot) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(s)) }

// A Monitor shows one run from outside, during the run and after its end. The zero value is ready for use. It is safe for concurrent use; of
// several runs that are given the same one, it shows the last that began.
type Monitor struct {
	mu   sync.Mutex // guards the rest
	run  *run       // nil before the first run, and once a run has ended
	last *Snapshot  // how the run ended; nil before that
}

// Format writes what it is, so that no verb prints a payload.
func (m *Monitor) Format(f fmt.State, _ rune) { fmt.Fprint(f, "monitor of a run") }

// Snapshot returns the current state of the run, once that is durable. It waits for
// the journal until ctx ends. Before a run has started, the error is [ErrNoRun].
func (m *Monitor) Snapshot(ctx context.Context) (Snapshot, error) {
	if m == nil {
		return Snapshot{}, ErrNoRun
	}
	m.mu.Lock()
	r, last := m.run, m.last
	m.mu.Unlock()
	switch {
	case last != nil:
		return *last, nil
	case r == nil:
		return Snapshot{}, ErrNoRun
	}
	r.mu.Lock()
	s, b := r.snapshot(), r.ledger.latest()
	r.mu.Unlock()
	if b == nil {
		return s, nil
	}
	select {
	case <-b.done:
		return s, nil
	case <-ctx.Done():
		return Snapshot{}, context.Cause(ctx)
	}
}

// begin shows a run in the monitor, which may be nil.
func (m *Monitor) begin(r *run) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.run, m.last = r, nil
}

// end keeps the last state of a run and releases the run.
func (m *Monitor) end(r *run) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run == r {
		m.run, m.last = nil, new(r.snapshot())
	}
}

// stored returns the JSON of a snapshot.
func stored(snapshot any) json.RawMessage {
	data, err := json.Marshal(snapshot)
	must(err) // what a queue and a bus hold was checked when it came
	return data
}

// snapshot returns the run as data.
func (r *run) snapshot() Snapshot {
	s := Snapshot{Version: SnapshotVersion, RunID: r.id, Name: r.team.Config.Name, Phase: r.phase}
	for i := range r.coordinator.steps {
		s.Usage = s.Usage.Add(r.coordinator.steps[i].Metrics.Usage)
	}
	for i := range r.tasks {
		s.Usage = s.Usage.Add(r.tasks[i].Metrics.Usage)
	}
	if r.queue != nil {
		s.Queue = stored(r.queue.Snapshot())
	}
	if r.messages != nil {
		s.Messages = stored(r.messages.bus.Snapshot())
	}
	return s
}
