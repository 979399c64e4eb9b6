package journal

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/runteam/runteam/label"
	"modernc.org/sqlite/lib"
)

// nanos returns a time in its stored form.
func nanos(t time.Time) int64 { return t.UnixNano() }

// fromNanos returns the time of a stored form.
func fromNanos(n int64) time.Time { return time.Unix(0, n).UTC() }

// update runs do in one transaction. It retries while other processes lock the file, so
// do may be called several times.
func (d *database) update(ctx context.Context, do func(tx *sql.Tx) error) error {
	if d.write == nil {
		return ErrReadOnly
	}
	if err := d.checkPresent(); err != nil {
		return err
	}
	return d.explain(d.retryWhileLocked(ctx, func() error {
		tx, err := d.write.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // of what is not committed
		if err := do(tx); err != nil {
			return err
		}
		return tx.Commit()
	}))
}

// head returns the state of the chain of the newest run; nil if there is none.
func (s *store) head(ctx context.Context) (state []byte, err error) {
	err = s.read.QueryRowContext(ctx, `select state from batches where run =
(select n from runs r where not exists (select 1 from turns where run = r.n and status = ?) order by n desc limit 1) order by n desc limit 1`, removed).Scan(&state)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return state, s.explain(err)
}

// begin adds a run with its lease, and sets its number. The error is errRunExists if there
// is a run with its ID.
func (s *store) begin(ctx context.Context, r *runRow, b *batch) error {
	return s.update(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, "insert into runs (id, name, command, started) values (?, ?, ?, ?)", r.id, r.name, r.command, nanos(r.started))
		if code(err)&0xff == sqlite3.SQLITE_CONSTRAINT {
			return errRunExists
		}
		if err != nil {
			return err
		}
		if r.n, err = done.LastInsertId(); err != nil {
			return err
		}
		b.run = r.n
		if err := s.addTurn(ctx, tx, r); err != nil {
			return err
		}
		if err := putLease(ctx, tx, r.n, &b.lease); err != nil {
			return err
		}
		return s.addBatch(ctx, tx, b)
	})
}

func putLease(ctx context.Context, tx *sql.Tx, run int64, l *lease) error {
	holder, err := json.Marshal(l.Holder)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "insert or replace into leases (run, holder, beat, taken, renewed) values (?, ?, ?, ?, ?)", run, string(holder), l.Beat, nanos(l.Taken), nanos(l.Renewed))
	return err
}

// commit adds all batches whose leases are unchanged, in one transaction.
func (s *store) commit(ctx context.Context, list []*batch) error {
	if len(list) == 0 {
		return nil
	}
	return s.update(ctx, func(tx *sql.Tx) error {
		hasLease := tx.StmtContext(ctx, s.hasLease)
		for _, b := range list {
			holder, err := json.Marshal(b.lease.Holder)
			if err != nil {
				return err
			}
			var ours bool
			if err := hasLease.QueryRowContext(ctx, b.run, b.lease.Beat, string(holder)).Scan(&ours); err != nil {
				return err
			}
			if b.lost = !ours; b.lost {
				continue
			}
			if err := s.addBatch(ctx, tx, b); err != nil {
				return err
			}
		}
		return nil
	})
}

// The statements of each commit, which are prepared once.
const (
	insertBatch  = "insert into batches (run, at, state, parts, kept, rest) values (?, ?, ?, ?, ?, ?)"
	insertAnswer = "insert or ignore into answers (key, batch, run) values (?, ?, ?)"
	hasLease     = "select exists (select 1 from leases where run = ? and beat = ? and holder = ?)"
	selectLease  = "select holder, beat, taken, renewed from leases where run = ?"
)

// addBatch adds one batch.
func (s *store) addBatch(ctx context.Context, tx *sql.Tx, b *batch) error {
	if !b.empty {
		parts := markedParts(b.marks, b.lines.parts)
		done, err := tx.StmtContext(ctx, s.add).ExecContext(ctx, b.run, nanos(b.at), b.state, parts, b.lines.kept, b.lines.rest)
		if err != nil {
			return err
		}
		n, err := done.LastInsertId()
		if err != nil {
			return err
		}
		if err := s.addAnswers(ctx, tx, b, n); err != nil {
			return err
		}
	}
	for _, t := range b.turns {
		if _, err := tx.ExecContext(ctx, "insert into turns (run, at, status, tasks) values (?, ?, ?, ?)", b.run, nanos(t.at), t.status, t.tasks); err != nil {
			return err
		}
		if t.label != nil {
			if _, err := tx.ExecContext(ctx, "update runs set label = max(coalesce(label, ?1), ?1) where n = ?2", int64(*t.label), b.run); err != nil {
				return err
			}
		}
	}
	for _, n := range b.taken {
		if _, err := tx.ExecContext(ctx, "update commands set outcome = ?, line = x'' where n = ?", commandTaken, n); err != nil {
			return err
		}
	}
	if !b.release {
		return nil
	}
	_, err := tx.ExecContext(ctx, "delete from leases where run = ?", b.run)
	return err
}

// addAnswers adds the keys of the answers in a row.
func (s *store) addAnswers(ctx context.Context, tx *sql.Tx, b *batch, row int64) error {
	if len(b.answers) == 0 {
		return nil
	}
	add := tx.StmtContext(ctx, s.answer)
	for _, key := range b.answers {
		if _, err := add.ExecContext(ctx, key[:], row, b.run); err != nil {
			return err
		}
	}
	return nil
}

// leaseOf returns the lease of a run; nil if no process has it.
func leaseOf(ctx context.Context, q querier, run int64) (*lease, error) {
	return scanLease(q.QueryRowContext(ctx, selectLease, run))
}

func scanLease(row *sql.Row) (*lease, error) {
	var holder string
	var beat, taken, renewed int64
	err := row.Scan(&holder, &beat, &taken, &renewed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseLease(holder, beat, taken, renewed)
}

func parseLease(holder string, beat, taken, renewed int64) (*lease, error) {
	l := &lease{Beat: beat, Taken: fromNanos(taken), Renewed: fromNanos(renewed)}
	return l, json.Unmarshal([]byte(holder), &l.Holder)
}

// lease returns the lease of a run; nil if no process has it.
func (s *store) lease(ctx context.Context, run int64) (*lease, error) {
	l, err := leaseOf(ctx, s.read, run)
	return l, s.explain(err)
}

// swapLease replaces the lease of a run, and reports whether it was still the old one. Nil
// is no lease.
func (s *store) swapLease(ctx context.Context, run int64, old, now *lease) (ok bool, err error) {
	err = s.update(ctx, func(tx *sql.Tx) error {
		is, err := leaseOf(ctx, tx, run)
		if err != nil {
			return err
		}
		if ok = (is == nil) == (old == nil) && (is == nil || is.same(old)); !ok {
			return nil
		}
		if now != nil {
			return putLease(ctx, tx, run, now)
		}
		_, err = tx.ExecContext(ctx, "delete from leases where run = ?", run)
		return err
	})
	return ok && err == nil, err
}

// runs returns at most so many runs whose IDs begin with prefix and whose labels are not known or at most
// accepts, the newest first; all of them if most is negative.
func (s *store) runs(ctx context.Context, prefix string, most int, accepts label.Classification) (list []row, err error) {
	if err := s.checkPresent(); err != nil {
		return nil, err
	}
	query, err := s.listQuery(ctx, prefix != "")
	if err != nil {
		return nil, s.explain(err)
	}
	rows, err := query.QueryContext(ctx, prefix, removed, most, int64(accepts))
	list, err = scanAll(rows, err, scanRun)
	return list, s.explain(err)
}

// listQuery returns the query of [store.runs], which takes longer to prepare than to answer: in the order of the list, or
// by the index of IDs for those with a prefix.
func (s *store) listQuery(ctx context.Context, byID bool) (query *sql.Stmt, err error) {
	s.listing.Lock()
	defer s.listing.Unlock()
	at, condition := &s.list, "?1 = ''"
	if byID {
		at, condition = &s.find, "r.id >= ?1 and r.id < ?1 || char(1114111) and substr(r.id, 1, length(?1)) = ?1"
	}
	if *at == nil {
		*at, err = s.read.PrepareContext(ctx, s.selectRuns()+`
where `+condition+` and coalesce(t.status, '') <> ?2 and coalesce(`+s.labels()+`, ?4) <= ?4 order by r.n desc limit ?3`)
	}
	return *at, err
}

// labels returns the column with the labels of runs. Files of earlier versions have none.
func (s *store) labels() string {
	if s.commands.has(withLabels) {
		return "r.label"
	}
	return "null"
}

// selectRuns returns the query for runs, up to its condition. Files of earlier versions have no sessions.
func (s *store) selectRuns() string {
	columns, join := "'', 0", ""
	if s.commands.has(withSessions) {
		columns, join = "coalesce(s.session, ''), coalesce(s.turn, 0)", "left join sessions s on s.run = r.n"
	}
	return "select r.n, r.id, r.name, r.command, r.started, " + s.labels() + ", " + columns + `, l.holder, l.beat, l.taken, l.renewed, t.at, t.status, t.tasks,
(select count(*) from turns where run = r.n)
from runs r left join leases l on l.run = r.n ` + join + `
left join turns t on t.n = (select max(n) from turns where run = r.n)`
}

// scanRun reads one row of the query for runs.
func scanRun(rows *sql.Rows, r *row) (err error) {
	var started int64
	var holder, status, tasks sql.NullString
	var level, beat, taken, renewed, at sql.NullInt64
	if err := rows.Scan(&r.n, &r.id, &r.name, &r.command, &started, &level, &r.session, &r.place, &holder, &beat, &taken, &renewed, &at, &status, &tasks, &r.turns); err != nil {
		return err
	}
	r.started, r.turn = fromNanos(started), turn{at: fromNanos(at.Int64), status: status.String, tasks: tasks.String}
	if level.Valid {
		r.label = new(label.Classification(level.Int64))
	}
	if holder.Valid {
		r.held, err = parseLease(holder.String, beat.Int64, taken.Int64, renewed.Int64)
	}
	return err
}

// page returns the next rows of a run behind one, and whether there may be more; unless they are to be whole, without
// the lines that a history does not need. It has at most pageSize rows, and pageBytes unpacked, but one row at least.
func (s *store) page(ctx context.Context, run, after int64, whole bool) (page []batchRow, more bool, err error) {
	if err := s.checkPresent(); err != nil {
		return nil, false, err
	}
	rest := "x''"
	if whole {
		rest = "b.rest"
	}
	page, err = s.batchRows(ctx, "select b.n, b.run, '', b.parts, b.kept, "+rest+" from batches b where b.run = ? and b.n > ? order by b.n limit ?", run, after, pageSize)
	size := int64(0)
	for i := range page {
		if size += page[i].lines.unpackedSize(); size > pageBytes && i > 0 {
			return page[:i], true, err
		}
	}
	return page, len(page) == pageSize, err
}

// marked returns the numbers and marks of all rows of a run, in order.
func (s *store) marked(ctx context.Context, run int64) ([]markedRow, error) {
	list, err := markedRows(ctx, s.read, run, 0)
	return list, s.explain(err)
}

// markedRows returns the numbers and marks of the rows of a run behind one, in order.
func markedRows(ctx context.Context, from querier, run, after int64) ([]markedRow, error) {
	scan := func(rows *sql.Rows, r *markedRow) (err error) {
		var parts []byte
		if err := rows.Scan(&r.n, &parts); err != nil {
			return err
		}
		r.marks, _, r.marked, err = splitMarks(parts)
		return err
	}
	return queryAll(ctx, from, scan, "select n, parts from batches where run = ? and n > ? order by n", run, after)
}

// batchRow returns one row, unpacked.
func (s *store) batchRow(ctx context.Context, n int64, whole bool) (*batchRow, error) {
	list, err := s.batchRows(ctx, "select b.n, b.run, '', b.parts, b.kept, b.rest from batches b where b.n = ?", n)
	if err == nil && len(list) == 0 {
		err = errRow // it was removed meanwhile
	}
	if err != nil {
		return nil, err
	}
	return &list[0], list[0].unpack(whole)
}

// answers returns rows with an answer to this key and a number lower than before, the
// newest first, without the lines that a history does not need.
func (s *store) answers(ctx context.Context, key [32]byte, before int64) ([]batchRow, error) {
	return s.batchRows(ctx, `select b.n, b.run, r.id, b.parts, b.kept, x'' from answers a join batches b on b.n = a.batch join runs r on r.n = a.run
where a.key = ? and a.batch < ? order by a.batch desc limit ?`, key[:], before, pageSize)
}

func (s *store) batchRows(ctx context.Context, query string, args ...any) ([]batchRow, error) {
	scan := func(rows *sql.Rows, l *batchRow) error {
		return rows.Scan(&l.n, &l.run, &l.id, &l.lines.parts, &l.lines.kept, &l.lines.rest)
	}
	list, err := queryAll(ctx, s.read, scan, query, args...)
	return list, s.explain(err)
}

// last returns of a run the number of its last row, the newest time of a row, and the
// state of its chain.
func (s *store) last(ctx context.Context, run int64) (n int64, at time.Time, state []byte, err error) {
	var newest sql.NullInt64
	err = s.read.QueryRowContext(ctx, `select n, (select max(at) from batches where run = ?1), state from batches where run = ?1 order by n desc limit 1`, run).Scan(&n, &newest, &state)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fromNanos(0), nil, nil
	}
	return n, fromNanos(newest.Int64), state, s.explain(err)
}
