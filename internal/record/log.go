package record

import (
	"context"
	"iter"
	"time"

	"github.com/runteam/runteam/internal/event"
)

// A Store is where runs are recorded. The journal of a team is one.
type Store interface {
	// OpenRun makes a run this process's until its Log is closed: a new one, or one
	// that the store has, which is then resumed. The error says so if another
	// process works on the run. A nil Log records nothing.
	OpenRun(ctx context.Context, o Opening) (Log, error)

	// LoadRun returns what the store has of a run, and claims nothing.
	LoadRun(ctx context.Context, run string) (*History, error)
}

// An Opening says which run is opened. What a resumed run is of the store knows.
type Opening struct {
	Run    string
	Resume bool
	Name   string // of the team
	Time   time.Time
	Tasks  []event.Planned
	Inputs []Input
}

// A Log records one run. It is safe for concurrent use.
type Log interface {
	// History returns what earlier processes recorded of a run that is resumed; nil
	// of a new one.
	History() *History

	// Append takes entries that belong together: after a crash all of them are
	// there or none, and behind what earlier calls brought. It keeps the slice
	// and does not wait. done is called once, in the order of the calls: with nil
	// when the entries are as durable as the log can make them, and never
	// within Append. After an error nothing more is taken, and every later done
	// is given that error.
	Append(entries []Entry, done func(error))

	// CachedAnswers yields the answers of other runs under this key, the newest
	// first, as far as they may be taken: reusable and stored. An error ends them.
	CachedAnswers(ctx context.Context, key Key) iter.Seq2[*AgentCall, error]

	// Close waits for what was appended, releases the run, and returns the head of its chain
	// of decisions as text; empty if there is none. A second Close does nothing and
	// returns an error.
	Close(ctx context.Context) (head string, err error)
}
