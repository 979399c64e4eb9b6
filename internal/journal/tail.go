package journal

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runevents"
	"github.com/runteam/runteam/internal/trace"
)

// A Tail reads the events of a run as they become durable, whichever process writes them. [Journal.Tail]
// returns one. It is not safe for concurrent use.
type Tail struct {
	a     *archive
	run   string
	n     int64
	after int64 // the last row that was read

	decoder decoder
	events  *runevents.Events
	read    []event.Event
	pending record.Prompt // decisions of one session that were read, of which the prompt may follow
}

// Tail returns a Tail before the first event of a run, which is named as for [Journal.Find].
func (a *archive) Tail(ctx context.Context, run string) (*Tail, error) {
	r, err := a.find(ctx, run)
	if err != nil {
		return nil, err
	}
	t := &Tail{a: a, run: r.id, n: r.n, decoder: decoder{vault: a.vault, run: r.id}}
	t.events = runevents.New(r.id, func(e event.Event) { t.read = append(t.read, e) })
	return t, nil
}

// Run returns the ID of the run.
func (t *Tail) Run() string { return t.run }

// A TailState says what a [Tail] has read.
type TailState int

// The states of a Tail.
const (
	TailReads TailState = iota // there may be more events now, also if none was returned
	TailWaits                  // there are no more now
	TailEnded                  // the run has ended or its process has: there are no more, unless the run is resumed
)

// Next returns the next events that are durable, or some of them. It does not wait. The error wraps [ErrUnknownRun] if
// the run was removed, or is not there any more.
func (t *Tail) Next(ctx context.Context) ([]event.Event, TailState, error) {
	page, _, err := t.a.store.page(ctx, t.n, t.after, true)
	if err != nil {
		return nil, TailReads, t.a.fail("read", err)
	}
	var now row
	if len(page) == 0 || !t.a.isWhole() { // a process that resumes the run may raise its label
		now, err = t.a.find(ctx, t.run)
		if err == nil && now.n != t.n {
			err = &UnknownRunError{Prefix: t.run} // removed, and made again
		}
		if err != nil {
			return nil, TailReads, err
		}
	}
	if len(page) == 0 {
		if now.turn.status == "" && t.a.live(now.held) {
			return nil, TailWaits, nil
		}
		if page, _, err = t.a.store.page(ctx, t.n, t.after, true); err != nil { // what came with the end
			return nil, TailReads, t.a.fail("read", err)
		}
		if len(page) == 0 {
			return nil, TailEnded, nil
		}
	}
	t.read = nil
	for i, l := range decodedPage(page, true, t.decode) {
		if l.err != nil {
			return nil, TailReads, t.a.fail("read", l.err)
		}
		for _, line := range l.value {
			t.line(line)
		}
		t.flush()
		t.after = page[i].n
	}
	return t.read, TailReads, nil
}

// decode decodes the lines of a row.
func (t *Tail) decode(l *batchRow) (lines []*trace.Line, err error) {
	other := func(kind string, value json.RawMessage) (any, error) { return t.decoder.decode(kind, value) }
	for line := range bytes.Lines(l.text) {
		l := trace.Parse(line, other)
		if err := l.Err(); err != nil {
			return nil, err
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// decision keeps a decision until those about the same prompt are read.
func (t *Tail) decision(h *event.Handoff) {
	if n := len(t.pending.Handoffs); n > 0 && t.pending.Handoffs[n-1].Session != h.Session {
		t.flush()
	}
	t.pending.Handoffs = append(t.pending.Handoffs, *h)
}

// flush derives the events of the decisions that were kept, and of their prompt.
func (t *Tail) flush() {
	if len(t.pending.Handoffs) > 0 || t.pending.Prompt != nil {
		t.events.Add(&record.Entry{Record: &t.pending})
		t.pending = record.Prompt{}
	}
}

// line derives the events of a line.
func (t *Tail) line(l *trace.Line) {
	switch {
	case l.Kind == record.KindDecision:
		if l.Decision != nil {
			t.decision(l.Decision)
		}
		return
	case l.Prompt != nil:
		if n := len(t.pending.Handoffs); n > 0 && t.pending.Handoffs[n-1].Session != l.Prompt.Receipt.Session {
			t.flush()
		}
		t.pending.Prompt = &l.Prompt.Shown
		return
	case l.Kind == record.KindSealed: // the line of its prompt has only a part of the text
		if of, ok := l.Decoded.(historyLine); ok && t.pending.Prompt != nil {
			if t.pending.Prompt.Text = nil; of.sealed != nil {
				t.pending.Prompt.Text = of.sealed.pieces[1]
			}
		}
		return
	}
	t.flush()
	if l.Event != nil {
		t.events.Add(&record.Entry{Event: l.Event})
	} else if of, ok := l.Decoded.(historyLine); ok && of.Entry != (record.Entry{}) {
		t.events.Add(&of.Entry)
	}
}

// LastRow returns the number of the last row of a run. It changes when a row is added.
func (c *catalog) LastRow(ctx context.Context, run string) (int64, error) {
	r, err := c.find(ctx, run)
	if err != nil {
		return 0, err
	}
	n, _, _, err := c.store.last(ctx, r.n)
	return n, c.fail("read", err)
}
