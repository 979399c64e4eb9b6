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

// ErrClosed is what a [Writer] returns, and [Lines] do, once it was closed.
var ErrClosed = errors.New("the trace is closed")

// Options say what a trace is of.
type Options struct {
	Run    string    // id of the run; empty means that of the first event or prompt
	Name   string    // of the team
	Time   time.Time // when the run began
	Tasks  []Task    // of the spec, in the order written
	Inputs []Input   // of the spec, and those that flags add

	Key      []byte     // of the decisions' chain; none means that anybody can compute it
	Previous audit.Head // of the chain before, if this one follows it; zero means none
}

// A Writer writes the record of one run as lines of JSON: what the run is,
// then each decision and each prompt before it is sent, the events as they
// come, and the result. The decisions are a chain, which covers the other
// lines too and has the last line (see package audit). It is safe for
// concurrent use. The first error is kept: nothing is written after it, and
// every later call that returns an error returns that one. Whoever keeps lines
// elsewhere than behind an [io.Writer] uses [Lines].
type Writer struct {
	mu     sync.Mutex // guards all below
	w      io.Writer
	lines  *Lines
	closed bool
}

// NewWriter returns a writer of a trace. Nothing is written before something
// is to be told; the head of the file waits for the id of the run.
func NewWriter(w io.Writer, o Options) *Writer { return &Writer{w: w, lines: NewLines(o)} }

// Event writes an event; it is a subscriber of a run. A prompt's receipt is
// left out, since it stands with the prompt. An error is returned by the next
// call that can. What comes after Close is not written.
func (t *Writer) Event(e event.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed && t.lines.Event(e) == nil {
		_ = t.flush(false) // kept
	}
}

// Record writes the decisions about a prompt, and the prompt. When it returns
// nil they are on the disk, if the writer below has a Sync as files have.
// Otherwise the prompt must not be sent.
func (t *Writer) Record(_ context.Context, r record.Prompt) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.lines.Record(r); err != nil {
		return err
	}
	return t.flush(true)
}

// Close writes the result, which may be nil, and ends the chain, which covers
// it; it returns the head of the chain, or none with an error. The result is
// written as it marshals to JSON, so it must be in the form for the caller. A
// second Close returns [ErrClosed], or the error that was kept. What is below
// is not closed.
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

// flush writes what was added, in one piece.
func (t *Writer) flush(durably bool) error {
	_, err := t.w.Write(t.lines.Take())
	if s, ok := t.w.(interface{ Sync() error }); ok && durably && err == nil {
		err = s.Sync()
	}
	return t.lines.keep(err)
}

// runOf returns the id of the run that a record is of.
func runOf(r record.Prompt) string {
	if r.Prompt != nil {
		return r.Prompt.Receipt.Run
	}
	for _, h := range r.Handoffs {
		return runIn(h.Session)
	}
	return ""
}
