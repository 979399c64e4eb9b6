package trace

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
)

// ErrClosed reports a call of a closed [Writer] or of closed [Lines].
var ErrClosed = errors.New("the trace is closed")

// Options describe the run of a trace.
type Options struct {
	Run    string    // ID of the run; empty means that of the first event or prompt
	Name   string    // of the team
	Time   time.Time // when the run began
	Tasks  []Task    // of the spec, in the order written
	Inputs []Input   // of the spec, and those that flags add

	Key      []byte     // of the chain of decisions; without one, anyone can compute the chain
	Previous audit.Head // of the chain that this one follows; zero means none
}

// A Writer writes the record of one run as lines of JSON: a head, then each decision and each
// prompt before it is sent, the events, and the result. The decisions are a chain, which
// covers the other lines too and has the last line (see package audit). It is safe for
// concurrent use. After an error it writes nothing, and every later call returns that error.
// [Lines] are for programs that do not store the lines in an [io.Writer].
type Writer struct {
	mu     sync.Mutex // guards all below
	w      io.Writer
	lines  *Lines
	closed bool
}

// NewWriter returns a writer of a trace. It writes the head of the file with the first line,
// when the ID of the run is known.
func NewWriter(w io.Writer, o Options) *Writer { return &Writer{w: w, lines: NewLines(o)} }

// Event writes an event, as a subscriber of a run. It omits the receipt, which the prompt has.
// The next call with an error result returns its error. It writes nothing after Close.
func (t *Writer) Event(e event.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed && t.lines.Event(e) == nil {
		_ = t.flush(false) // kept
	}
}

// Record writes the decisions about a prompt, and the prompt. When it returns nil they are on
// disk, if the writer has a method Sync as files have. After an error the prompt must not be
// sent.
func (t *Writer) Record(_ context.Context, r record.Prompt) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.lines.Record(r); err != nil {
		return err
	}
	return t.flush(true)
}

// Close writes the result, which may be nil, and the closing line of the chain, and returns
// the head of the chain, or none with an error. The result is written as JSON and must be in
// the form for the caller. A second Close returns [ErrClosed] or the first error. Close does
// not close the underlying writer.
func (t *Writer) Close(result any, at time.Time) (head audit.Head, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if result != nil {
		err = t.lines.Result(result)
	}
	if err == nil {
		head, err = t.lines.Close(at)
	}
	if err == nil {
		err = t.flush(true)
	}
	if err != nil {
		head = audit.Head{}
	}
	return head, err
}

// flush writes the lines that were added, in one write.
func (t *Writer) flush(durably bool) error {
	_, err := t.w.Write(t.lines.Take())
	if s, ok := t.w.(interface{ Sync() error }); ok && durably && err == nil {
		err = s.Sync()
	}
	return t.lines.keep(err)
}

// runOf returns the ID of the run of a record.
func runOf(r record.Prompt) string {
	if r.Prompt != nil {
		return r.Prompt.Receipt.Run
	}
	for _, h := range r.Handoffs {
		return runIn(h.Session)
	}
	return ""
}
