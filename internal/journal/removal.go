package journal

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// removed is the status of the last turn of a run that is being removed. Such a run is not
// listed, though some of its rows may be left.
const removed = "removed"

// removalTime limits one transaction of a removal while other processes may wait
// to write. It is checked between statements.
const removalTime = 10 * time.Millisecond

// A removal removes runs from a file.
type removal struct {
	db   *store
	idle func(*lease) bool

	others bool // another process holds a run, and may write

	// most is how many rows or pages one statement removes. After an error it is one, since
	// the disk may be full: then each transaction changes few pages, and a checkpoint after
	// it keeps the write-ahead log short. It doubles with each success.
	most int64

	leases     *sql.Stmt
	statements [len(removeRows)]*sql.Stmt
}

// mostRows is how many rows one statement of a removal removes at most.
const mostRows = 256

func (m *removal) careful() bool { return m.most < mostRows }

// shouldRetry reports whether to retry what failed. If so, the next statements
// remove less at a time.
func (m *removal) shouldRetry(ctx context.Context) bool {
	if m.most == 1 || ctx.Err() != nil {
		return false
	}
	m.most = 1
	m.db.checkpoint(ctx)
	return true
}

// yield follows a transaction that succeeded. It leaves the file to other
// processes for six times as long as the transaction took, or for a quarter of the
// time that it took if no other process has a run.
func (m *removal) yield(ctx context.Context, began time.Time) error {
	if m.careful() {
		m.db.checkpoint(ctx)
		m.most *= 2
	}
	rest := min(6*time.Since(began), 30*removalTime)
	if !m.others {
		rest /= 24
	}
	return wait(ctx, rest)
}

// budget returns how long a transaction that begins now may take.
func (m *removal) budget() time.Duration {
	if m.others {
		return removalTime
	}
	return 4 * removalTime
}

// remove removes the rows of runs and shrinks the file.
func (s *store) remove(ctx context.Context, runs []row, idle func(*lease) bool) (gone []row, bytes int64, err error) {
	before, err := s.size(ctx)
	if err != nil {
		return nil, 0, s.explain(err)
	}
	// Free pages are cut off at the end, so only deleted rows in pages that stay in use have
	// to be overwritten.
	if _, err := s.write.ExecContext(ctx, "pragma secure_delete = fast; pragma wal_autocheckpoint = 1000"); err != nil {
		return nil, 0, s.explain(err)
	}
	defer s.write.ExecContext(context.WithoutCancel(ctx), "pragma wal_autocheckpoint = 4000") //nolint:errcheck // it sets a number
	m := &removal{db: s, idle: idle, most: mostRows}
	defer m.close()
	if err := m.prepare(ctx); err != nil {
		return nil, 0, s.explain(err)
	}
	// First write the log of a killed process to the file. The file may have to grow, and
	// the log must not take the room for it.
	s.checkpoint(ctx)
	gone, err = m.run(ctx, runs)
	if errors.Is(err, ErrFull) && s.useReserve() {
		s.checkpoint(ctx)
		var more []row
		more, err = m.run(ctx, runs) // it does not find the runs that are gone
		gone = append(gone, more...)
	}
	if err != nil {
		return gone, 0, err
	}
	s.keepReserve()
	after, err := s.size(ctx)
	return gone, before - after, s.explain(err)
}

// run removes what an interrupted removal left, then the runs, and shrinks the file.
func (m *removal) run(ctx context.Context, runs []row) (gone []row, err error) {
	left, err := m.db.halfRemoved(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := m.removeAll(ctx, left); err != nil {
		return nil, err
	}
	if gone, err = m.removeAll(ctx, runs); err != nil {
		return gone, err
	}
	return gone, m.shrink(ctx)
}

// halfRemoved returns the runs that an interrupted removal left rows of.
func (s *store) halfRemoved(ctx context.Context) (list []row, err error) {
	list, err = queryAll(ctx, s.read, func(rows *sql.Rows, r *row) error { return rows.Scan(&r.n) }, "select run from turns where status = ?", removed)
	return list, s.explain(err)
}

// removeAll removes runs and returns those that are gone. After an error, these
// may still have rows.
func (m *removal) removeAll(ctx context.Context, list []row) (gone []row, err error) {
	for len(list) > 0 {
		began := time.Now()
		n, went, err := m.removeSome(ctx, list)
		if err != nil {
			if m.shouldRetry(ctx) {
				continue
			}
			return gone, err
		}
		gone, list = append(gone, went...), list[n:]
		if err := m.yield(ctx, began); err != nil {
			return gone, err
		}
		if m.careful() && n > 0 { // its space may be enough for the next run
			if err := m.shrink(ctx); err != nil {
				return gone, err
			}
		}
	}
	return gone, nil
}

// otherLeases reports whether a process works on a run. A run that is being removed
// has a lease too, which does not count.
const otherLeases = "select exists (select 1 from leases where renewed > ? and not exists (select 1 from turns where run = leases.run and status = ?))"

// removeSome removes, in one transaction, as much as its time allows. It returns how
// many runs at the front of the list are done with, and which runs are gone.
func (m *removal) removeSome(ctx context.Context, list []row) (done int, gone []row, err error) {
	err = m.db.update(ctx, func(tx *sql.Tx) error {
		done, gone = 0, nil
		err := tx.QueryRowContext(ctx, otherLeases, nanos(m.db.o.Now().Add(-leaseTime)), removed).Scan(&m.others)
		if err != nil {
			return err
		}
		for began := time.Now(); done < len(list); {
			idle, went, whole, err := m.removePart(ctx, tx, list[done].n)
			if err != nil {
				return err
			}
			if went {
				gone = append(gone, list[done])
			}
			if whole || !idle {
				done++
			}
			if m.careful() || time.Since(began) > m.budget() {
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	return done, gone, nil
}

// removePart removes some rows of a run if it is idle, that is, if no process
// works on it. went says that the run is gone, whole that none of its rows are
// left. If some are, removePart takes the lease of the run and marks it as
// removed, so that no process can work on it from then on.
func (m *removal) removePart(ctx context.Context, tx *sql.Tx, run int64) (idle, went, whole bool, err error) {
	l, err := scanLease(tx.StmtContext(ctx, m.leases).QueryRowContext(ctx, run))
	if err != nil {
		return false, false, false, err
	}
	marked := false
	if l != nil && l.Holder == *m.db.o.Holder {
		err = tx.QueryRowContext(ctx, "select exists (select 1 from turns where run = ? and status = ?)", run, removed).Scan(&marked)
	}
	if err != nil || !marked && !m.idle(l) {
		return false, false, false, err
	}
	there, whole, err := m.deleteRows(ctx, tx, run)
	if err != nil || whole || marked {
		return true, there && !marked, whole, err
	}
	went, err = m.markRemoved(ctx, tx, run, l)
	return true, went, false, err
}

// markRemoved marks a run as removed, and reports whether it was there and not marked before.
func (m *removal) markRemoved(ctx context.Context, tx *sql.Tx, run int64, l *lease) (bool, error) {
	now := m.db.o.Now()
	next := l.next(*m.db.o.Holder, now)
	if err := putLease(ctx, tx, run, &next); err != nil {
		return false, err
	}
	added, err := tx.ExecContext(ctx, `insert into turns (run, at, status, tasks) select n, ?, ?, '{}' from runs
where n = ? and not exists (select 1 from turns where run = runs.n and status = ?)`, nanos(now), removed, run, removed)
	if err != nil {
		return false, err
	}
	n, err := added.RowsAffected()
	return n > 0, err
}

// removeCommands removes the commands of a run. Files of earlier versions have none.
const removeCommands = "delete from commands where run = ?"

// removeTurns removes what the table of sessions has of a run. Files of earlier versions have none.
const removeTurns = "delete from sessions where run = ?"

// The statements of a removal, in their order: answers lead to batches, so they
// go first, and the run itself goes last, so that its number is not given to
// another one before. The first two remove some rows, the others all.
var removeRows = [...]string{
	"delete from answers where (key, batch) in (select key, batch from answers where run = ? limit ?)",
	"delete from batches where n in (select n from batches where run = ? limit ?)",
	"delete from turns where run = ?", removeCommands, removeTurns, "delete from leases where run = ?", "delete from runs where n = ?",
}

// deleteRows removes some rows of a run, and reports whether none are left, and whether
// the run was there.
func (m *removal) deleteRows(ctx context.Context, tx *sql.Tx, run int64) (there, whole bool, err error) {
	n := int64(0)
	for i, s := range m.statements {
		if s == nil {
			continue
		}
		args := []any{run, m.most}
		if i > 1 {
			args = args[:1]
		}
		done, err := tx.StmtContext(ctx, s).ExecContext(ctx, args...)
		if err != nil {
			return false, false, err
		}
		if n, err = done.RowsAffected(); err != nil || i < 2 && n == m.most {
			return false, false, err
		}
	}
	return n > 0, true, nil
}

// prepare prepares the statements.
func (m *removal) prepare(ctx context.Context) (err error) {
	if m.leases, err = m.db.write.PrepareContext(ctx, selectLease); err != nil {
		return err
	}
	for i, s := range removeRows {
		if s == removeCommands && !m.db.commands.has(withCommands) || s == removeTurns && !m.db.commands.has(withSessions) {
			continue
		}
		if m.statements[i], err = m.db.write.PrepareContext(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (m *removal) close() {
	for _, s := range append(m.statements[:], m.leases) {
		if s != nil {
			_ = s.Close() // nothing depends on it
		}
	}
}

// shrink cuts off the free pages, some at a time, and then runs a checkpoint.
func (m *removal) shrink(ctx context.Context) error {
	for {
		began := time.Now()
		var free int64
		err := m.db.write.QueryRowContext(ctx, "pragma freelist_count").Scan(&free)
		if err == nil && free > 0 {
			err = m.db.retryWhileLocked(ctx, func() error { return m.cut(ctx) })
		}
		switch {
		case err != nil && m.shouldRetry(ctx):
			continue
		case err != nil:
			return m.db.explain(err)
		case free == 0:
			m.db.checkpoint(ctx)
			return nil
		}
		if err := m.yield(ctx, began); err != nil {
			return err
		}
	}
}

// cut cuts some pages off, one with each row that is read.
func (m *removal) cut(ctx context.Context) error {
	rows, err := m.db.write.QueryContext(ctx, "pragma incremental_vacuum")
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // the pages that were cut are committed
	for began, n := time.Now(), int64(1); rows.Next() && time.Since(began) < m.budget() && (!m.careful() || n < m.most); n++ {
	}
	return rows.Err()
}

// checkpoint copies the write-ahead log to the file and empties it, except for pages that
// other processes are reading.
func (d *database) checkpoint(ctx context.Context) {
	if _, err := d.write.ExecContext(ctx, "pragma wal_checkpoint(truncate)"); err != nil {
		d.o.Logger.Debug("the checkpoint of the journal failed", "path", d.path, "error", err)
	}
}

// size returns how many bytes the rows take.
func (d *database) size(ctx context.Context) (n int64, err error) {
	err = d.write.QueryRowContext(ctx, "select page_count * page_size from pragma_page_count, pragma_page_size").Scan(&n)
	return n, err
}
