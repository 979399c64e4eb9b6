package journal

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A CopyTarget is a place for a copy of a journal, where none is yet.
type CopyTarget interface {
	// Fill makes a journal with this key of its digests and calls do in the transaction that adds all of its rows. It
	// refuses a journal with runs, or with another key: [ErrNotEmpty].
	Fill(ctx context.Context, digestKey []byte, do func(Tx) error) error
}

// ErrNotEmpty reports a target of a copy that is a journal already.
var ErrNotEmpty = errors.New("there is a journal already, and the digests of two journals do not mix: copy to a new file, database or schema")

// ErrBusy reports a journal that cannot be copied, since a process works on its runs.
var ErrBusy = errors.New("a journal is copied when no process works on its runs")

// A copiedTable is a table of a journal. Rows are copied in the order of their key, the first columns.
type copiedTable struct {
	name    string
	key     string
	columns []string
	since   int // the version of the schema that added the table
}

// copied are the tables of a journal but for leases and workers: a copy has none, since no process works on its runs.
var copied = []copiedTable{
	{"runs", "n", []string{"n", "id", "name", "command", "started", "label", "starter", "spec"}, 1},
	{"batches", "n", []string{"n", "run", "at", "state", "parts", "kept", "rest"}, 1},
	{"answers", "key, batch", []string{"key", "batch", "run"}, 1},
	{"turns", "n", []string{"n", "run", "at", "status", "tasks"}, 1},
	{"commands", "n", []string{"n", "run", "kind", "subject", "outcome", "line"}, withCommands},
	{"sessions", "session, turn", []string{"session", "turn", "run"}, withSessions},
	{"submissions", "run", []string{"run", "spec", "version", "submitter", "request", "due", "priority", "state", "losses", "replies", "reason", "digest", "day", "spent"}, withQueue},
	{"callers", "spec, version, name", []string{"spec", "version", "name", "claimed"}, withQueue},
}

// Limits of the rows that are added by one statement.
const (
	copyRows  = 64
	copyBytes = 1 << 20
)

// Copied is what a copy has.
type Copied struct {
	Runs int64
	Rows int64 // of all tables
}

// CopyTo copies all rows as they are, with their numbers, and the key of the digests. It copies what the journal has at one
// time, in one transaction of the target, and refuses if a process works on a run then, or if the journal has changed before
// the end. report is called between statements, with the rows so far and all.
func (j *Journal) CopyTo(ctx context.Context, to CopyTarget, report func(rows, all int64)) (Copied, error) {
	if err := j.checkWhole(); err != nil {
		return Copied{}, err
	}
	c := &copying{from: j, report: report}
	err := j.store.db.Read(ctx, func(q Querier) error { return c.checkIdle(ctx, q) }) // before the target is made
	if err == nil && j.vault.digestKey == nil {
		err = errNoJournal // it has no runs
	}
	if err != nil {
		return Copied{}, j.fail("copy", err)
	}
	err = to.Fill(ctx, j.vault.digestKey, func(tx Tx) error {
		c.reading, c.writing = nil, nil
		err := c.copy(ctx, tx)
		if c.writing == nil {
			c.reading = err
		}
		return err
	})
	if c.reading != nil {
		err = j.fail("copy", c.reading)
	}
	return c.done, err
}

// A copying is a copy that is being made.
type copying struct {
	from             *Journal
	report           func(rows, all int64)
	counted          []int64 // rows of each table
	all              int64
	done             Copied
	reading, writing error // of either side
}

// copy copies a snapshot, and then looks whether the journal has changed since.
func (c *copying) copy(ctx context.Context, to Tx) (err error) {
	c.done, c.all = Copied{}, 0
	err = c.from.store.db.Snapshot(ctx, func(from Querier) error {
		if c.counted, err = c.count(ctx, from); err != nil {
			return err
		}
		for _, n := range c.counted {
			c.all += n
		}
		c.done.Runs = c.counted[0]
		for i := range copied {
			if err := c.copyTable(ctx, &copied[i], from, to); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.from.store.db.Read(ctx, func(q Querier) error {
		now, err := c.count(ctx, q)
		if err == nil && !slices.Equal(c.counted, now) {
			err = fmt.Errorf("%w: it has changed since the copy began", ErrBusy)
		}
		return err
	})
}

// checkIdle returns an error that names the runs that a process works on.
func (c *copying) checkIdle(ctx context.Context, q Querier) error {
	type held struct {
		run string
		leaseRow
	}
	list, err := queryAll(ctx, q, func(rows *sql.Rows, h *held) error {
		return rows.Scan(append([]any{&h.run}, h.columns()...)...)
	}, "select r.id, l.holder, l.beat, l.taken, l.renewed, "+c.from.store.db.Age()+" from runs r join leases l on l.run = r.n order by r.n")
	if err != nil {
		return err
	}
	var busy []string
	for i := range list {
		l, err := list[i].lease()
		if err != nil {
			return err
		}
		if c.from.live(l) {
			busy = append(busy, (&LeaseError{Run: list[i].run, Holder: l.Holder, Me: c.from.me}).who()+" works on run "+list[i].run)
		}
	}
	if len(busy) > 0 {
		return fmt.Errorf("%w: %s", ErrBusy, strings.Join(busy, ", "))
	}
	return nil
}

// count returns how many rows each of the copied tables has. It returns an error if a process works on a run.
func (c *copying) count(ctx context.Context, q Querier) ([]int64, error) {
	if err := c.checkIdle(ctx, q); err != nil {
		return nil, err
	}
	all := make([]int64, len(copied))
	for i := range copied {
		if !c.has(copied[i].since) {
			continue
		}
		if err := queryRow(ctx, q, "select count(*) from "+copied[i].name, nil, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// has reports whether the original has the form of a version.
func (c *copying) has(version int) bool { return c.from.store.commands.has(version) }

// copyTable copies the rows of a table, many with each statement.
func (c *copying) copyTable(ctx context.Context, t *copiedTable, from Querier, to Tx) error {
	if !c.has(t.since) {
		return nil
	}
	columns := strings.Join(t.columns, ", ")
	selected := columns
	if t.name == "runs" && !c.has(withLabels) {
		selected = strings.Replace(selected, "label", "null", 1)
	}
	if t.name == "runs" && !c.has(withQueue) {
		selected = strings.Replace(selected, "starter, spec", "'', ''", 1)
	}
	rows, err := from.QueryContext(ctx, "select "+selected+" from "+t.name+" order by "+t.key)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // it was read to its end, or there is another error
	var values []any
	size := 0
	add := func() error {
		n := len(values) / len(t.columns)
		if n == 0 {
			return nil
		}
		if _, c.writing = to.ExecContext(ctx, "insert into "+t.name+" ("+columns+") values "+placeholders(n, len(t.columns)), values...); c.writing != nil {
			return c.writing
		}
		values, size = values[:0], 0
		c.done.Rows += int64(n)
		c.report(c.done.Rows, c.all)
		return nil
	}
	for rows.Next() {
		row, bytes, err := scanValues(rows, len(t.columns))
		if err != nil {
			return err
		}
		values, size = append(values, row...), size+bytes
		if len(values) >= copyRows*len(row) || size >= copyBytes {
			if err := add(); err != nil {
				return err
			}
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return add()
}

// scanValues returns the values of a row, and how many bytes of lines it has.
func scanValues(rows *sql.Rows, columns int) (row []any, size int, err error) {
	row = make([]any, columns)
	into := make([]any, columns)
	for i := range row {
		into[i] = &row[i]
	}
	if err := rows.Scan(into...); err != nil {
		return nil, 0, err
	}
	for i := range row {
		if b, ok := row[i].([]byte); ok {
			row[i] = notNull(b)
			size += len(b)
		}
	}
	return row, size, nil
}

// placeholders returns the parameters of rows: ($1, $2), ($3, $4).
func placeholders(rows, columns int) string {
	var b strings.Builder
	for i := range rows * columns {
		switch {
		case i == 0:
			b.WriteString("(")
		case i%columns == 0:
			b.WriteString("), (")
		default:
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d", i+1)
	}
	return b.String() + ")"
}

// CheckEmpty refuses to fill a journal that has runs, or another key of its digests, which a process may use already.
func CheckEmpty(ctx context.Context, tx Tx, key, wanted []byte) error {
	var used bool
	err := queryRow(ctx, tx, "select exists (select 1 from runs)", nil, &used)
	if err == nil && (used || !bytes.Equal(key, wanted)) {
		err = ErrNotEmpty
	}
	return err
}

// A fileTarget is a file for a copy.
type fileTarget struct {
	path string
	o    Options
}

// InFile returns the target of a copy that goes to a file.
func InFile(path string, o Options) CopyTarget { return fileTarget{path, o} }

// Fill makes the key file first: until the transaction ends, there is a journal without runs.
func (f fileTarget) Fill(ctx context.Context, digestKey []byte, do func(Tx) error) error {
	return (&place{path: f.path}).fail("copy to", f.fill(ctx, digestKey, do))
}

func (f fileTarget) fill(ctx context.Context, digestKey []byte, do func(Tx) error) (err error) {
	o, err := f.o.checked()
	if err != nil {
		return err
	}
	d := &sqliteDB{o: o}
	if d.path, err = o.Dir.Abs(f.path); err != nil {
		return err
	}
	key, err := d.openAll(ctx, f.path+".key", bytes.NewReader(digestKey))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.Write(ctx, func(tx Tx, _ bool) error {
		if err := CheckEmpty(ctx, tx, key, digestKey); err != nil {
			return err
		}
		return do(tx)
	})
}
