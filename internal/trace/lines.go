package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
)

// Lines are the lines of one run, with their chain, on their way to wherever
// the owner keeps them: what is added is there to be taken. One goroutine uses
// them at a time. The first error is kept: what was added since the last Take
// is lost with it, and every later call returns it.
type Lines struct {
	o       Options
	encoder *Encoder
	chain   *audit.Chain // nil until something is added
	past    audit.State  // of a chain that is closed, which this one follows
	buf     bytes.Buffer // what was added
	err     error
	closed  bool
}

// NewLines returns the lines of a new run. There are none before the first is
// added, which brings the head of a trace and of the chain.
func NewLines(o Options) *Lines { return &Lines{o: o, encoder: NewEncoder(o.Tasks)} }

// ContinueLines returns the lines that follow those after which State gave s:
// other lines must not stand behind them. There is no second head of the trace.
// If the chain is not closed it goes on; else the first line that is added
// opens the next one, which names the head of the one before. Run and Key of
// the options are those of the lines before; Tasks may be others, and give
// prompts their titles; Time is that of the next chain, if it opens one.
func ContinueLines(o Options, s audit.State) (*Lines, error) {
	t := NewLines(o)
	chain, err := audit.Continue(&t.buf, s, audit.Options{Run: o.Run, Key: o.Key})
	switch {
	case errors.Is(err, audit.ErrClosed):
		t.past, t.o.Previous = s, s.Head()
	case err != nil:
		return nil, fmt.Errorf("trace: %w", err)
	default:
		t.chain = chain
	}
	return t, nil
}

// Encoder returns what encodes the lines, for [Lines.AddEncoded]. It may be
// used by others meanwhile.
func (t *Lines) Encoder() *Encoder { return t.encoder }

// Event adds an event. Its receipt is left out, since it stands with the prompt.
func (t *Lines) Event(e event.Event) error {
	text, err := t.encoder.Event(e)
	return t.add(e.Run, text, err)
}

// Record adds the decisions about a prompt, and the prompt.
func (t *Lines) Record(r record.Prompt) error {
	list, bad := t.encoder.Decisions(r.Handoffs...)
	err := t.decisions(runOf(r), list, bad)
	if err == nil && r.Prompt != nil {
		text, bad := t.encoder.Prompt(r.Prompt)
		err = t.add(r.Prompt.Receipt.Run, text, bad)
	}
	return err
}

// Decisions adds a line of the chain for each decision. A Record of which all
// is encoded is its Decisions and then the line of its prompt.
func (t *Lines) Decisions(list audit.Decisions) error { return t.decisions(t.o.Run, list, nil) }

func (t *Lines) decisions(run string, list audit.Decisions, bad error) error {
	if err := t.begin(run); err != nil {
		return err
	}
	if t.keep(bad) != nil {
		return t.err
	}
	return t.keep(t.chain.AppendEncoded(list))
}

// Add adds a line of a kind of its own (see [Encoder.Line]).
func (t *Lines) Add(kind string, value any) error {
	text, err := t.encoder.Line(kind, value)
	return t.add(t.o.Run, text, err)
}

// AddEncoded adds a line as an [Encoder] made it, or several. The text is not kept.
func (t *Lines) AddEncoded(line []byte) error {
	var err error
	if bytes.HasPrefix(line, auditOpener) {
		err = errors.New("a line of the chain is the chain's to write")
	}
	return t.add(t.o.Run, line, err)
}

// Result adds the result, as it marshals to JSON, so that it must be in the
// form for the caller. One that is too large for a line is cut into parts of
// its text, and the line of the result is null.
func (t *Lines) Result(result any) error {
	text, err := json.Marshal(result)
	if err != nil || len(text) <= maxPart {
		return t.addMember("result", json.RawMessage(text), err)
	}
	for len(text) > 0 {
		n := min(maxPart, len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		if err := t.addMember("part", string(text[:n]), nil); err != nil {
			return err
		}
		text = text[n:]
	}
	return t.addMember("result", null, nil)
}

// Close adds the closing line of the chain, which covers all before it, and
// returns its head. A second Close returns [ErrClosed], or the error that was
// kept.
func (t *Lines) Close(at time.Time) (head audit.Head, err error) {
	if err := t.begin(t.o.Run); err != nil {
		return head, err
	}
	t.closed = true
	head, err = t.chain.Close(at)
	if t.keep(err) != nil {
		return audit.Head{}, t.err
	}
	return head, nil
}

// Take returns what was added since the last Take, as whole lines, which are valid until
// the next line is added. After an error it is nothing.
func (t *Lines) Take() []byte {
	if t.err != nil {
		return nil
	}
	text := t.buf.Bytes()
	if t.buf.Reset(); t.buf.Cap() > 1<<20 { // the memory of one giant prompt is not kept
		t.buf = bytes.Buffer{}
	}
	return text
}

// State returns what [ContinueLines] goes on from, once all that was added is
// taken and kept. It is zero after an error, and before anything was added to
// new lines.
func (t *Lines) State() audit.State {
	switch {
	case t.err != nil:
		return audit.State{}
	case t.chain == nil:
		return t.past
	}
	return t.chain.State()
}

// begin adds the head, once, and returns what keeps from going on.
func (t *Lines) begin(run string) error {
	switch {
	case t.err != nil:
		return t.err
	case t.closed:
		return ErrClosed
	}
	if t.chain != nil {
		return nil
	}
	if t.o.Run == "" {
		t.o.Run = run
	}
	o := &t.o
	if t.past.IsZero() {
		text, err := record.EncodeLine(record.KindTrace, &header{Version: Version, Run: o.Run, Name: o.Name, Time: o.Time, Tasks: o.Tasks, Inputs: o.Inputs})
		if t.keep(err) != nil {
			return t.err
		}
		t.buf.Write(text)
	}
	chain, err := audit.New(&t.buf, audit.Options{Run: o.Run, Key: o.Key, Previous: o.Previous, Time: o.Time, Before: t.buf.Bytes()})
	t.chain = chain
	return t.keep(err)
}

func (t *Lines) addMember(kind string, value any, err error) error {
	var text []byte
	if err == nil {
		text, err = record.EncodeLine(kind, value)
	}
	return t.add(t.o.Run, text, err)
}

// add adds lines, which the next line of the chain covers, unless there is an error.
func (t *Lines) add(run string, text []byte, bad error) error {
	if err := t.begin(run); err != nil {
		return err
	}
	if t.keep(bad) == nil && t.keep(t.chain.Beside(text)) == nil {
		t.buf.Write(text)
	}
	return t.err
}

// keep keeps the first error, and returns it.
func (t *Lines) keep(err error) error {
	if t.err == nil && err != nil {
		t.err = fmt.Errorf("trace: %w", err)
	}
	return t.err
}
