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
	"time"

	"github.com/cenkalti/backoff/v5"
	sqlite3 "modernc.org/sqlite/lib"
)

// Open opens the journal in a file. Unless it is to be read only, a file that is
// not there is made, with mode 0600, and beside it the file of the key of its
// digests; the folder must exist. A file that is no journal, or one of a newer
// form, is refused and stays as it is.
func Open(path string, o Options) (*Journal, error) {
	o = o.withDefaults()
	f, v, err := openFile(path, o)
	if err != nil {
		return nil, (&place{path: path}).fail("open", err)
	}
	return newJournal(path, o, f, v), nil
}

// InMemory returns an empty journal that ends with the process. It stores what a file
// would, in the same form, in a database of SQLite without a file. It panics with the
// error of [Options.Check], so check keys that the program did not make itself.
func InMemory(o Options) *Journal {
	o = o.withDefaults()
	f, v, err := openMemory(o)
	if err != nil {
		panic(fmt.Errorf("journal: %w", err))
	}
	return newJournal("", o, f, v)
}

// openMemory opens a database without a file, whose digests only this process can compute.
func openMemory(o Options) (*file, *vault, error) {
	if err := o.Check(); err != nil {
		return nil, nil, err
	}
	s, err := newSealer(o.Key, rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	key := make([]byte, sha256.Size)
	rand.Read(key) //nolint:errcheck // it never returns an error
	f := &file{database: &database{o: o}}
	if err := f.open(context.Background()); err != nil {
		return nil, nil, errors.Join(err, f.close())
	}
	return f, &vault{sealer: s, digests: newDigester(key), pads: f.pads}, nil
}

// openFile opens the file of a journal and that of its digest key.
func openFile(path string, o Options) (*file, *vault, error) {
	if err := o.Check(); err != nil {
		return nil, nil, err
	}
	s, err := newSealer(o.Key, rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	f := &file{database: &database{o: o}}
	if f.path, err = filepath.Abs(path); err != nil {
		return nil, nil, err
	}
	d, err := f.openAll(context.Background(), path+".key")
	if errors.Is(err, ErrFull) && o.UseReserve && f.useReserve() {
		d, err = f.openAll(context.Background(), path+".key")
	}
	if err != nil {
		return nil, nil, err
	}
	return f, &vault{sealer: s, digests: d, pads: f.pads}, nil
}

// openAll opens the file, and key, that of its key. Unless it succeeds, nothing is left open.
func (f *file) openAll(ctx context.Context, key string) (d *digester, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(f.explain(err), f.close())
		}
	}()
	used, err := f.look(ctx) // before anything is changed
	if err != nil {
		return nil, err
	}
	d, err = loadDigestKey(key, rand.Reader, !used && !f.o.ReadOnly)
	if err != nil && (used || !f.o.ReadOnly) {
		return nil, err
	}
	return d, f.open(ctx)
}

// A file is a store in a file of SQLite.
type file struct {
	*database
	marks bool // rows are written with marks
	pads  bool // texts are padded before they are encrypted

	add, answer, lent *sql.Stmt // of write
}

// A database is a file of SQLite that holds a journal.
type database struct {
	path  string // empty in memory
	o     Options
	write *sql.DB // one connection; nil if it is read only
	read  *sql.DB // the same as write in memory
	still bool    // nobody can change the file
}

// open opens the file.
func (f *file) open(ctx context.Context) (err error) {
	if !f.o.ReadOnly || f.path == "" {
		is, err := f.prepare(ctx)
		if err != nil {
			return err
		}
		f.marks, f.pads = is.version >= withMarks, is.version >= withPadding
		for into, query := range map[**sql.Stmt]string{&f.add: addLines, &f.answer: addAnswer, &f.lent: lentTo} {
			if *into, err = f.write.PrepareContext(ctx, query); err != nil {
				return err
			}
		}
	}
	if f.path == "" {
		f.read = f.write
		return nil
	}
	if f.read, err = f.connect(f.reading()); err != nil {
		return err
	}
	f.read.SetMaxOpenConns(4)
	is, err := identity(ctx, f.read)
	if err == nil {
		err = is.check()
	}
	if err == nil && is == (ident{}) {
		err = errNoJournal // it is empty
	}
	return err
}

// look refuses a file before anything opens it that could change it, and
// reports whether there are runs in it.
func (d *database) look(ctx context.Context) (used bool, err error) {
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
		return false, nil // nothing was written to it yet
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

// probe reports whether there are runs in a file. It opens the file to be read
// only, except to roll back a transaction in which another process was killed.
func (d *database) probe(ctx context.Context) (used bool, err error) {
	used, err = d.hasRuns(ctx, d.reading())
	switch {
	case d.alone(err):
		d.still = true
		return d.hasRuns(ctx, d.reading())
	case !d.o.ReadOnly && code(err) == sqlite3.SQLITE_READONLY_ROLLBACK:
		err = d.patiently(ctx, func() error {
			used, err = d.hasRuns(ctx, url.Values{"mode": {"rw"}})
			return err
		})
	}
	return used, err
}

// hasRuns reports whether there are runs in a file, which it opens with these settings.
func (d *database) hasRuns(ctx context.Context, settings url.Values) (used bool, err error) {
	db, err := d.connect(settings)
	if err != nil {
		return false, err
	}
	defer db.Close() //nolint:errcheck // it only read
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

// prepare opens the file to be written, and makes or migrates it if need be.
func (d *database) prepare(ctx context.Context) (is ident, err error) {
	if err := d.create(); err != nil {
		return is, err
	}
	settings := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(0)"}} // see patiently
	if d.o.pages > 0 {
		settings.Add("_pragma", fmt.Sprintf("max_page_count(%d)", d.o.pages))
	}
	settings.Add("_pragma", "auto_vacuum(incremental)") // of a new file
	settings.Add("_pragma", "wal_autocheckpoint(4000)") // pages: a file is brought up to date less often
	if d.write, err = d.connect(settings); err != nil {
		return is, err
	}
	d.write.SetMaxOpenConns(1)
	if err := d.patiently(ctx, func() error { return d.migrate(ctx) }); err != nil {
		return is, err
	}
	if err := d.patiently(ctx, func() error { return d.ahead(ctx) }); err != nil {
		return is, err
	}
	if err := d.patiently(ctx, func() (err error) { // others may set up the log of a file that was just made
		is, err = identity(ctx, d.write)
		return err
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

// ahead makes SQLite write ahead of the file.
func (d *database) ahead(ctx context.Context) error {
	var mode string
	if err := d.write.QueryRowContext(ctx, "pragma journal_mode = wal").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" && d.path != "" {
		return fmt.Errorf("the file system does not allow to write ahead (its mode is %q): give a path on a local disk", mode)
	}
	return nil
}

// hurriedWait limits the wait for a locked file once [Options].Hurry is closed.
const hurriedWait = time.Second

// patiently calls do until the file is no longer locked by others, the time limit
// is over, or the context ends. It waits in place of SQLite, which cannot be
// interrupted and polls at fixed times, up to 100 ms apart: a process that writes
// often would hold the lock at nearly every poll.
func (d *database) patiently(ctx context.Context, do func() error) error {
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

// connect returns handles with these settings.
func (d *database) connect(settings url.Values) (*sql.DB, error) {
	for _, p := range []string{"synchronous(full)", "temp_store(memory)", "cell_size_check(true)"} {
		settings.Add("_pragma", p)
	}
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(d.path), OmitHost: true, RawQuery: settings.Encode()}
	if d.path == "" {
		name.Opaque = ":memory:"
	}
	return sql.Open("sqlite", name.String())
}

// reading returns the settings of a handle that only reads.
func (d *database) reading() url.Values {
	if d.still {
		return url.Values{"mode": {"ro"}, "immutable": {"1"}}
	}
	busy := fmt.Sprintf("busy_timeout(%d)", min(d.o.busy, 5*time.Second).Milliseconds()) // only while another process recovers the file
	return url.Values{"mode": {"ro"}, "_pragma": {busy, "query_only(true)"}}
}

// alone reports whether SQLite cannot read a file only because it cannot make
// the files that it needs beside it, and nothing stands there that belongs to the
// file. Then nobody can write there as long as it is so, and it can be read as
// one that nobody changes.
func (d *database) alone(err error) bool {
	if !d.o.ReadOnly || d.still {
		return false
	}
	if c := code(err) & 0xff; c != sqlite3.SQLITE_CANTOPEN && c != sqlite3.SQLITE_READONLY && !errors.Is(d.explain(err), ErrFull) {
		return false
	}
	ahead, err := os.Stat(d.path + "-wal")
	return errors.Is(err, fs.ErrNotExist) || err == nil && ahead.Size() == 0 // which SQLite made before it failed
}

// close closes the handles: the one that writes last, since it then tidies up.
func (f *file) close() (err error) {
	for _, s := range []*sql.Stmt{f.add, f.answer, f.lent} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	for _, db := range []*sql.DB{f.read, f.write} {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}
	return f.explain(err)
}
