package journal

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/runteam/runteam/label"
)

// nanos returns a time in its stored form.
func nanos(t time.Time) int64 { return t.UnixNano() }

// fromNanos returns the time of a stored form.
func fromNanos(n int64) time.Time { return time.Unix(0, n).UTC() }

// head returns the state of the chain of the newest run; nil if there is none.
func (s *store) head(ctx context.Context) (state []byte, err error) {
	err = readRow(ctx, s.db, `select state from batches where run =
(select n from runs r where not exists (select 1 from turns where run = r.n and status = $1) order by n desc limit 1) order by n desc limit 1`, []any{removed}, &state)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return state, err
}

// commit adds all batches whose leases are unchanged, in one transaction. It renews leases if it has to send it again.
func (s *store) commit(ctx context.Context, list []*batch) error {
	if len(list) == 0 {
		return nil
	}
	for {
		groups := make([]*Group, len(list))
		for i, b := range list {
			var err error
			if groups[i], err = s.group(b); err != nil {
				return err
			}
		}
		err := s.db.Commit(ctx, groups)
		for i, b := range list {
			b.lost = groups[i].Refused
		}
		if !errors.Is(err, ErrUncertain) {
			return err
		}
		if done, err := s.settle(ctx, list); done || err != nil {
			return err
		}
	}
}

// settle finds out whether batches were stored whose commit had no answer: the chain of a run has its state then. If not,
// it renews their leases, so that what is still on its way to the database is refused there, and they can be sent again.
func (s *store) settle(ctx context.Context, list []*batch) (done bool, err error) {
	beat := make([]int64, len(list))
	err = s.db.Write(ctx, func(tx Tx, again bool) error {
		done = false
		for i, b := range list {
			var is int64 // the first transaction has ended once the lease can be locked
			err := queryRow(ctx, tx, "select beat from leases where run = $1"+s.db.Lock(), []any{b.run}, &is)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			if done, err = b.isStored(ctx, tx); done || err != nil {
				return err
			}
			beat[i] = b.lease.Beat + 1
			next, err := swap(b.run, &b.lease, &lease{Holder: b.lease.Holder, Beat: beat[i], Taken: b.lease.Taken, Renewed: b.lease.Renewed})
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, next.Query, next.Args...); err != nil { // it changes nothing if the lease is lost, or was renewed before
				return err
			}
		}
		return nil
	})
	if err == nil && !done {
		for i, b := range list {
			b.lease.Beat = beat[i]
		}
	}
	return done, err
}

// isStored reports whether a batch is stored.
func (b *batch) isStored(ctx context.Context, q Querier) (is bool, err error) {
	switch {
	case !b.empty:
		err = queryRow(ctx, q, "select exists (select 1 from batches where run = $1 and state = $2)", []any{b.run, b.state}, &is)
	case len(b.turns) > 0:
		t := &b.turns[0]
		err = queryRow(ctx, q, "select exists (select 1 from turns where run = $1 and at = $2 and status = $3)", []any{b.run, nanos(t.at), t.status}, &is)
	default:
		err = queryRow(ctx, q, "select not exists (select 1 from leases where run = $1)", []any{b.run}, &is)
	}
	return is, err
}

// insertAnswers adds the answers in the newest row of a run. Their keys, of 32 bytes each, follow each other in $1, which has
// $3 bytes; beside a column, PostgreSQL knows that it is bytes.
const insertAnswers = `insert into answers (key, batch, run)
with recursive newest as (select n, coalesce($1, state) as keys from batches where run = $2 order by n desc limit 1),
places(at) as (select 1 union all select at + 32 from places where at + 32 <= $3)
select substr(keys, at, 32), n, $2 from newest, places where true on conflict do nothing`

// group returns the statements that add a batch. The first is refused if the lease is another one now.
func (s *store) group(b *batch) (*Group, error) {
	holder, err := json.Marshal(b.lease.Holder)
	if err != nil {
		return nil, err
	}
	g := &Group{}
	owned := func(args ...any) []any { return append([]any{b.run, b.lease.Beat, string(holder)}, args...) }
	if !b.empty {
		g.add(s.ofLease.batch, owned(b.columns()...)...)
		if len(b.answers) > 0 {
			g.add(insertAnswers, b.answers, b.run, len(b.answers))
		}
	}
	for i := range b.turns {
		t := &b.turns[i]
		g.add(s.ofLease.turn, owned(t.columns()...)...)
		if t.label != nil {
			g.add("update runs set label = $1 where n = $2 and coalesce(label, -1) < $1", int64(*t.label), b.run)
		}
	}
	for _, n := range b.taken {
		g.add("update commands set outcome = $1, line = $2 where n = $3", commandTaken, []byte{}, n)
	}
	if b.spent > 0 {
		g.add("update submissions set spent = $1 + case when day = "+s.today(2)+" then spent else 0 end, day = "+s.today(2)+" where run = $3", b.spent, nanos(b.at), b.run)
	}
	if b.release {
		if s.commands.has(withQueue) {
			g.add(s.leaveQueue, owned(b.queue)...)
		}
		g.add("delete from leases where run = $1 and beat = $2 and holder = $3", owned()...)
	}
	return g, nil
}

// columns returns what a row of the table batches has of a batch, behind the run.
func (b *batch) columns() []any {
	return []any{nanos(b.at), b.state, markedParts(b.marks, b.lines.parts), notNull(b.lines.kept), notNull(b.lines.rest)}
}

// columns returns what a row of the table turns has, behind the run.
func (t *turn) columns() []any { return []any{nanos(t.at), t.status, t.tasks} }

// today returns the expression for the day in UTC, by the clock of the server, or by that of this host, whose nanoseconds are
// the parameter with a number.
func (s *store) today(parameter int) string {
	return fmt.Sprintf("(coalesce(%s, $%d) / 86400000000000)", s.db.Now(), parameter)
}

// notNull returns bytes that no database takes for a null.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// swap returns the statement that replaces the lease of a run, if it is still the old one. Nil is no lease.
func swap(run int64, old, now *lease) (s Statement, err error) {
	var was, is []byte
	if old != nil {
		if was = []byte(old.holder); old.holder == "" {
			was, err = json.Marshal(old.Holder)
		}
	}
	if now != nil && err == nil {
		is, err = json.Marshal(now.Holder)
	}
	switch {
	case err != nil:
	case old == nil && now == nil:
		err = errors.New("there is no lease to replace")
	case old == nil:
		s = Statement{Query: "insert into leases (run, holder, beat, taken, renewed) values ($1, $2, $3, $4, $5) on conflict do nothing", Args: []any{run, string(is), now.Beat, nanos(now.Taken), nanos(now.Renewed)}}
	case now == nil:
		s = Statement{Query: "delete from leases where run = $1 and beat = $2 and holder = $3", Args: []any{run, old.Beat, string(was)}}
	default:
		s = Statement{Query: "update leases set holder = $1, beat = $2, taken = $3, renewed = $4 where run = $5 and beat = $6 and holder = $7",
			Args: []any{string(is), now.Beat, nanos(now.Taken), nanos(now.Renewed), run, old.Beat, string(was)}}
	}
	return s, err
}

// swapLease replaces the lease of a run, and reports whether it was still the old one. Nil
// is no lease. After [ErrUncertain], the lease may be replaced, also later.
func (s *store) swapLease(ctx context.Context, run int64, old, now *lease) (ok bool, err error) {
	change, err := swap(run, old, now)
	if err != nil {
		return false, err
	}
	for repeated := false; ; repeated = true {
		g := &Group{Statements: []Statement{change}}
		err := s.db.Commit(ctx, []*Group{g})
		lost := errors.Is(err, ErrUncertain)
		if ok = err == nil && g.Statements[0].Changed > 0; ok || !lost && !repeated {
			return ok, err
		}
		var is *lease
		if err == nil || lost {
			is, err = s.lease(ctx, run) // what was sent first may have replaced it
		}
		switch {
		case err != nil:
			return false, fmt.Errorf("%w: %w", ErrUncertain, err)
		case !is.same(old):
			return is.same(now), nil
		}
	}
}

// lease returns the lease of a run; nil if no process has it.
func (s *store) lease(ctx context.Context, run int64) (l *lease, err error) {
	err = s.db.Read(ctx, func(q Querier) (err error) {
		l, err = leaseOf(ctx, q, s.db, run, "")
		return err
	})
	return l, err
}

// leaseOf returns the lease of a run; nil if no process has it. lock is how the query ends.
func leaseOf(ctx context.Context, q Querier, db Database, run int64, lock string) (*lease, error) {
	var l leaseRow
	err := queryRow(ctx, q, selectLease(db)+lock, []any{run}, l.columns()...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return l.lease()
}

// selectLease returns the query for the lease of a run.
func selectLease(db Database) string {
	return "select holder, beat, taken, renewed, " + db.Age() + " from leases where run = $1"
}

// A leaseRow is a row of the table of leases as it is read, whose columns are null if there is none.
type leaseRow struct {
	holder                    sql.NullString
	beat, taken, renewed, age sql.NullInt64
}

func (l *leaseRow) columns() []any { return []any{&l.holder, &l.beat, &l.taken, &l.renewed, &l.age} }

// lease returns the lease in a row.
func (l *leaseRow) lease() (*lease, error) {
	if !l.holder.Valid {
		return nil, nil
	}
	out := &lease{holder: l.holder.String, Beat: l.beat.Int64, Taken: fromNanos(l.taken.Int64), Renewed: fromNanos(l.renewed.Int64)}
	if l.age.Valid {
		out.idle = new(time.Duration(l.age.Int64))
	}
	if json.Unmarshal([]byte(l.holder.String), &out.Holder) != nil {
		out.Holder = Holder{} // nobody knows whether it lives, so the time decides
	}
	return out, nil
}

// runs returns at most so many runs whose IDs begin with prefix and which one of the views may have, the newest first; all of
// them if most is negative.
func (s *store) runs(ctx context.Context, prefix string, most int, views []View) ([]row, error) {
	limit := int64(most)
	if most < 0 {
		limit = math.MaxInt64
	}
	condition, args := s.condition(views, []any{removed, limit})
	if prefix != "" { // by the index of IDs
		condition += fmt.Sprintf(" and r.id >= $%d and r.id < $%d", len(args)+1, len(args)+2)
		args = append(args, prefix, prefix+string(utf8.MaxRune))
	}
	return readAll(ctx, s.db, scanRun, s.selectRuns()+`
where coalesce(t.status, '') <> $1 and `+condition+` order by r.n desc limit $2`, args...)
}

// selectRuns returns the query for runs, up to its condition. Files of earlier versions have no sessions.
func (s *store) selectRuns() string {
	columns, join := "'', 0", ""
	if s.commands.has(withSessions) {
		columns, join = "coalesce(s.session, ''), coalesce(s.turn, 0)", "left join sessions s on s.run = r.n"
	}
	if s.commands.has(withQueue) {
		columns += ", q.state, q.spec, q.version, q.submitter, q.due, q.priority, q.reason"
		join += " left join submissions q on q.run = r.n"
	} else {
		columns += ", null, null, null, null, null, null, null"
	}
	return "select r.n, r.id, r.name, r.command, r.started, " + s.column("label", "null", withLabels) + ", " + s.column("starter", "''", withQueue) + ", " + s.column("spec", "''", withQueue) + ", " + columns + ", l.holder, l.beat, l.taken, l.renewed, " + s.db.Age() + `, t.at, t.status, t.tasks,
(select count(*) from turns where run = r.n)
from runs r left join leases l on l.run = r.n ` + join + `
left join turns t on t.n = (select max(n) from turns where run = r.n)`
}

// scanRun reads one row of the query for runs.
func scanRun(rows *sql.Rows, r *row) (err error) {
	var started int64
	var status, tasks sql.NullString
	var level, at sql.NullInt64
	var held leaseRow
	var queue queueRow
	into := append([]any{&r.n, &r.id, &r.name, &r.command, &started, &level, &r.starter, &r.spec, &r.session, &r.place}, queue.columns()...)
	into = append(into, held.columns()...)
	if err := rows.Scan(append(into, &at, &status, &tasks, &r.turns)...); err != nil {
		return err
	}
	r.started, r.turn = fromNanos(started), turn{at: fromNanos(at.Int64), status: status.String, tasks: tasks.String}
	if level.Valid {
		r.label = new(label.Classification(level.Int64))
	}
	r.queue = queue.place()
	r.held, err = held.lease()
	return err
}

// page returns the next rows of a run behind one, and whether there may be more; unless they are to be whole, without
// the lines that a history does not need. It has at most pageSize rows, and pageBytes unpacked, but one row at least.
func (s *store) page(ctx context.Context, run, after int64, whole bool) (page []batchRow, more bool, err error) {
	rest := "null"
	if whole {
		rest = "b.rest"
	}
	page, err = s.batchRows(ctx, "select b.n, b.run, '', b.parts, b.kept, "+rest+" from batches b where b.run = $1 and b.n > $2 order by b.n limit $3", run, after, pageSize)
	size := int64(0)
	for i := range page {
		if size += page[i].lines.unpackedSize(); size > pageBytes && i > 0 {
			return page[:i], true, err
		}
	}
	return page, len(page) == pageSize, err
}

// selectMarks returns the numbers and marks of the rows of a run behind one, in order.
const selectMarks = "select n, parts from batches where run = $1 and n > $2 order by n"

// marked returns the numbers and marks of all rows of a run, in order.
func (s *store) marked(ctx context.Context, run int64) ([]markedRow, error) {
	return readAll(ctx, s.db, scanMarks, selectMarks, run, 0)
}

// scanMarks reads one row of [selectMarks].
func scanMarks(rows *sql.Rows, r *markedRow) (err error) {
	var parts []byte
	if err := rows.Scan(&r.n, &parts); err != nil {
		return err
	}
	r.marks, _, r.marked, err = splitMarks(parts)
	return err
}

// batchRow returns one row, unpacked.
func (s *store) batchRow(ctx context.Context, n int64, whole bool) (*batchRow, error) {
	list, err := s.batchRows(ctx, "select b.n, b.run, '', b.parts, b.kept, b.rest from batches b where b.n = $1", n)
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
	return s.batchRows(ctx, `select b.n, b.run, r.id, b.parts, b.kept, null from answers a join batches b on b.n = a.batch join runs r on r.n = a.run
where a.key = $1 and a.batch < $2 order by a.batch desc limit $3`, key[:], before, pageSize)
}

func (s *store) batchRows(ctx context.Context, query string, args ...any) ([]batchRow, error) {
	scan := func(rows *sql.Rows, l *batchRow) error {
		return rows.Scan(&l.n, &l.run, &l.id, &l.lines.parts, &l.lines.kept, &l.lines.rest)
	}
	return readAll(ctx, s.db, scan, query, args...)
}

// last returns of a run the number of its last row, the newest time of a row, and the
// state of its chain.
func (s *store) last(ctx context.Context, run int64) (n int64, at time.Time, state []byte, err error) {
	var newest sql.NullInt64
	err = readRow(ctx, s.db, `select n, (select max(at) from batches where run = $1), state from batches where run = $1 order by n desc limit 1`, []any{run}, &n, &newest, &state)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fromNanos(0), nil, nil
	}
	return n, fromNanos(newest.Int64), state, err
}
