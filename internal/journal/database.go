package journal

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
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
	j, err := open(path, o, func(s *store) (digests *digester, err error) {
		if s.path, err = o.Dir.Abs(path); err != nil {
			return nil, err
		}
		digests, err = s.openAll(context.Background(), path+".key")
		if errors.Is(err, ErrFull) && o.UseReserve && s.useReserve() {
			return s.openAll(context.Background(), path+".key")
		}
		return digests, err
	})
	return j, (&place{path: path}).fail("open", err)
}

// InMemory returns an empty journal that ends with the process. It stores what a file
// would, in the same form, in a database of SQLite without a file. It panics with the
// error of [Options.Check], so check keys that the program did not make itself.
func InMemory(o Options) *Journal {
	j, err := open("", o, func(s *store) (*digester, error) {
		key := make([]byte, sha256.Size)
		rand.Read(key) //nolint:errcheck // it never returns an error
		return newDigester(key), s.open(context.Background())
	})
	if err != nil {
		panic(fmt.Errorf("journal: %w", err))
	}
	return j
}

// open returns a journal whose store connect opens.
func open(path string, o Options, connect func(*store) (*digester, error)) (*Journal, error) {
	o = o.withDefaults()
	if err := o.Check(); err != nil {
		return nil, err
	}
	sealer, err := newSealer(o.Key, rand.Reader)
	if err != nil {
		return nil, err
	}
	s := &store{database: &database{o: o}}
	digests, err := connect(s)
	if err != nil {
		return nil, err
	}
	return newJournal(path, o, s, &vault{sealer: sealer, digests: digests}), nil
}

// openAll opens the file and its key file. After an error nothing is left open.
func (s *store) openAll(ctx context.Context, key string) (digests *digester, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(s.explain(err), s.close())
		}
	}()
	used, err := s.inspect(ctx) // before anything is changed
	if err != nil {
		return nil, err
	}
	digests, err = loadDigestKey(s.o.Dir, key, rand.Reader, !used && !s.o.ReadOnly)
	if err != nil && (used || !s.o.ReadOnly) {
		return nil, err
	}
	if err = s.open(ctx); err != nil {
		return nil, err
	}
	return digests, checkFiles(s.path) // in a folder for temporary files, others may have made one meanwhile
}

// A store is the rows of a journal in a database. Rows are added and never changed, except
// leases; only whole runs are removed. It is safe for concurrent use.
type store struct {
	*database
	commands commandTable

	add, answer, hasLease *sql.Stmt // of write

	listing sync.Mutex // guards list
	list    *sql.Stmt  // of read, of [store.runs] for all runs; nil until it is used
	find    *sql.Stmt  // the same for those with a prefix
}

// A database is a database of SQLite, in a file or in memory.
type database struct {
	path      string      // empty in memory
	opened    fs.FileInfo // of the file at path; nil in memory
	o         Options
	write     *sql.DB // one connection; nil if it is read-only
	read      *sql.DB // the same as write in memory
	immutable bool    // no process can change the file
}

// open opens the handles, and brings the file to the newest version.
func (s *store) open(ctx context.Context) (err error) {
	if !s.o.ReadOnly || s.path == "" {
		is, err := s.prepare(ctx)
		if err != nil {
			return err
		}
		s.commands = commandTable{s.database, is.version}
		for into, query := range map[**sql.Stmt]string{&s.add: insertBatch, &s.answer: insertAnswer, &s.hasLease: hasLease} {
			if *into, err = s.write.PrepareContext(ctx, query); err != nil {
				return err
			}
		}
	}
	if s.path == "" {
		s.read = s.write
		return nil
	}
	if s.read == nil {
		if s.read, err = s.connect(s.readSettings()); err != nil {
			return err
		}
	}
	s.read.SetMaxOpenConns(4)
	is, err := identity(ctx, s.read)
	if err == nil {
		err = is.check()
	}
	if err == nil && is == (ident{}) {
		err = errNoJournal // it is empty
	}
	s.commands = commandTable{s.database, is.version}
	if err == nil {
		s.opened, err = os.Stat(s.path)
	}
	return err
}

// inspect refuses a file that is no journal without changing it, and reports whether it
// has runs.
func (d *database) inspect(ctx context.Context) (used bool, err error) {
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
func (d *database) probe(ctx context.Context) (used bool, err error) {
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
func (d *database) hasRuns(ctx context.Context, settings url.Values) (used bool, err error) {
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
	err = db.QueryRowContext(ctx, "select exists (select 1 from runs)").Scan(&used)
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
func (d *database) prepare(ctx context.Context) (is ident, err error) {
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
	d.write.SetMaxOpenConns(1)
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
func (d *database) create() error {
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
func (d *database) useWAL(ctx context.Context) error {
	var mode string
	if err := d.write.QueryRowContext(ctx, "pragma journal_mode = wal").Scan(&mode); err != nil {
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
func (d *database) retryWhileLocked(ctx context.Context, do func() error) error {
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
func (d *database) connect(settings url.Values) (*sql.DB, error) {
	for _, p := range []string{"synchronous(full)", "temp_store(memory)", "cell_size_check(true)"} {
		settings.Add("_pragma", p)
	}
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(d.path), OmitHost: true, RawQuery: settings.Encode()}
	if d.path == "" {
		name.Opaque = ":memory:"
	}
	return sql.Open(d.o.Driver, name.String())
}

// readSettings returns the settings of the handle that reads.
func (d *database) readSettings() url.Values {
	if d.immutable {
		return url.Values{"mode": {"ro"}, "immutable": {"1"}}
	}
	busy := fmt.Sprintf("busy_timeout(%d)", min(d.o.busy, 5*time.Second).Milliseconds()) // only while another process recovers the file
	return url.Values{"mode": {"ro"}, "_pragma": {busy, "query_only(true)"}}
}

// isImmutable reports whether SQLite cannot read a file only because it cannot create its
// log beside it, and no log exists. Then no process can write to the file, so that it can
// be read as an immutable one.
func (d *database) isImmutable(err error) bool {
	if !d.o.ReadOnly || d.immutable {
		return false
	}
	if c := code(err) & 0xff; c != sqlite3.SQLITE_CANTOPEN && c != sqlite3.SQLITE_READONLY && !errors.Is(d.explain(err), ErrFull) {
		return false
	}
	ahead, err := os.Stat(d.path + "-wal")
	return errors.Is(err, fs.ErrNotExist) || err == nil && ahead.Size() == 0 // SQLite created it before it failed
}

// close closes the handles. The writing one is closed last, which removes the log.
func (s *store) close() (err error) {
	for _, statement := range []*sql.Stmt{s.add, s.answer, s.hasLease, s.list, s.find} {
		if statement != nil {
			err = errors.Join(err, statement.Close())
		}
	}
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}
	return s.explain(err)
}
