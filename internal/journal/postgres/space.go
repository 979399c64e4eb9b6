package postgres

import (
	"context"

	"github.com/runteam/runteam/internal/journal"
)

// Trim returns what measures and cleans the tables.
func (d *database) Trim(context.Context) (journal.Trimmer, error) {
	if d.o.ReadOnly {
		return nil, journal.ErrReadOnly
	}
	return trimmer{d}, nil
}

// A trimmer lets the server reuse the space of removed rows, and return what is at the end of its files.
type trimmer struct{ d *database }

func (trimmer) Checkpoint(context.Context) {}

func (t trimmer) Trim(ctx context.Context, _ func() bool) (more bool, err error) {
	_, err = t.d.pool.ExecContext(ctx, "vacuum (skip_locked) answers, batches, turns, commands, sessions, submissions, leases, runs")
	return false, t.d.Explain(err)
}

func (trimmer) UseReserve() bool { return false }

// Size returns how many bytes the lines have. The server reuses what removed ones took, and its files seldom shrink.
func (t trimmer) Size(ctx context.Context) (n int64, err error) {
	err = t.d.Read(ctx, func(q journal.Querier) error {
		rows, err := q.QueryContext(ctx, "select coalesce(sum(octet_length(state) + octet_length(parts) + octet_length(kept) + octet_length(rest)), 0)::bigint from batches")
		if err != nil {
			return err
		}
		return scanRow(rows, &n)
	})
	return n, err
}

func (trimmer) Close(context.Context) {}
