// Package journal stores the runs of a team in a file, so that a later process can
// resume, replay or reuse them:
//
//	j, err := journal.Open("runs.db", journal.Options{})
//	…
//	res, err := tm.RunTasks(ctx, tasks, &team.RunOptions{RunID: "audit", Journal: j})
//	res, err = tm.Resume(ctx, "audit", &team.RunOptions{Tasks: tasks, Journal: j}) // after a crash
//
// A journal is one SQLite file that many processes may use at once; each run belongs to
// one process at a time. Package journal/postgres opens one in a database that several
// hosts share. A journal stores results whole: values above confidential, or from
// [Options.EncryptFrom] on, are encrypted under [Options.Key], and without a key only a
// keyed digest of them is stored. A program links SQLite only if it imports this package.
package journal

import (
	"context"
	"log/slog"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
)

// Options say how a journal stores runs. The zero value stores only digests of values
// above confidential, and its chain of gate decisions has no key.
type Options struct {
	Key []byte // 32 bytes that encrypt values above confidential; see [ParseKey]

	// EncryptFrom is the lowest label of values that are encrypted under Key, for a journal
	// that others can read; nil means secret. It holds for what is written from now on, and
	// needs a Key.
	EncryptFrom *label.Classification

	AuditKey []byte       // at least 16 bytes that sign the chain of gate decisions
	ReadOnly bool         // nothing is written; the folder need not be writable
	Logger   *slog.Logger // nil discards

	// Workspaces is a folder for the workspaces of runs, which is created if it does not exist. Other journals, and
	// programs on other hosts that resume runs, may share it. Empty means a folder beside the file, or of a journal in a
	// database one in the user's cache.
	Workspaces string
}

// A Journal stores runs, and is what [team.RunOptions] takes as Journal. It is safe for
// concurrent use. Close it when no run uses it any more.
//
// [team.RunOptions]: https://pkg.go.dev/github.com/runteam/runteam/team#RunOptions
type Journal struct{ stored *journal.Journal }

// Open opens the journal in a file, which is created if it does not exist, with mode
// 0600. The folder must exist. Beside the file there is path.key, the key of the
// digests, without which no run can be resumed. The error wraps one of this package's
// variables where these apply.
func Open(path string, o Options) (*Journal, error) {
	return OpenWith(o, func(o journal.Options) (*journal.Journal, error) { return journal.Open(path, o) })
}

// OpenWith is for [postgres.Open], and opens a journal elsewhere than in a file. Its types are opaque.
//
// [postgres.Open]: https://pkg.go.dev/github.com/runteam/runteam/journal/postgres#Open
func OpenWith(o Options, open func(journal.Options) (*journal.Journal, error)) (*Journal, error) {
	j, err := open(journal.Options{Key: o.Key, EncryptFrom: o.EncryptFrom, AuditKey: o.AuditKey, ReadOnly: o.ReadOnly, Logger: o.Logger, Workspaces: o.Workspaces})
	if err != nil {
		return nil, err
	}
	return &Journal{j}, nil
}

// InMemory returns a journal that ends with the process, for tests.
func InMemory() *Journal { return &Journal{journal.InMemory(journal.Options{})} }

// ParseKey reads an encryption key: 64 hex digits or 44 characters of base64, with an
// optional line feed. `openssl rand -hex 32` makes one.
func ParseKey(text []byte) ([]byte, error) { return journal.ParseKey(text) }

// Path returns the absolute path of the file of the journal, empty for one in memory; of a database the address without
// user and settings.
func (j *Journal) Path() string { return j.stored.Path() }

// Private is for [team.Team] and returns the paths that no command of an agent may read.
//
// [team.Team]: https://pkg.go.dev/github.com/runteam/runteam/team#Team
func (j *Journal) Private() []string { return j.stored.Private() }

// Close waits until everything that the runs appended is durable, releases the leases of
// unfinished runs, and closes the file or the connections. It may be called again.
func (j *Journal) Close() error { return j.stored.Close() }

// OpenRun is for [team.Team] and begins or resumes a run. Its types are opaque.
//
// [team.Team]: https://pkg.go.dev/github.com/runteam/runteam/team#Team
func (j *Journal) OpenRun(ctx context.Context, o record.Opening) (record.Log, error) {
	return j.stored.OpenRun(ctx, o)
}

// LoadRun is for [team.Team] and reads a run that is replayed. Its type is opaque.
//
// [team.Team]: https://pkg.go.dev/github.com/runteam/runteam/team#Team
func (j *Journal) LoadRun(ctx context.Context, run string) (*record.History, error) {
	return j.stored.LoadRun(ctx, run)
}

// UpdateLimits is for [limit.Group.Share], by which all processes that use the journal share the limits of endpoints.
//
// [limit.Group.Share]: https://pkg.go.dev/github.com/runteam/runteam/llm/limit#Group.Share
func (j *Journal) UpdateLimits(ctx context.Context, endpoint string, update func(now time.Time, stored []byte) []byte) error {
	return j.stored.UpdateLimits(ctx, endpoint, update)
}

// A Run summarizes a stored run.
type Run struct {
	ID      string
	Name    string    // of the team
	Status  string    // how it ended; "running", "paused" or "interrupted" if it did not
	Started time.Time // when its first process began
	Ended   time.Time // zero if it did not end
	Session string    // of which it is a turn; empty if it is none
	Turn    int       // which, from 1
}

// Runs returns all runs, the newest first.
func (j *Journal) Runs(ctx context.Context) ([]Run, error) {
	list, err := j.stored.Newest(ctx, "", 1<<31-1)
	if err != nil {
		return nil, err
	}
	runs := make([]Run, len(list))
	for i := range list {
		r := &list[i]
		runs[i] = Run{ID: r.Run, Name: r.Name, Status: r.Status, Started: r.Started, Ended: r.Ended, Session: r.Session, Turn: r.Turn}
	}
	return runs, nil
}

// Result returns the last result of a task, as the input of another run: pass it on in
// [team.Input]. The task is named by its title or ID; the run by its ID or the first
// digits of it. What the policy of that run withheld from its user is left out. The
// error says why there is no result.
//
// [team.Input]: https://pkg.go.dev/github.com/runteam/runteam/team#Input
func (j *Journal) Result(ctx context.Context, run, task string) (*envelope.Envelope, error) {
	return j.stored.Result(ctx, run, task)
}

// LoadSession is for [team.Team] and reads the turns of a session. Its types are opaque.
//
// [team.Team]: https://pkg.go.dev/github.com/runteam/runteam/team#Team
func (j *Journal) LoadSession(ctx context.Context, run string) ([]record.StoredTurn, error) {
	return j.stored.LoadSession(ctx, run)
}

// Remove removes the runs that began before a time, except those that a process works on or a worker is to take. A session
// is removed as a whole, once its last turn began before that time.
// It returns the IDs of the removed runs, newest first; if it fails, the runs removed so
// far. A file shrinks by the space that they used.
func (j *Journal) Remove(ctx context.Context, before time.Time) (runs []string, err error) {
	runs, _, err = j.stored.Remove(ctx, before)
	return runs, err
}

// What can be wrong with a journal or a run in it. Errors of this package wrap these.
var (
	ErrClosed     = journal.ErrClosed     // the journal is closed
	ErrReadOnly   = journal.ErrReadOnly   // the journal was opened read-only
	ErrLeased     = journal.ErrLeased     // another process works on the run, or has taken it over
	ErrUnknownRun = journal.ErrUnknownRun // no run has this ID, or several have IDs that begin so
	ErrNoKey      = journal.ErrNoKey      // a value is encrypted under another key
	ErrFull       = journal.ErrFull       // the disk is full
	ErrNoSession  = journal.ErrNoSession  // the run is no turn of a session
	ErrLocked     = journal.ErrLocked     // another process has locked the file for too long
	ErrCorrupt    = journal.ErrCorrupt    // the journal is damaged
	ErrGone       = journal.ErrGone       // the file was removed or replaced while it was open
	ErrAway       = journal.ErrAway       // the server of the database could not be reached for too long

	ErrNoQuestion    = journal.ErrNoQuestion // the run has no such question, or does not ask it any more
	ErrAnswered      = journal.ErrAnswered   // the question was answered before; the first answer counts
	ErrAnswerForm    = journal.ErrAnswerForm // the answer is empty or does not match the schema
	ErrAnswerer      = record.ErrAnswerer    // By is none of the users of the question
	ErrAnswerRefused = journal.ErrRefused    // the process that works on the run does not take the answer
)
