package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/runteam/runteam/internal/record"
)

// Stored is a run as a journal stores it.
type Stored struct {
	Info    Info           // the newest
	History record.History // with masked keys, and the payloads that the key of the journal decrypts
	Newest  time.Time      // when its last entry became durable
}

// Load reads a run, which is named as for [Journal.Find]. A payload that does not match its
// digest makes an envelope that is not genuine.
func (a *archive) Load(ctx context.Context, run string) (*Stored, error) {
	r, err := a.find(ctx, run)
	if err != nil {
		return nil, err
	}
	return a.load(ctx, r.n, r.id)
}

// LoadStart reads only the newest Info of a run and how its processes began. The last of these has the tasks that the run
// has now.
func (a *archive) LoadStart(ctx context.Context, run string) (*Stored, error) {
	r, err := a.find(ctx, run)
	if err != nil {
		return nil, err
	}
	d := &decoder{vault: a.vault, run: r.id, stored: new(Stored), startOnly: true}
	return d.stored, a.decodeMarked(ctx, r, d, func(m *markedRow) bool { return m.about() })
}

func (a *archive) load(ctx context.Context, number int64, run string) (*Stored, error) {
	_, at, _, err := a.store.last(ctx, number)
	if err != nil {
		return nil, a.fail("read", err)
	}
	d := &decoder{vault: a.vault, run: run, stored: &Stored{Newest: at, History: record.History{Mask: a.vault.mask}}}
	return d.stored, a.decode(ctx, number, d)
}

// decode decodes the history of a run.
func (a *archive) decode(ctx context.Context, number int64, d *decoder) error {
	for lines, err := range rows(ctx, a.store, number, 0, false, d.row) {
		if err != nil {
			return a.fail("read", fmt.Errorf("run %s: %w", d.run, err))
		}
		for i := range lines {
			d.add(&lines[i])
		}
	}
	return nil
}
