package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/runteam/runteam/audit"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// ErrClosed is what a [Writer] returns once it was closed.
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
// every later call that returns an error returns that one.
type Writer struct {
	mu     sync.Mutex // guards all below
	w      io.Writer
	o      Options
	titles map[task.ID]string
	chain  *audit.Chain // nil until the run's id is known
	lines  bytes.Buffer // what the next write brings
	err    error
	closed bool
}

// NewWriter returns a writer of a trace. Nothing is written before something
// is to be told; the head of the file waits for the id of the run.
func NewWriter(w io.Writer, o Options) *Writer {
	t := &Writer{w: w, o: o, titles: map[task.ID]string{}}
	for _, tk := range o.Tasks {
		t.titles[tk.ID] = tk.Title
	}
	return t
}

// Event writes an event; it is a subscriber of a run. A prompt's receipt is
// left out, since it stands with the prompt. An error is returned by the next
// call that can. What comes after Close is not written.
func (t *Writer) Event(e event.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	for _, p := range e.Plan {
		t.titles[p.Task] = p.Title
	}
	e.Receipt = nil
	if t.begin(e.Run) {
		t.add(line{Event: &wireEvent{plainEvent: plainEvent(e), WaitMs: e.Wait.Milliseconds(), DurationMs: e.Duration.Milliseconds()}})
		t.flush(false)
	}
}

// Record writes the decisions about a prompt, and the prompt. When it returns
// nil they are on the disk, if the writer below has a Sync as files have.
// Otherwise the prompt must not be sent.
func (t *Writer) Record(_ context.Context, r event.Record) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed && t.err == nil {
		return ErrClosed
	}
	if !t.begin(runOf(r)) {
		return t.err
	}
	if len(r.Handoffs) > 0 {
		t.keep(t.chain.Append(r.Handoffs...))
	}
	if r.Prompt != nil {
		t.prompt(r.Prompt)
	}
	t.flush(true)
	return t.err
}

// Close writes the result, which may be nil, and ends the chain, which covers
// it; it returns the head of the chain, or none with an error. The result is
// written as it marshals to JSON, so it must be in the form for the caller. A
// second Close returns [ErrClosed], or the error that was kept. What is below
// is not closed.
func (t *Writer) Close(result any, at time.Time) (head audit.Head, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed && t.err == nil {
		return head, ErrClosed
	}
	if t.closed = true; !t.begin(t.o.Run) {
		return head, t.err
	}
	if result != nil {
		t.result(result)
	}
	if t.err == nil {
		head, err = t.chain.Close(at)
		t.keep(err)
	}
	if t.flush(true); t.err != nil {
		head = audit.Head{}
	}
	return head, t.err
}

// begin writes the head of the file, once, and reports whether to go on.
func (t *Writer) begin(run string) bool {
	if t.chain != nil || t.err != nil {
		return t.err == nil
	}
	if t.o.Run == "" {
		t.o.Run = run
	}
	o := &t.o
	t.add(line{Trace: &header{Version: Version, Run: o.Run, Name: o.Name, Time: o.Time, Tasks: o.Tasks, Inputs: o.Inputs}})
	if t.err != nil {
		return false
	}
	chain, err := audit.New(&t.lines, audit.Options{Run: o.Run, Key: o.Key, Previous: o.Previous, Time: o.Time, Before: t.lines.Bytes()})
	t.keep(err)
	t.chain = chain
	return t.err == nil
}

// prompt adds a prompt.
func (t *Writer) prompt(s *prompt.Shown) {
	r := s.Receipt
	p := &Prompt{Shown: *s, Agent: r.Agent, Title: t.titles[r.Task], Attempt: attempt(r)}
	if p.Title == "" {
		p.Title = titleIn(s)
	}
	if !legible(s) {
		t.keep(fmt.Errorf("the prompt of %q is not valid UTF-8 and cannot be written down", p.Title))
		return
	}
	t.add(line{Prompt: p})
}

// legible reports whether JSON can hold the words as they are.
func legible(s *prompt.Shown) bool {
	for _, pieces := range [...][]prompt.Piece{s.System, s.Text} {
		for i := range pieces {
			if !utf8.ValidString(pieces[i].Words) {
				return false
			}
		}
	}
	return true
}

// titleIn returns the title that stands in a prompt, if it may be seen.
func titleIn(s *prompt.Shown) (title string) {
	for i := range s.Text {
		if s.Text[i].Part == prompt.PartTitle {
			title += s.Text[i].Words
		}
	}
	return title
}

// result adds the result. One that is too large for a line is cut into parts
// of its text, and the line of the result is null.
func (t *Writer) result(result any) {
	text, err := json.Marshal(result)
	t.keep(err)
	if len(text) > maxPart {
		for len(text) > 0 {
			n := min(maxPart, len(text))
			for n < len(text) && !utf8.RuneStart(text[n]) {
				n++
			}
			t.add(line{Part: string(text[:n])})
			text = text[n:]
		}
		text = null
	}
	t.add(line{Result: text})
}

// add adds a line to the next write, which the next line of the chain covers.
func (t *Writer) add(l line) {
	if t.err != nil {
		return
	}
	before := t.lines.Len()
	e := json.NewEncoder(&t.lines)
	e.SetEscapeHTML(false)
	t.keep(e.Encode(l))
	if n := t.lines.Len() - before - 1; n > audit.MaxLine {
		t.keep(fmt.Errorf("a line of %d bytes would be longer than %d", n, audit.MaxLine))
	}
	if t.chain != nil && t.err == nil {
		t.keep(t.chain.Beside(t.lines.Bytes()[before:]))
	}
}

// flush writes what was added, in one piece.
func (t *Writer) flush(durably bool) {
	if t.err != nil {
		return
	}
	_, err := t.lines.WriteTo(t.w)
	if s, ok := t.w.(interface{ Sync() error }); ok && durably && err == nil {
		err = s.Sync()
	}
	t.keep(err)
	if t.lines.Cap() > 1<<20 { // what one giant prompt needed is not kept for ever
		t.lines = bytes.Buffer{}
	}
}

// keep keeps the first error.
func (t *Writer) keep(err error) {
	if t.err == nil && err != nil {
		t.err = fmt.Errorf("trace: %w", err)
	}
}

// runOf returns the id of the run that a record is of.
func runOf(r event.Record) string {
	if r.Prompt != nil {
		return r.Prompt.Receipt.Run
	}
	for _, h := range r.Handoffs {
		return runIn(h.Session)
	}
	return ""
}
