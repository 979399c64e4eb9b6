package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/runteam/runteam/internal/record"
)

// Stored is what a journal has of a run.
type Stored struct {
	Info    Info           // the newest
	History record.History // with masked keys; the payloads as far as the key of the journal opens them
	Newest  time.Time      // when the last of it became durable
}

// Load returns what the journal has of a run, which is named as for
// [Journal.Find]. A payload that is not what its digest says makes an envelope
// that is not genuine.
func (j *Journal) Load(ctx context.Context, run string) (*Stored, error) {
	r, err := j.find(ctx, run)
	if err != nil {
		return nil, err
	}
	return j.load(ctx, r.n, r.id)
}

// LoadInfo returns the newest Info of a run, as [Journal.Load] does, and reads
// nothing else of what the journal has of it.
func (j *Journal) LoadInfo(ctx context.Context, run string) (*Info, error) {
	r, err := j.find(ctx, run)
	if err != nil {
		return nil, err
	}
	d := &decoder{vault: j.vault, run: r.id, stored: new(Stored)}
	if err := j.each(ctx, r.n, false, d.infos); err != nil {
		return nil, j.fail("read", fmt.Errorf("run %s: %w", r.id, err))
	}
	return &d.stored.Info, nil
}

func (j *Journal) load(ctx context.Context, number int64, run string) (*Stored, error) {
	_, at, _, err := j.store.last(ctx, number)
	if err != nil {
		return nil, j.fail("read", err)
	}
	d := &decoder{vault: j.vault, run: run, stored: &Stored{Newest: at, History: record.History{Mask: j.vault.mask}}}
	if err := j.each(ctx, number, false, d.rows); err != nil {
		return nil, j.fail("read", fmt.Errorf("run %s: %w", run, err))
	}
	return d.stored, nil
}
