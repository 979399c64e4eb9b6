package trace

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
)

// Lines collect the lines of one run, with their chain, until the owner takes and stores
// them. They are not safe for concurrent use. After an error the lines since the last Take
// are lost, and every later call returns that error.
type Lines struct {
	o       Options
	encoder *Encoder
	chain   *audit.Chain // nil until a line is added
	past    audit.State  // of a closed chain that this one follows
	own     Batch        // for the methods that add one thing
	buf     bytes.Buffer // lines since the last Take
	err     error
	closed  bool
}

// NewLines returns the lines of a new run. The first line that is added also adds the head of
// the trace and the opening line of the chain.
func NewLines(o Options) *Lines { return &Lines{o: o, encoder: NewEncoder(o.Tasks)} }

// ContinueLines returns the lines that follow those of the state s, which must be the last
// ones. There is no second head of the trace. A chain that is not closed continues; otherwise
// the first line that is added opens the next chain, which names the head of the one before.
// Run and Key of the options must be those of the lines before; Tasks give prompts their
// titles; Time is that of the next chain, if one is opened.
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

// Encoder returns the encoder of these lines, for [Lines.AddBatch].
func (t *Lines) Encoder() *Encoder { return t.encoder }

// Event adds an event, without its receipt, which the prompt has.
func (t *Lines) Event(e event.Event) error { return t.addOwn(t.encoder.Event(&t.own, e, nil)) }

// Record adds the decisions about a prompt, and the prompt.
func (t *Lines) Record(r record.Prompt) error { return t.addOwn(t.encoder.Record(&t.own, r)) }

// Add adds a line of another kind; see [Encoder.Line].
func (t *Lines) Add(kind string, value any) error {
	return t.addOwn(t.encoder.Line(&t.own, kind, value))
}

// addOwn adds the batch of these lines, unless it could not be encoded.
func (t *Lines) addOwn(bad error) error {
	defer t.own.Reset()
	if err := t.begin(t.own.run); err != nil {
		return err
	}
	if t.keep(bad) != nil {
		return t.err
	}
	return t.AddBatch(&t.own)
}

// AddBatch adds what an [Encoder] encoded. It does not keep the batch.
func (t *Lines) AddBatch(b *Batch) error {
	if len(b.parts) == 0 {
		return t.err
	}
	if err := t.begin(b.run); err != nil {
		return err
	}
	from := 0
	for i := range b.parts {
		p := &b.parts[i]
		lines := b.text.Bytes()[from:p.end]
		if t.keep(t.chain.AppendEncoded(p.decisions)) != nil || t.keep(t.chain.Beside(lines)) != nil {
			return t.err
		}
		t.buf.Write(lines)
		from = p.end
	}
	return nil
}

// Result adds the result as JSON, which must be in the form for the caller. If it is too large
// for a line, its parts are lines before the line of the result, which is null.
func (t *Lines) Result(result any) error {
	text, err := json.Marshal(result)
	if err != nil || len(text) <= maxPart {
		return t.addOwn(cmp.Or(err, t.own.add(record.KindResult, json.RawMessage(text))))
	}
	for len(text) > 0 && err == nil {
		n := min(maxPart, len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		err = t.own.add(record.KindPart, string(text[:n]))
		text = text[n:]
	}
	return t.addOwn(cmp.Or(err, t.own.add(record.KindResult, null)))
}

// Close adds the closing line of the chain, which covers all lines before it, and returns its
// head. A second Close returns [ErrClosed] or the first error.
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
	reset(&t.buf)
	return text
}

// State returns the state for [ContinueLines], once all lines are taken and stored. It is zero
// after an error, and for new lines before the first is added.
func (t *Lines) State() audit.State {
	switch {
	case t.err != nil:
		return audit.State{}
	case t.chain == nil:
		return t.past
	}
	return t.chain.State()
}

// begin adds the head before the first line, and returns an error if no line can be added.
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
		err := record.AppendLine(&t.buf, record.KindTrace, &header{Version: Version, Run: o.Run, Name: o.Name, Time: o.Time, Tasks: o.Tasks, Inputs: o.Inputs})
		if t.keep(err) != nil {
			return t.err
		}
	}
	chain, err := audit.New(&t.buf, audit.Options{Run: o.Run, Key: o.Key, Previous: o.Previous, Time: o.Time, Before: t.buf.Bytes()})
	t.chain = chain
	return t.keep(err)
}

// keep records the first error, and returns it.
func (t *Lines) keep(err error) error {
	if t.err == nil && err != nil {
		t.err = fmt.Errorf("trace: %w", err)
	}
	return t.err
}
