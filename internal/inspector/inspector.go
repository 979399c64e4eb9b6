// Package inspector shows and steers the runs of a journal over HTTP.
//
// [New] returns an HTTP handler for what its [Options] offer: a page, documents of stored runs, events
// and streams of live runs, and commands that steer them. The package decides who may send a request. It
// does not look into documents: their source withholds what the viewer may not see.
//
// Every request needs a token and the Host of this server and, from a browser, the same origin.
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

// Options say what an inspector offers, and to whom.
type Options struct {
	Access  Access
	Page    fs.FS  // index.html and the files of /assets; nil serves the API alone
	OpenAPI []byte // the description of the API

	// Offer is what is offered to somebody.
	Offer

	// For returns what of it is offered to a sender now. An error is the answer to the request. Nil offers all of it to everyone.
	For func(Sender) (*Offer, error)

	ReadOnly bool // nobody changes anything

	// Ready returns why the server cannot answer, such as that its journal is away. Nil always can.
	Ready func(context.Context) error

	// Drain is closed when the server is to stop: it then refuses requests that start, resume or steer runs. Nil never is.
	Drain <-chan struct{}

	// Escape returns a writer that escapes characters of JSON that could mislead a reader in a
	// terminal. Nil escapes nothing.
	Escape func(io.Writer) io.Writer
}

// An Offer is what an inspector offers to a sender. What is nil has no routes.
type Offer struct {
	Viewer Viewer
	Documents
	Watcher  Watcher
	Streams  Streams
	Steerer  Steerer
	Unseen   Unseen
	Answerer Answerer
	Starter  Starter
	Governor Governor

	// Grants are equal for equal offers. A stream ends if what its sender is offered becomes something else.
	Grants string
}

// A Viewer says what the viewer of an inspector may see and do.
type Viewer struct {
	Accepts   label.Classification `json:"accepts"`
	By        string               `json:"by"` // who is recorded as the sender of commands: the person, or the user of the computer
	CanStart  bool                 `json:"canStart"`
	CanSteer  bool                 `json:"canSteer"`
	CanAnswer bool                 `json:"canAnswer"`
	Version   string               `json:"version"`

	CanStopUnseen bool `json:"canStopUnseen"` // the viewer pauses and cancels runs that are not there for them
	CanSignOut    bool `json:"canSignOut"`    // the browser has a session that a token began
}

// Documents describe stored runs as the viewer may see them. Each method returns a value that is written
// as JSON. A run is given by its ID or a unique prefix of it.
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

// A Page selects at most Limit runs of a list: the first ones, or those after the run Before. Filter has the values of terms
// that the runs must fit, by the names that [Runs].Filters returns.
type Page struct {
	Limit  int
	Before string
	Filter map[string]string
}

// Runs lists the runs of the journal, and returns the documents of `runteam show` and `runteam artifacts`.
type Runs interface {
	Filters() []string
	List(ctx context.Context, p Page) (any, error)
	Run(ctx context.Context, run string) (any, error)
	Task(ctx context.Context, run, task string) (any, error)
	// Blocks returns how the result of a task is shown, or the answer of the run if task is empty.
	Blocks(ctx context.Context, run, task string) (any, error)
	Usage(ctx context.Context, run string) (any, error)
	Artifacts(ctx context.Context, run string) (any, error)
	Session(ctx context.Context, run string) (any, error) // the session of a chat that the run is a turn of
}

// Receipts returns the document of `runteam explain` for a run or one task. If contains is not empty, it
// says where that text is and who introduced it.
type Receipts interface {
	Receipts(ctx context.Context, run, task, contains string) (any, error)
}

// Questions lists the open questions of a run, or of all runs if run is empty. Those of runs that are not there for
// the viewer, who may read the question, name no run.
type Questions interface {
	Open(ctx context.Context, run string) (any, error)
}

// Graph returns the tasks of a run and what each reads.
type Graph interface {
	Graph(ctx context.Context, run string) (any, error)
}

// Flow says who could see what by the plan of a run and its newest policy.
type Flow interface {
	Flow(ctx context.Context, run string, of FlowQuery) (any, error)
}

// A FlowQuery selects a part of a flow, if From or To is not empty.
type FlowQuery struct{ From, To string }

// Handoffs lists the decisions of the gate about a task or between a pair of agents.
type Handoffs interface {
	Handoffs(ctx context.Context, run string, of HandoffQuery) (any, error)
}

// A HandoffQuery names a task, or a pair of agents.
type HandoffQuery struct{ Task, From, To string }

// Comparer compares a run with another.
type Comparer interface {
	Compare(ctx context.Context, run, other string) (any, error)
}

// Exporter writes a run as one HTML file, and returns the name of the file.
type Exporter interface {
	Export(ctx context.Context, run string) (name string, html []byte, err error)
}

// A Watcher yields the events of a run as the viewer may see them.
type Watcher interface {
	// Watch yields the events after a position in batches, first those that the journal has. If follow
	// is true, it then waits for new ones until the run has ended. The first batch comes at once. An
	// empty batch, from time to time, means that nothing has happened. An error ends the sequence.
	Watch(ctx context.Context, run string, after int, follow bool) iter.Seq2[[]Event, error]
}

// An Event is one event of a run, as `runteam run --events` writes it.
type Event struct {
	Position int // from 1, counted over all processes of the run
	Type     event.Type
	Data     json.RawMessage // already escaped, see [Options].Escape
}

// Streams yields what models are writing in runs of this process.
type Streams interface {
	// Subscribe subscribes to a run. The first pieces have what the running tasks have written so far. If no process
	// works on the run, the subscription has ended. If another process does, the error is an [Error] with the code
	// NotFound.
	Subscribe(ctx context.Context, run string) (Subscription, error)
}

// A Subscription yields pieces of what models write. A slow subscriber gets several pieces as one.
type Subscription interface {
	// Next returns all pieces since the last call, and waits if there are none. An empty result means that
	// the run has ended.
	Next(ctx context.Context) ([]event.Delta, error)
	Close()
}

// A Steerer sends commands to runs.
type Steerer interface {
	// Steer sends a command, whose By is set, and returns when the run has taken it.
	Steer(ctx context.Context, run string, c steer.Command) (Taken, error)
}

// Unseen lists the runs that the viewer may pause and cancel without seeing them.
type Unseen interface {
	Unseen(ctx context.Context) (any, error)
}

// An Answerer answers questions of runs as the viewer.
type Answerer interface {
	// Answer answers a question of a run; with an empty run, one that names no run.
	Answer(ctx context.Context, run, question string, a Answer) (taken bool, err error)
}

// Taken is a command that a run has taken.
type Taken struct {
	Command steer.Kind `json:"command"`
	By      string     `json:"by"`
	Time    time.Time  `json:"time"`
	Waits   bool       `json:"waits,omitempty"` // for the worker that takes the run
}

// An Answer to a question: the fields of its form, or a text.
type Answer struct {
	Fields map[string]any `json:"fields"`
	Text   string         `json:"text"`
	Reason string         `json:"reason"`
}

// A Starter starts runs of the served specs in this process, or stores them for workers.
type Starter interface {
	Specs(ctx context.Context) (any, error)
	Start(ctx context.Context, s Start) (run string, err error)
	// Submit stores a run for a worker, unless it was submitted before.
	Submit(ctx context.Context, s Start, q Queue) (run string, added bool, err error)

	// PolicyOfSpec returns the policy of a spec whose policy has a file of its own, and its digest.
	PolicyOfSpec(ctx context.Context, spec string) (doc any, digest string, err error)
	// ReplacePolicyOfSpec replaces the policy of a spec that has this digest, for later runs, and returns the digest of the new one.
	ReplacePolicyOfSpec(ctx context.Context, spec, digest string, p Policy) (string, error)
	// Say sends a message of a chat, and returns its turn once that has begun.
	Say(ctx context.Context, m Message) (any, error)
	// Estimate says what a run could call and cost. It need not have all its inputs.
	Estimate(ctx context.Context, s Start) (any, error)
}

// A Message is what a person says in a chat: in the session of a run, or in a new one with a served spec.
type Message struct {
	Spec    string `json:"spec"`
	Session string `json:"session"`
	Text    string `json:"text"`
	Label   string `json:"label"` // empty means internal
}

// A Start selects a served spec and gives the inputs and parameters of its run.
type Start struct {
	Spec   string            `json:"spec"`
	Inputs map[string]string `json:"inputs"`
	Params map[string]string `json:"params"`
	Goal   *string           `json:"goal"`
	Reason string            `json:"reason"`
	Queue  *Queue            `json:"queue"` // nil begins the run in this process
}

// A Queue says when a worker may take a run.
type Queue struct {
	ID       string    `json:"id"` // names the run among what the sender submits for the spec; may be empty
	At       time.Time `json:"at"` // zero means at once
	Priority int       `json:"priority"`
	By       string    `json:"-"` // who submits it
}

// A Governor returns and replaces the policy of a run. An empty run means the only live run.
type Governor interface {
	// Rules returns the policy with a digest, or the newest if it is empty, and its digest.
	Rules(ctx context.Context, run, policy string) (doc any, digest string, err error)
	Pair(ctx context.Context, run, from, to string) (any, error)
	// Replace replaces the policy with this digest, and returns the digest of the new one.
	Replace(ctx context.Context, run, digest string, p Policy) (string, error)
}

// A Policy is a new policy for a run, or for later runs of a spec.
type Policy struct {
	Policy json.RawMessage `json:"policy"` // in the format of the policy section of a spec file
	Text   string          `json:"text"`   // or the same as YAML or JSON
	Reason string          `json:"reason"`
	By     string          `json:"-"`
}
