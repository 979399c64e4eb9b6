package journal

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	sqlite3 "modernc.org/sqlite/lib"
)

// Open opens the journal in a file. A file that does not exist is created, with mode 0600,
// unless the journal is read-only, and the key file of its digests next to it; the folder
// must exist. A file that is no journal, or one of a newer form, is refused and not changed.
func Open(path string, o Options) (*Journal, error) {
	j, err := openFile(path, o)
	return j, (&place{path: path}).fail("open", err)
}

func openFile(path string, o Options) (*Journal, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	d := &sqliteDB{o: o}
	if d.path, err = o.Dir.Abs(path); err != nil {
		return nil, err
	}
	key, err := d.openAll(context.Background(), path+".key", rand.Reader)
	if errors.Is(err, ErrFull) && o.UseReserve && d.useReserve() {
		key, err = d.openAll(context.Background(), path+".key", rand.Reader)
	}
	if err != nil {
		return nil, err
	}
	return New(path, d, key, o)
}

// InMemory returns an empty journal that ends with the process. It stores what a file
// would, in the same form, in a database of SQLite without a file. It panics with the
// error of [Options.Check], so check keys that the program did not make itself.
func InMemory(o Options) *Journal {
	j, err := openMemory(o)
	if err != nil {
		panic(fmt.Errorf("journal: %w", err))
	}
	return j
}

func openMemory(o Options) (*Journal, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	key, err := NewDigestKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	d := &sqliteDB{o: o}
	if err := d.open(context.Background()); err != nil {
		return nil, err
	}
	return New("", d, key, o)
}

// openAll opens the file, and returns the key of its digests, which a new journal gets from random. After an error nothing is
// left open.
func (d *sqliteDB) openAll(ctx context.Context, keyFile string, random io.Reader) (key []byte, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(d.Explain(err), d.Close())
		}
	}()
	used, err := d.inspect(ctx) // before anything is changed
	if err != nil {
		return nil, err
	}
	key, err = loadDigestKey(d.o.Dir, keyFile, random, !used && !d.o.ReadOnly)
	if err != nil && (used || !d.o.ReadOnly) {
		return nil, err
	}
	if err = d.open(ctx); err != nil {
		return nil, err
	}
	return key, checkFiles(d.path) // in a folder for temporary files, others may have made one meanwhile
}

// A sqliteDB is a [Database] of SQLite, in a file, or in memory.
type sqliteDB struct {
	path      string      // empty in memory
	opened    fs.FileInfo // of the file at path; nil in memory
	o         Options
	form      int
	write     *handle // one connection; nil if it is read-only
	read      *handle // the same as write in memory
	immutable bool    // no process can change the file
}

// A handle is an open file with the statements that were prepared for it.
type handle struct {
	db       *sql.DB
	mu       sync.Mutex // guards prepared
	prepared map[string]*sql.Stmt
}

// prepare prepares a query once. A transaction of the only connection would wait for itself here.
func (h *handle) prepare(ctx context.Context, query string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.prepared[query] != nil {
		return nil
	}
	s, err := h.db.PrepareContext(ctx, query)
	if err == nil {
		h.prepared[query] = s
	}
	return err
}

// statement returns a query that was prepared; nil if it was not.
func (h *handle) statement(query string) *sql.Stmt {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.prepared[query]
}

func (h *handle) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if s := h.statement(query); s != nil {
		return s.QueryContext(ctx, args...)
	}
	return h.db.QueryContext(ctx, query, args...)
}

func (h *handle) Close() (err error) {
	for _, s := range h.prepared {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, h.db.Close())
}

// preparedTx is a transaction that uses the prepared statements of its handle.
type preparedTx struct {
	tx *sql.Tx
	of *handle
}

func (t preparedTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if s := t.of.statement(query); s != nil {
		return t.tx.StmtContext(ctx, s).QueryContext(ctx, args...)
	}
	return t.tx.QueryContext(ctx, query, args...)
}

func (t preparedTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if s := t.of.statement(query); s != nil {
		return t.tx.StmtContext(ctx, s).ExecContext(ctx, args...)
	}
	return t.tx.ExecContext(ctx, query, args...)
}

func (d *sqliteDB) Identity() string { return d.path }

func (d *sqliteDB) ID() string { return d.path }

func (d *sqliteDB) Form() int { return d.form }

// Lock needs no words: a transaction that writes locks the whole file.
func (d *sqliteDB) Lock() string { return "" }

func (d *sqliteDB) SkipLocked() string { return "" }

func (d *sqliteDB) Now() string { return clocksOfHolders }

func (d *sqliteDB) Age() string { return clocksOfHolders }

// Await looks often, since nobody tells it.
func (d *sqliteDB) Await(ctx context.Context, most time.Duration) error {
	return wait(ctx, min(most, 100*time.Millisecond))
}

func (d *sqliteDB) IsDuplicate(err error) bool { return code(err)&0xff == sqlite3.SQLITE_CONSTRAINT }

// Prepare prepares queries for the handle that writes, or the only one.
func (d *sqliteDB) Prepare(ctx context.Context, queries ...string) error {
	h := d.read
	if d.write != nil {
		h = d.write
	}
	for _, q := range queries {
		if err := h.prepare(ctx, q); err != nil {
			return d.Explain(err)
		}
	}
	return nil
}

func (d *sqliteDB) Read(ctx context.Context, do func(Querier) error) error {
	if err := d.checkPresent(); err != nil {
		return err
	}
	return d.Explain(do(d.read))
}

func (d *sqliteDB) Snapshot(ctx context.Context, do func(Querier) error) error {
	if err := d.checkPresent(); err != nil {
		return err
	}
	tx, err := d.read.db.BeginTx(ctx, nil)
	if err != nil {
		return d.Explain(err)
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	return d.Explain(do(tx))
}

// Write retries while other processes lock the file.
func (d *sqliteDB) Write(ctx context.Context, do func(tx Tx, again bool) error) error {
	if d.write == nil {
		return ErrReadOnly
	}
	if err := d.checkPresent(); err != nil {
		return err
	}
	return d.Explain(d.retryWhileLocked(ctx, func() error {
		tx, err := d.write.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // of what is not committed
		if err := do(preparedTx{tx, d.write}, false); err != nil {
			return err
		}
		return tx.Commit()
	}))
}

func (d *sqliteDB) Commit(ctx context.Context, groups []*Group) error {
	return d.Write(ctx, func(tx Tx, _ bool) error {
		for _, g := range groups {
			if err := g.execute(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// execute executes the statements of a group.
func (g *Group) execute(ctx context.Context, tx Tx) error {
	for i := range g.Statements {
		err := g.Statements[i].execute(ctx, tx)
		if g.Refused = code(err) == sqlite3.SQLITE_CONSTRAINT_NOTNULL && i == 0; g.Refused {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Statement) execute(ctx context.Context, tx Tx) error {
	if s.Into != nil {
		return queryRow(ctx, tx, s.Query, s.Args, s.Into...)
	}
	done, err := tx.ExecContext(ctx, s.Query, s.Args...)
	if err == nil {
		s.Changed, err = done.RowsAffected()
	}
	return err
}

// open opens the handles, and brings the file to the newest version.
func (d *sqliteDB) open(ctx context.Context) (err error) {
	if !d.o.ReadOnly || d.path == "" {
		is, err := d.prepare(ctx)
		if err != nil {
			return err
		}
		d.form = is.version
	}
	if d.path == "" {
		d.read = d.write
		return nil
	}
	if d.read == nil {
		if d.read, err = d.connect(d.readSettings()); err != nil {
			return err
		}
	}
	d.read.db.SetMaxOpenConns(4)
	is, err := identity(ctx, d.read)
	if err == nil {
		err = is.check()
	}
	if err == nil && is == (ident{}) {
		err = errNoJournal // it is empty
	}
	d.form = is.version
	if err == nil {
		d.opened, err = os.Stat(d.path)
	}
	return err
}

// inspect refuses a file that is no journal without changing it, and reports whether it
// has runs.
func (d *sqliteDB) inspect(ctx context.Context) (used bool, err error) {
	if err := checkFiles(d.path); err != nil {
		return false, err
	}
	head, err := readHead(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && d.o.ReadOnly:
		return false, fmt.Errorf("%w: %w", errNoJournal, fs.ErrNotExist)
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case len(head) == 0:
		return false, nil // a new file
	case len(head) < headBytes || !bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return false, errForeign
	}
	is := ident{application: int(binary.BigEndian.Uint32(head[68:])), version: int(binary.BigEndian.Uint32(head[60:])), tables: 1}
	if is.application != 0 || is.version != 0 {
		if err := is.check(); err != nil {
			return false, err
		}
	}
	return d.probe(ctx)
}

// probe reports whether a file has runs. It opens the file read-only, except to roll back
// a transaction in which another process was killed.
func (d *sqliteDB) probe(ctx context.Context) (used bool, err error) {
	used, err = d.hasRuns(ctx, d.readSettings())
	switch {
	case d.isImmutable(err):
		d.immutable = true
		return d.hasRuns(ctx, d.readSettings())
	case !d.o.ReadOnly && code(err) == sqlite3.SQLITE_READONLY_ROLLBACK:
		err = d.retryWhileLocked(ctx, func() error {
			used, err = d.hasRuns(ctx, url.Values{"mode": {"rw"}})
			return err
		})
	}
	return used, err
}

// hasRuns reports whether a file has runs. It opens the file with these settings, and keeps a handle that
// only reads, since each new one reads the schema again.
func (d *sqliteDB) hasRuns(ctx context.Context, settings url.Values) (used bool, err error) {
	db, err := d.connect(settings)
	if err != nil {
		return false, err
	}
	defer func() {
		if settings.Get("mode") == "ro" && err == nil {
			d.read = db
		} else {
			_ = db.Close() // it only read
		}
	}()
	is, err := identity(ctx, db)
	if err == nil {
		err = is.check()
	}
	if err != nil || is.version == 0 {
		return false, err
	}
	err = queryRow(ctx, db, "select exists (select 1 from runs)", nil, &used)
	return used, err
}

// headBytes is the length of the head of a file of SQLite.
const headBytes = 100

func readHead(path string) ([]byte, error) {
	in, err := openPlain(path)
	if err != nil {
		return nil, unreadable(err)
	}
	defer in.Close() //nolint:errcheck // nothing was written
	head := make([]byte, headBytes)
	n, err := io.ReadFull(in, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return head[:n], err
}

// prepare opens the handle that writes, and creates or migrates the file if necessary.
func (d *sqliteDB) prepare(ctx context.Context) (is ident, err error) {
	if err := d.create(); err != nil {
		return is, err
	}
	settings := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(0)"}} // see retryWhileLocked
	if d.o.pages > 0 {
		settings.Add("_pragma", fmt.Sprintf("max_page_count(%d)", d.o.pages))
	}
	settings.Add("_pragma", "auto_vacuum(incremental)") // of a new file
	settings.Add("_pragma", "wal_autocheckpoint(4000)") // pages: fewer checkpoints
	if d.write, err = d.connect(settings); err != nil {
		return is, err
	}
	d.write.db.SetMaxOpenConns(1)
	if err := d.retryWhileLocked(ctx, func() (err error) {
		if is, err = d.migrate(ctx); err != nil {
			return err
		}
		return d.useWAL(ctx)
	}); err != nil {
		return is, err
	}
	d.keepReserve()
	return is, nil
}

// create makes the file, with mode 0600, if it does not exist.
func (d *sqliteDB) create() error {
	if d.path == "" {
		return nil
	}
	made, err := os.OpenFile(d.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(made.Chmod(0o600), made.Close())
}

// useWAL makes SQLite write to a log ahead of the file.
func (d *sqliteDB) useWAL(ctx context.Context) error {
	var mode string
	if err := queryRow(ctx, d.write, "pragma journal_mode = wal", nil, &mode); err != nil {
		return err
	}
	if mode != "wal" && d.path != "" {
		return fmt.Errorf("the file system does not support write-ahead logging (its mode is %q): give a path on a local disk", mode)
	}
	return nil
}

// hurriedWait limits the wait for a locked file once [Options].Hurry is closed.
const hurriedWait = time.Second

// retryWhileLocked calls do until other processes no longer lock the file, the time limit
// is over, or the context ends. It waits in place of SQLite, which cannot be interrupted
// and polls at fixed times, up to 100 ms apart: a process that writes often would have the
// lock at nearly every poll.
func (d *sqliteDB) retryWhileLocked(ctx context.Context, do func() error) error {
	began := time.Now()
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := do()
		if err != nil && (code(err)&0xff != sqlite3.SQLITE_BUSY || time.Since(began) > hurriedWait && isClosed(d.o.Hurry)) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithMaxElapsedTime(d.o.busy), backoff.WithBackOff(&backoff.ExponentialBackOff{
		InitialInterval: time.Millisecond, Multiplier: 1.5, MaxInterval: 20 * time.Millisecond, RandomizationFactor: 0.5,
	}))
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) { // the driver does not know the cause
		return context.Cause(ctx)
	}
	return err
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// connect returns a handle with these settings.
func (d *sqliteDB) connect(settings url.Values) (*handle, error) {
	for _, p := range []string{"synchronous(full)", "temp_store(memory)", "cell_size_check(true)"} {
		settings.Add("_pragma", p)
	}
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(d.path), OmitHost: true, RawQuery: settings.Encode()}
	if d.path == "" {
		name.Opaque = ":memory:"
	}
	db, err := sql.Open(d.o.Driver, name.String())
	return &handle{db: db, prepared: map[string]*sql.Stmt{}}, err
}

// readSettings returns the settings of the handle that reads.
func (d *sqliteDB) readSettings() url.Values {
	if d.immutable {
		return url.Values{"mode": {"ro"}, "immutable": {"1"}}
	}
	busy := fmt.Sprintf("busy_timeout(%d)", min(d.o.busy, 5*time.Second).Milliseconds()) // only while another process recovers the file
	return url.Values{"mode": {"ro"}, "_pragma": {busy, "query_only(true)"}}
}

// isImmutable reports whether SQLite cannot read a file only because it cannot create its
// log beside it, and no log exists. Then no process can write to the file, so that it can
// be read as an immutable one.
func (d *sqliteDB) isImmutable(err error) bool {
	if !d.o.ReadOnly || d.immutable {
		return false
	}
	if c := code(err) & 0xff; c != sqlite3.SQLITE_CANTOPEN && c != sqlite3.SQLITE_READONLY && !errors.Is(d.Explain(err), ErrFull) {
		return false
	}
	ahead, err := os.Stat(d.path + "-wal")
	return errors.Is(err, fs.ErrNotExist) || err == nil && ahead.Size() == 0 // SQLite created it before it failed
}

// Close closes the handles. The writing one is closed last, which removes the log.
func (d *sqliteDB) Close() (err error) {
	for _, h := range []*handle{d.read, d.write} {
		if h != nil {
			err = errors.Join(err, h.Close())
		}
	}
	return d.Explain(err)
}

// Trim lets deleted rows be overwritten only in pages that stay in use, since free pages are cut off.
func (d *sqliteDB) Trim(ctx context.Context) (Trimmer, error) {
	if d.write == nil {
		return nil, ErrReadOnly
	}
	_, err := d.write.db.ExecContext(ctx, "pragma secure_delete = fast; pragma wal_autocheckpoint = 1000")
	return sqliteTrimmer{d}, d.Explain(err)
}

// A sqliteTrimmer is the [Trimmer] of a file.
type sqliteTrimmer struct{ d *sqliteDB }

// Checkpoint copies the write-ahead log to the file and empties it, except for pages that
// other processes are reading.
func (t sqliteTrimmer) Checkpoint(ctx context.Context) {
	if _, err := t.d.write.db.ExecContext(ctx, "pragma wal_checkpoint(truncate)"); err != nil {
		t.d.o.Logger.Debug("the checkpoint of the journal failed", "path", t.d.path, "error", err)
	}
}

// Trim cuts free pages off, and runs a checkpoint once there are none.
func (t sqliteTrimmer) Trim(ctx context.Context, enough func() bool) (more bool, err error) {
	var free int64
	err = queryRow(ctx, t.d.write, "pragma freelist_count", nil, &free)
	if err == nil && free > 0 {
		err = t.d.retryWhileLocked(ctx, func() error { return t.cut(ctx, enough) })
	}
	if err == nil && free == 0 {
		t.Checkpoint(ctx)
	}
	return free > 0, t.d.Explain(err)
}

// cut cuts pages off, one with each row that is read.
func (t sqliteTrimmer) cut(ctx context.Context, enough func() bool) error {
	rows, err := t.d.write.QueryContext(ctx, "pragma incremental_vacuum")
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // the pages that were cut are committed
	for rows.Next() && !enough() {
	}
	return rows.Err()
}

func (t sqliteTrimmer) UseReserve() bool { return t.d.useReserve() }

// Size returns how many bytes the pages have that are in use.
func (t sqliteTrimmer) Size(ctx context.Context) (n int64, err error) {
	err = queryRow(ctx, t.d.write, "select page_count * page_size from pragma_page_count, pragma_page_size", nil, &n)
	return n, t.d.Explain(err)
}

func (t sqliteTrimmer) Close(ctx context.Context) {
	t.d.keepReserve()
	_, _ = t.d.write.db.ExecContext(ctx, "pragma wal_autocheckpoint = 4000") // it sets a number
}
