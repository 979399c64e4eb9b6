// Package journal decides what of a run has been made durable, and what a
// later process finds of it.
//
// A [Journal] is one file with many runs. A [Run] takes entries while the run
// goes on and says when they are on the disk; many entries of many runs become
// durable in one commit. What it keeps of a run reads as lines of JSON, in the
// form of a trace: the decisions of the gate are a chain that covers all of
// them. Nothing that was written is ever changed; only [Journal.Remove] takes
// whole runs away.
//
// A journal is data to keep, not a log: a result stands in it as it came. What
// is above confidential is encrypted under [Options.Key], and without a key
// only a keyed digest of it is kept.
package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed reports that a journal, or a run of it, takes nothing any more.
var ErrClosed = errors.New("the journal is closed")

// ErrReadOnly reports that something was to be written to a journal that was
// opened to be read.
var ErrReadOnly = errors.New("the journal was opened to be read only")

// A Journal stores runs. It is safe for concurrent use. [Open] and [InMemory] make one;
// whoever made it closes it. Methods of a Journal and of a [Run] panic if their context
// is nil.
type Journal struct {
	*archive
	o      Options
	writer *writer // nil if it is read only

	closing  sync.Once
	closeErr error
}

// An archive reads what is stored of runs.
type archive struct {
	*catalog
	vault *vault
}

// A catalog lists runs and finds them by their IDs.
type catalog struct {
	place
	store *file
	me    Holder
	now   func() time.Time
}

// A place says in errors which journal they are about.
type place struct {
	path   string // empty in memory
	closed atomic.Bool
}

// newJournal returns a journal in a store.
func newJournal(path string, o Options, s *file, v *vault) *Journal {
	c := &catalog{place: place{path: path}, store: s, me: *o.Holder, now: o.Now}
	j := &Journal{archive: &archive{catalog: c, vault: v}, o: o}
	if !o.ReadOnly {
		j.writer = newWriter(j)
	}
	return j
}

// Close waits for what was appended, gives up the runs that were not closed, and
// closes the file. It may be called again.
func (j *Journal) Close() error {
	j.closing.Do(func() {
		var lost error
		if j.writer != nil {
			lost = j.writer.stop()
			j.writer.opening.Wait()
		}
		j.closeErr = errors.Join(lost, j.fail("close", j.store.close()))
		j.closed.Store(true)
	})
	return j.closeErr
}

// Masked returns the form in which the journal keeps a fingerprint: a digest of
// it under the digest key of the journal, so that nobody else can tell by it what
// a spec says. [Info] has it in this form wherever the journal gives it back. A
// fingerprint in this form is returned as it is, and of an empty one nothing.
func (a *archive) Masked(fingerprint string) string { return a.vault.masked(fingerprint) }

// fail returns an error with what was being done and where; nil stays nil.
func (p *place) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	if ours, ok := errors.AsType[*Error](err); ok && ours.Path == p.path {
		return err
	}
	if p.closed.Load() { // whatever the store calls that
		err = ErrClosed
	}
	return &Error{Op: op, Path: p.path, Err: err}
}

// writable returns the error of whoever would write to a journal that cannot be.
func (j *Journal) writable() error {
	if j.writer == nil {
		return ErrReadOnly
	}
	return nil
}

// An Error says what could not be done with a journal, and why.
type Error struct {
	Op   string // such as "open", "write", "read"
	Path string // of the file; empty in memory
	Err  error
}

func (e *Error) Error() string {
	where := "the journal"
	if e.Path != "" {
		where += " " + e.Path
	}
	return fmt.Sprintf("%s %s: %v", e.Op, where, e.Err)
}

// Unwrap returns what went wrong.
func (e *Error) Unwrap() error { return e.Err }

// ended returns why a context ended, if it did.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}
