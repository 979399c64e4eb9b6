package record

import (
	"context"
	"iter"
	"time"

	"github.com/runteam/runteam/internal/event"
)

// A Store is where runs are recorded. The journal of a team is one.
type Store interface {
	// OpenRun begins a run, or resumes a stored one. The run belongs to this process until its
	// Log is closed; it is an error if another process works on it. A nil Log records nothing.
	OpenRun(ctx context.Context, o Opening) (Log, error)

	// LoadRun reads a stored run, which may belong to another process.
	LoadRun(ctx context.Context, run string) (*History, error)
}

// A PrivateStore is a [Store] with paths that no command of an agent may read: of the file in which it is, and of the
// folder with the workspaces of its runs.
type PrivateStore interface{ Private() []string }

// A WorkspaceKeeper is a [Log] that has folders for the workspaces of its run, which a later
// process finds again.
type WorkspaceKeeper interface{ Workspaces() Workspaces }

// A LeasedLog is a [Log] of a run that another process may take while this one cannot renew its lease.
type LeasedLog interface {
	// Lost is closed then. The run must begin no call, and end those under way.
	Lost() <-chan struct{}
}

// Workspaces are the folders for the workspaces of a run; empty if there are none. Only their
// run makes and uses them.
type Workspaces struct {
	Disk   string
	Memory string // for data that must not be on disk
	Place  WorkspacePlace
}

// An Opening says which run is opened. For a resumed run only Run and Resume are used.
type Opening struct {
	Run    string
	Resume bool
	Name   string // of the team
	Time   time.Time
	Tasks  []event.Planned
	Inputs []Input
	Turn   *SessionTurn // of a run that is a turn of a session; nil of any other
}

// A Log records one run. It is safe for concurrent use.
type Log interface {
	// History returns what earlier processes recorded of a resumed run; nil for a new one.
	History() *History

	// Append adds entries that belong together: after a crash, all of them are stored or none,
	// and only after those of earlier calls. It keeps the slice and does not wait. done is called
	// once, in the order of the calls and never within Append: with nil when the entries are
	// durable. After an error nothing more is stored, and every later done gets that error.
	Append(entries []Entry, done func(error))

	// CachedAnswers yields the reusable answers of other runs under this key, the newest first.
	// An error ends them.
	CachedAnswers(ctx context.Context, key Key) iter.Seq2[*AgentCall, error]

	// Close waits for what was appended, releases the run, and returns the head of its chain
	// of decisions as text; empty if there is none. A second Close does nothing and
	// returns an error.
	Close(ctx context.Context) (head string, err error)
}
