package journal

import (
	"context"
	"database/sql"
)

// remove removes the rows of runs, one run after the other so that others come
// to write meanwhile, overwrites them, and cuts the file.
func (f *file) remove(ctx context.Context, runs []row, idle func(*lease) bool) (gone []row, bytes int64, err error) {
	before, err := f.size(ctx)
	if err != nil {
		return nil, 0, f.explain(err)
	}
	if _, err := f.write.ExecContext(ctx, "pragma secure_delete = on"); err != nil {
		return nil, 0, f.explain(err)
	}
	for _, r := range runs {
		went, err := f.removeRun(ctx, r.n, idle)
		if err != nil {
			return gone, 0, err
		}
		if went {
			gone = append(gone, r)
		}
	}
	if err := f.shrink(ctx); err != nil {
		return gone, 0, f.explain(err)
	}
	after, err := f.size(ctx)
	return gone, before - after, f.explain(err)
}

// removeRun removes the rows of a run unless somebody works on it, which it finds
// out in the transaction that removes them, and reports whether it was there and
// went.
func (f *file) removeRun(ctx context.Context, run int64, idle func(*lease) bool) (went bool, err error) {
	err = f.update(ctx, func(tx *sql.Tx) error {
		l, err := leaseOf(ctx, tx, run)
		if err != nil || !idle(l) {
			return err
		}
		went, err = removeRows(ctx, tx, run)
		return err
	})
	return went && err == nil, err
}

// removeRows removes the rows of a run, and reports whether there was one.
func removeRows(ctx context.Context, tx *sql.Tx, run int64) (bool, error) {
	done, err := tx.ExecContext(ctx, "delete from runs where n = ?", run)
	if err != nil {
		return false, err
	}
	for _, statement := range []string{
		"delete from answers where run = ?", "delete from batches where run = ?", "delete from turns where run = ?",
		"delete from leases where run = ?",
	} {
		if _, err := tx.ExecContext(ctx, statement, run); err != nil {
			return false, err
		}
	}
	n, err := done.RowsAffected()
	return n > 0, err
}

// shrink cuts the free pages off.
func (f *file) shrink(ctx context.Context) error {
	for {
		var free int64
		if err := f.write.QueryRowContext(ctx, "pragma freelist_count").Scan(&free); err != nil {
			return err
		}
		if free == 0 {
			_, err := f.write.ExecContext(ctx, "pragma wal_checkpoint(truncate)")
			return err
		}
		if err := f.cut(ctx); err != nil {
			return err
		}
	}
}

// cut cuts some pages off: one with each row that is read.
func (f *file) cut(ctx context.Context) error {
	rows, err := f.write.QueryContext(ctx, "pragma incremental_vacuum(1000)")
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // it was read to its end, or there is another error
	for rows.Next() {
	}
	return rows.Err()
}

// size returns how many bytes the rows take.
func (f *file) size(ctx context.Context) (n int64, err error) {
	err = f.write.QueryRowContext(ctx, "select page_count * page_size from pragma_page_count, pragma_page_size").Scan(&n)
	return n, err
}
