// Package journal stores runs durably, so that later processes can read and resume them:
//
//	j, err := journal.Open("runs.db", journal.Options{})
//	…
//	r, err := j.Begin(ctx, journal.Info{Run: "r1"})
//	r.Append(entries, func(err error) { … }) // when they are durable
//	head, err := r.End(ctx)
//
// A [Journal] is one file, or the tables of a [Database], with many runs. Entries of several runs become durable in one
// commit. A run is stored as lines of JSON in the form of a trace, in which the chain of
// the gate's decisions covers all other lines. Stored lines are never changed; only
// [Journal.Remove] removes whole runs.
//
// A journal stores results whole. Values above confidential are encrypted under
// [Options.Key]; without a key, only a keyed digest of them is stored.
package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed reports that a journal or a run is closed.
var ErrClosed = errors.New("the journal is closed")

// ErrReadOnly reports a write to a journal that was opened read-only.
var ErrReadOnly = errors.New("the journal was opened read-only")

// A Journal stores runs. It is safe for concurrent use. [Open] and [InMemory] return one,
// which the caller closes. Methods of a Journal and of a [Run] panic if their context is nil.
type Journal struct {
	*archive
	o       Options
	writer  *writer // nil if it is read-only
	closing *closing
}

// A closing closes a journal once.
type closing struct {
	sync.Once
	err error
}

// An archive reads stored runs.
type archive struct {
	*catalog
	vault *vault
}

// A catalog lists runs and finds them by their IDs.
type catalog struct {
	*place
	store  *store
	me     Holder
	now    func() time.Time
	views  []View    // a run is there if one of them has it
	labels *sync.Map // of runs that are not stored with theirs, by [labelKey]
}

// A place names the journal in errors.
type place struct {
	path   string // empty in memory
	closed atomic.Bool
}

// New returns a journal in an open database, whose name errors have. digestKey has 32 bytes and belongs to the journal for
// as long as it lasts. After an error the database is closed.
func New(name string, db Database, digestKey []byte, o Options) (j *Journal, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	if o, err = o.checked(); err != nil {
		return nil, err
	}
	if o.Workspaces != "" && !o.ReadOnly {
		if err := CheckWorkspaces(o.Dir, o.Workspaces); err != nil {
			return nil, fmt.Errorf("Workspaces: %w", err)
		}
	}
	sealer, err := newSealer(o.Key, rand.Reader)
	if err != nil {
		return nil, err
	}
	s, err := newStore(context.Background(), db, o)
	if err != nil {
		return nil, err
	}
	v := newVault(o, sealer, digestKey)
	c := &catalog{place: &place{path: name}, store: s, me: *o.Holder, now: o.Now, views: whole, labels: &sync.Map{}}
	j = &Journal{archive: &archive{catalog: c, vault: v}, o: o, closing: &closing{}}
	if !o.ReadOnly {
		j.writer = newWriter(j)
	}
	return j, nil
}

// Close waits until all that was appended is durable, releases the runs that were not
// closed, and closes the file or the connections. It may be called again.
func (j *Journal) Close() error {
	j.closing.Do(func() {
		var lost error
		if j.writer != nil {
			lost = j.writer.stop()
			j.writer.opening.Wait()
		}
		j.closing.err = errors.Join(lost, j.fail("close", j.store.db.Close()))
		j.closed.Store(true)
	})
	return j.closing.err
}

// Path returns the absolute path of the file of the journal, or the URL of its database without user and settings; empty in
// memory.
func (j *Journal) Path() string { return j.store.db.Identity() }

// Private returns the paths that no command of an agent may read: of the file, if there is one, and of the folders with the
// workspaces of all runs; none in memory.
func (j *Journal) Private() []string {
	private := j.workspaces()
	if file := fileOf(j.Path()); file != "" {
		private = append([]string{file}, private...)
	}
	return private
}

// Masked returns the stored form of a fingerprint: a digest of it under the digest key of
// the journal, which reveals nothing of the spec without that key. An [Info] that the
// journal returns has it in this form. A masked or empty fingerprint is returned as it is.
func (a *archive) Masked(fingerprint string) string { return a.vault.masked(fingerprint) }

// fail adds the operation and the path to an error. It returns nil for nil.
func (p *place) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	if ours, ok := errors.AsType[*Error](err); ok && ours.Path == p.path {
		return err
	}
	if p.closed.Load() { // whatever the database calls that
		err = ErrClosed
	}
	return &Error{Op: op, Path: p.path, Err: err}
}

// writable returns an error if the journal is read-only, or has an earlier form: a program that knows only that form could
// not read what is written. Runs can be removed from it.
func (j *Journal) writable() error {
	switch {
	case j.writer == nil:
		return ErrReadOnly
	case !j.store.commands.has(version):
		return errOldForm
	}
	return nil
}

// An Error is a failed operation on a journal.
type Error struct {
	Op   string // such as "open", "write", "read"
	Path string // of the file, or the URL of the database; empty in memory
	Err  error
}

func (e *Error) Error() string {
	where := "the journal"
	if e.Path != "" {
		where += " " + e.Path
	}
	return fmt.Sprintf("%s %s: %v", e.Op, where, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ended returns the cause of the end of a context; nil if it has not ended.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}
