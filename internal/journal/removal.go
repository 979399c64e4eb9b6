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

// A removal removes runs.
type removal struct {
	db    Database
	space Trimmer
	me    Holder
	now   func() time.Time
	idle  func(*lease) bool

	others bool // another process holds a run, and may write

	// most is how many rows or pages one statement removes. After an error it is one, since
	// the disk may be full: then each transaction changes few pages, and a checkpoint after
	// it keeps the write-ahead log short. It doubles with each success.
	most int64
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
	m.space.Checkpoint(ctx)
	return true
}

// yield follows a transaction that succeeded. It leaves the journal to other
// processes for six times as long as the transaction took, or for a quarter of the
// time that it took if no other process has a run.
func (m *removal) yield(ctx context.Context, began time.Time) error {
	if m.careful() {
		m.space.Checkpoint(ctx)
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

// remove removes the rows of runs, and gives back their space.
func (s *store) remove(ctx context.Context, runs []row, idle func(*lease) bool) (gone []row, bytes int64, err error) {
	space, err := s.db.Trim(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer space.Close(context.WithoutCancel(ctx))
	before, err := space.Size(ctx)
	if err != nil {
		return nil, 0, err
	}
	m := &removal{db: s.db, space: space, me: *s.o.Holder, now: s.o.Now, idle: idle, most: mostRows}
	if err := s.db.Prepare(ctx, append(m.statements(), selectLease(s.db))...); err != nil {
		return nil, 0, err
	}
	// First write the log of a killed process to its file. The file may have to grow, and
	// the log must not take the room for it.
	space.Checkpoint(ctx)
	gone, err = m.run(ctx, runs)
	if errors.Is(err, ErrFull) && space.UseReserve() {
		space.Checkpoint(ctx)
		var more []row
		more, err = m.run(ctx, runs) // it does not find the runs that are gone
		gone = append(gone, more...)
	}
	if err != nil {
		return gone, 0, err
	}
	after, err := space.Size(ctx)
	return gone, before - after, err
}

// run removes what an interrupted removal left, then the runs, and gives back their space.
func (m *removal) run(ctx context.Context, runs []row) (gone []row, err error) {
	left, err := halfRemoved(ctx, m.db)
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
func halfRemoved(ctx context.Context, db Database) ([]row, error) {
	return readAll(ctx, db, func(rows *sql.Rows, r *row) error { return rows.Scan(&r.n) }, "select run from turns where status = $1", removed)
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
const otherLeases = "select exists (select 1 from leases where renewed > $1 and not exists (select 1 from turns where run = leases.run and status = $2))"

// removeSome removes, in one transaction, as much as its time allows. It returns how
// many runs at the front of the list are done with, and which runs are gone.
func (m *removal) removeSome(ctx context.Context, list []row) (done int, gone []row, err error) {
	earlier := map[int64]bool{} // runs that a transaction removed which may have been committed
	err = m.db.Write(ctx, func(tx Tx, again bool) error {
		for _, r := range gone {
			earlier[r.n] = again
		}
		done, gone = 0, nil
		err := queryRow(ctx, tx, otherLeases, []any{nanos(m.now().Add(-leaseTime)), removed}, &m.others)
		if err != nil {
			return err
		}
		for began := time.Now(); done < len(list); {
			idle, went, whole, err := m.removePart(ctx, tx, list[done].n)
			if err != nil {
				return err
			}
			if went || idle && earlier[list[done].n] {
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
func (m *removal) removePart(ctx context.Context, tx Tx, run int64) (idle, went, whole bool, err error) {
	if lock := m.db.Lock(); lock != "" { // nobody takes a lease of the run meanwhile
		if err := queryRow(ctx, tx, "select n from runs where n = $1"+lock, []any{run}, &run); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return false, false, false, err
		}
	}
	l, err := leaseOf(ctx, tx, m.db, run, m.db.Lock())
	if err != nil {
		return false, false, false, err
	}
	marked := false
	if l != nil && l.Holder == m.me {
		err = queryRow(ctx, tx, "select exists (select 1 from turns where run = $1 and status = $2)", []any{run, removed}, &marked)
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
func (m *removal) markRemoved(ctx context.Context, tx Tx, run int64, l *lease) (bool, error) {
	now := m.now()
	take, err := swap(run, l, new(l.next(m.me, now)))
	if err != nil {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, take.Query, take.Args...); err != nil {
		return false, err
	}
	added, err := tx.ExecContext(ctx, `insert into turns (run, at, status, tasks) select n, $1, $2, '{}' from runs
where n = $3 and not exists (select 1 from turns where run = runs.n and status = $2)`, nanos(now), removed, run)
	if err != nil {
		return false, err
	}
	n, err := added.RowsAffected()
	return n > 0, err
}

// removeCommands removes the commands of a run. Files of earlier versions have none.
const removeCommands = "delete from commands where run = $1"

// removeTurns removes what the table of sessions has of a run. Files of earlier versions have none.
const removeTurns = "delete from sessions where run = $1"

// removeSubmission removes what the queue has of a run. Files of earlier versions have none.
const removeSubmission = "delete from submissions where run = $1"

// The statements of a removal, in their order: answers lead to batches, so they
// go first, and the run itself goes last, so that its number is not given to
// another one before. The first two remove some rows, the others all.
var removeRows = [...]string{
	"delete from answers where (key, batch) in (select key, batch from answers where run = $1 limit $2)",
	"delete from batches where n in (select n from batches where run = $1 limit $2)",
	"delete from turns where run = $1", removeCommands, removeTurns, removeSubmission, "delete from leases where run = $1", "delete from runs where n = $1",
}

// statements returns the statements of a removal that the form of the database has tables for.
func (m *removal) statements() (list []string) {
	has := commandTable{m.db}
	for _, s := range removeRows {
		if s == removeCommands && !has.has(withCommands) || s == removeTurns && !has.has(withSessions) || s == removeSubmission && !has.has(withQueue) {
			continue
		}
		list = append(list, s)
	}
	return list
}

// deleteRows removes some rows of a run, and reports whether none are left, and whether
// the run was there.
func (m *removal) deleteRows(ctx context.Context, tx Tx, run int64) (there, whole bool, err error) {
	n := int64(0)
	for i, s := range m.statements() {
		args := []any{run, m.most}
		if i > 1 {
			args = args[:1]
		}
		done, err := tx.ExecContext(ctx, s, args...)
		if err != nil {
			return false, false, err
		}
		if n, err = done.RowsAffected(); err != nil || i < 2 && n == m.most {
			return false, false, err
		}
	}
	return n > 0, true, nil
}

// shrink gives back the free space, some at a time.
func (m *removal) shrink(ctx context.Context) error {
	for {
		began, n := time.Now(), int64(0)
		more, err := m.space.Trim(ctx, func() bool {
			n++
			return time.Since(began) >= m.budget() || m.careful() && n >= m.most
		})
		switch {
		case err != nil && m.shouldRetry(ctx):
			continue
		case err != nil || !more:
			return err
		}
		if err := m.yield(ctx, began); err != nil {
			return err
		}
	}
}
