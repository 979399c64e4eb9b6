package engine

import (
	"context"
	"encoding/json"

	"github.com/runteam/runteam/internal/record"
)

// Snapshot returns the state of the run for a [record.Monitor], once it is durable.
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
