package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/steer"
)

// Steer has a command of the program take effect. It is one of the methods that a
// [record.Monitor] calls; the others are Snapshot, Policy and Calls.
func (r *run) Steer(ctx context.Context, c steer.Command) error {
	if r.steering == nil {
		return steer.ErrNotRunning
	}
	return r.steering.apply(ctx, &record.LeftCommand{Command: c, Time: time.Now()})
}

// Calls returns how many calls of models and tools are under way.
func (r *run) Calls() int { return int(r.underWay.Load()) }

// Snapshot returns the state of the run, once it is durable.
func (r *run) Snapshot(ctx context.Context) (record.Snapshot, error) {
	r.mu.Lock()
	s := record.Snapshot{Version: record.SnapshotVersion, RunID: r.id, Name: r.team.Config.Name, Phase: r.phase}
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
	b := r.ledger.latest()
	r.mu.Unlock()
	if b == nil {
		return s, nil
	}
	select {
	case <-b.done:
		return s, nil
	case <-ctx.Done():
		return record.Snapshot{}, context.Cause(ctx)
	}
}

// stored returns the JSON of a snapshot.
func stored(snapshot any) json.RawMessage {
	data, err := json.Marshal(snapshot)
	must(err) // what a queue and a bus contain was checked before
	return data
}
