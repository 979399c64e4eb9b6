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
func (a *archive) Load(ctx context.Context, run string) (*Stored, error) {
	r, err := a.find(ctx, run)
	if err != nil {
		return nil, err
	}
	return a.load(ctx, r.n, r.id)
}

// LoadInfo returns the newest Info of a run, as [Journal.Load] does, and reads
// nothing else of what the journal has of it.
func (a *archive) LoadInfo(ctx context.Context, run string) (*Info, error) {
	r, err := a.find(ctx, run)
	if err != nil {
		return nil, err
	}
	d := &decoder{vault: a.vault, run: r.id, stored: new(Stored)}
	if err := a.each(ctx, r.n, false, d.infos); err != nil {
		return nil, a.fail("read", fmt.Errorf("run %s: %w", r.id, err))
	}
	return &d.stored.Info, nil
}

func (a *archive) load(ctx context.Context, number int64, run string) (*Stored, error) {
	_, at, _, err := a.store.last(ctx, number)
	if err != nil {
		return nil, a.fail("read", err)
	}
	d := &decoder{vault: a.vault, run: run, stored: &Stored{Newest: at, History: record.History{Mask: a.vault.mask}}}
	if err := a.each(ctx, number, false, d.rows); err != nil {
		return nil, a.fail("read", fmt.Errorf("run %s: %w", run, err))
	}
	return d.stored, nil
}
