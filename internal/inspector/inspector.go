// Package inspector shows and steers the runs of a journal over HTTP.
//
// [New] returns a handler of what its [Options] offer: a page, documents of stored runs, the
// events and the streams of those that work, and the commands that steer them. It knows how to
// carry documents and whom to carry them to, not what is in them: whoever offers a document has
// brought it into the form of its viewer.
//
// Every request needs a token, the right Host and, from a browser, the same origin.
package inspector

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"iter"
	"time"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/steer"
)

// Options say what an inspector offers. The routes of what is nil do not exist.
type Options struct {
	Access  Access
	Viewer  Viewer
	Page    fs.FS  // index.html and the files of /assets; nil serves the API alone
	OpenAPI []byte // the description of the API

	Documents
	Watcher  Watcher
	Streams  Streams
	Steerer  Steerer
	Starter  Starter
	Governor Governor

	// Escape returns a writer that escapes in JSON what could deceive who reads it in a terminal, as
	// all JSON of the command has it. Nil escapes nothing.
	Escape func(io.Writer) io.Writer
}

// A Viewer says who looks, and what that person may do.
type Viewer struct {
	Accepts  label.Classification `json:"accepts"`
	ReadOnly bool                 `json:"readOnly"`
	By       string               `json:"by"` // the user of the computer: who is recorded with each command
	CanStart bool                 `json:"canStart"`
	Version  string               `json:"version"`
}

// Documents are what is read of stored runs, in the form of the viewer. Each method returns a value
// that is written as JSON; a run is named by its ID or a unique beginning of it.
type Documents struct {
	Runs      Runs
	Receipts  Receipts
	Questions Questions
	Graph     Graph
	Flow      Flow
	Handoffs  Handoffs
	Comparer  Comparer
	Exporter  Exporter
}

// A Page of runs is asked for: at most Limit, those before a run.
type Page struct {
	Limit  int
	Before string
}

// Runs has the runs of the journal and what `runteam show` prints of each.
type Runs interface {
	List(ctx context.Context, p Page) (any, error)
	Run(ctx context.Context, run string) (any, error)
	Task(ctx context.Context, run, task string) (any, error)
	Usage(ctx context.Context, run string) (any, error)
	Artifacts(ctx context.Context, run string) (any, error)
}

// Receipts has what `runteam explain` prints: of the run, or of one task, and if contains is not
// empty, where that text is and who introduced it.
type Receipts interface {
	Receipts(ctx context.Context, run, task, contains string) (any, error)
}

// Questions has the open questions of a run, or of all if run is empty.
type Questions interface {
	Open(ctx context.Context, run string) (any, error)
}

// Graph has the layout of the tasks of a run, with loops and lists folded unless their title is
// expanded.
type Graph interface {
	Graph(ctx context.Context, run string, expand []string) (any, error)
}

// Flow has who could see what, before the run: of all pairs, or of one if from and to are not empty.
type Flow interface {
	Flow(ctx context.Context, run, from, to string) (any, error)
}

// Handoffs has the decisions of the gate about a task, or about an edge.
type Handoffs interface {
	Handoffs(ctx context.Context, run string, of HandoffQuery) (any, error)
}

// A HandoffQuery names a task, or a pair of agents.
type HandoffQuery struct{ Task, From, To string }

// Comparer compares a run with another, or with its replay if other is "replay".
type Comparer interface {
	Compare(ctx context.Context, run, other string) (any, error)
}

// Exporter writes a run as one HTML file, and returns the name of the file.
type Exporter interface {
	Export(ctx context.Context, run string) (name string, html []byte, err error)
}

// A Watcher has the events of a run, in the form of the viewer.
type Watcher interface {
	// Watch yields the events after a position, those of the journal first, in batches. If follow, it
	// waits for more until the run has ended; else it ends with the last event of the journal. The
	// first batch comes at once, and an empty one now and then says that nothing has happened. An
	// error ends it.
	Watch(ctx context.Context, run string, after int, follow bool) iter.Seq2[[]Event, error]
}

// An Event is one event of a run, as `runteam run --events` writes it.
type Event struct {
	Position int // among all events of the run, from 1 over all of its processes
	Type     event.Type
	Data     json.RawMessage // escaped as by [Options].Escape
}

// Streams has what models write in runs of this process.
type Streams interface {
	// Subscribe returns what is written in a run from now on, and first what has been written of
	// each running task. The error is a not_found [Error] if the run is not of this process.
	Subscribe(ctx context.Context, run string) (Subscription, error)
}

// A Subscription yields pieces of what models write. A subscriber who is slow gets several pieces
// as one.
type Subscription interface {
	// Next waits for pieces and returns all that wait. An empty result says that the run has ended.
	Next(ctx context.Context) ([]event.Delta, error)
	Close()
}

// A Steerer sends commands and answers to runs, as the user of the computer.
type Steerer interface {
	// Steer sends a command, whose By is set, and returns when the run has taken it.
	Steer(ctx context.Context, run string, c steer.Command) (Taken, error)
	Answer(ctx context.Context, run, question string, a Answer) (taken bool, err error)
}

// Taken is a command that a run has taken.
type Taken struct {
	Command steer.Kind `json:"command"`
	By      string     `json:"by"`
	Time    time.Time  `json:"time"`
}

// An Answer to a question: the fields of its form, or a text.
type Answer struct {
	Fields map[string]any `json:"fields"`
	Text   string         `json:"text"`
	Reason string         `json:"reason"`
}

// A Starter starts runs of the served specs in this process.
type Starter interface {
	Specs(ctx context.Context) (any, error)
	Start(ctx context.Context, s Start) (run string, err error)
}

// A Start says which served spec is run, and with what.
type Start struct {
	Spec   string            `json:"spec"`
	Inputs map[string]string `json:"inputs"`
	Params map[string]string `json:"params"`
	Goal   *string           `json:"goal"`
	Reason string            `json:"reason"`
}

// A Governor has the policy of a run, and replaces it. An empty run means the one live run.
type Governor interface {
	Rules(ctx context.Context, run string) (doc any, digest string, err error)
	Pair(ctx context.Context, run, from, to string) (any, error)
	// Replace replaces the policy with this digest, and returns the digest of the new one.
	Replace(ctx context.Context, run, digest string, p Policy) (string, error)
}

// A Policy replaces that of a run: in the form of the spec's policy.
type Policy struct {
	Policy json.RawMessage `json:"policy"`
	Reason string          `json:"reason"`
	By     string          `json:"-"`
}
