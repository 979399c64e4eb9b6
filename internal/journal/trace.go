package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/promptview"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/internal/trace"
)

// Trace returns a run, which is named as for [Journal.Find], as a trace, with the State of its history. Pieces of prompts above
// confidential have words if the key of the journal decrypts them.
func (a *archive) Trace(ctx context.Context, run string) (*trace.Trace, error) {
	r, err := a.find(ctx, run)
	if err != nil {
		return nil, err
	}
	return a.trace(r, &decoder{state: runstate.New()}, trace.ReadOptions{}, everyLine(ctx, a, r))
}

// Decisions returns the decisions of the gate in a run, which is named as for [Journal.Find], in the order
// in which they were recorded, but for those of which the caller may not know. It reads no prompts.
func (a *archive) Decisions(ctx context.Context, run string) (list []event.Handoff, err error) {
	r, err := a.find(ctx, run)
	if err != nil {
		return nil, err
	}
	opener := record.LinePrefix(record.KindDecision)
	for l, err := range rows(ctx, a.store, r.n, 0, true, undecoded) {
		if err != nil {
			return nil, a.fail("read", err)
		}
		for line := range bytes.Lines(l.text) {
			if !bytes.HasPrefix(line, opener) {
				continue
			}
			h, err := trace.Decision(line)
			if err != nil {
				return nil, a.fail("read", fmt.Errorf("run %s: %w", r.id, err))
			}
			if h != nil {
				list = append(list, *h)
			}
		}
	}
	return record.Hidden{}.Visible(list), nil
}

// everyLine returns a function that reads every line of a run.
func everyLine(ctx context.Context, a *archive, r row) func(*traceReading) error {
	return func(of *traceReading) error {
		for l, err := range rows(ctx, a.store, r.n, 0, true, of.row) {
			if err == nil {
				err = of.add(l)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// trace returns the trace of a run, whose lines read reads. The decoder decodes the lines of
// the history; if one task is read alone, only if its field only is set by then.
func (a *archive) trace(r row, d *decoder, o trace.ReadOptions, read func(*traceReading) error) (*trace.Trace, error) {
	of := newTraceReading(r.id, a.vault, d, o)
	if err := read(of); err != nil {
		return nil, a.fail("read", err)
	}
	t, err := of.in.Trace()
	if err != nil {
		return nil, a.fail("read", err)
	}
	of.end(t)
	return t, nil
}

// A traceReading reads the lines of a run as those of a trace, and decodes those of its history.
type traceReading struct {
	d      *decoder
	in     *trace.Reader
	listed func(*trace.Trace, *trace.Task)
	opened map[string][2][]promptview.Piece // pieces of prompts that the key decrypts, by session
	alone  bool                             // one task is read
	whole  bool                             // the run ended
}

// newTraceReading begins to read a run.
func newTraceReading(run string, v *vault, d *decoder, o trace.ReadOptions) *traceReading {
	d.vault, d.run, d.stored = v, run, &Stored{History: record.History{Mask: v.mask}}
	of := &traceReading{d: d, listed: o.Listed, opened: map[string][2][]promptview.Piece{}}
	d.planned = func(tasks []event.Planned) { of.in.AddTasks(trace.Planned(tasks)) }
	o.Listed, o.Decode, o.Other, o.Event, o.Prompt = of.taskList, of.decode, of.line, of.event, of.prompt
	of.in = trace.NewReader(o)
	return of
}

// A tracedRow is a row with its lines as those of a trace.
type tracedRow struct {
	n     int64 // of the row
	bytes int64 // of its lines
	lines []*trace.Line
}

// row decodes the lines of a row. Rows may be decoded at the same time, before what they have is added.
func (of *traceReading) row(l *batchRow) (*tracedRow, error) {
	out := &tracedRow{n: l.n, bytes: int64(len(l.text))}
	for line := range bytes.Lines(l.text) {
		out.lines = append(out.lines, trace.Parse(line, of.decode))
	}
	return out, nil
}

// add adds the lines of a row.
func (of *traceReading) add(l *tracedRow) error {
	for _, line := range l.lines {
		if err := of.in.Add(line); err != nil {
			return err
		}
	}
	return nil
}

// taskList takes the tasks of the run, of which only one may be read.
func (of *traceReading) taskList(t *trace.Trace, only *trace.Task) {
	if of.listed != nil {
		of.listed(t, only)
	}
	of.alone = only != nil
}

// decode decodes a line that a trace alone does not have.
func (of *traceReading) decode(kind string, value json.RawMessage) (any, error) {
	if of.alone && of.d.only == nil { // the history was not requested
		switch kind {
		case record.KindSealed, record.KindPrefetchStart, record.KindRunStart:
		default:
			return &historyLine{}, nil
		}
	}
	l, err := of.d.decode(kind, value)
	return &l, err
}

// line takes a line that a trace alone does not have.
func (of *traceReading) line(l *trace.Line) error {
	h := l.Decoded.(*historyLine)
	switch l.Kind {
	case record.KindSealed:
		if h.sealed != nil {
			of.opened[h.sealed.session] = h.sealed.pieces
		}
		return nil
	case record.KindPrefetchStart:
		if h.Begun != nil {
			of.in.Began(h.Begun.Session)
		}
	case record.KindRunStart:
		of.whole = false
		of.d.begin(h.Begin)
		return nil
	case record.KindRunEnd:
		of.whole = true
	case record.KindInfo:
	default:
		if !taskKinds[l.Kind] {
			return trace.ErrKind
		}
	}
	if !of.alone || of.d.only != nil { // the history was requested
		of.d.add(h)
	}
	return nil
}

// event takes an event.
func (of *traceReading) event(e *event.Event, hiddenText json.RawMessage) {
	if !of.alone || of.d.only != nil {
		if c := of.d.change(record.ChangeOf(e), e.Seq, hiddenText); c != nil {
			of.d.add(&historyLine{Entry: record.Entry{Change: c}})
		}
	}
}

// prompt fills in the pieces that were decrypted.
func (of *traceReading) prompt(p *trace.Prompt) {
	if pieces, ok := of.opened[p.Receipt.Session]; ok {
		p.Open(pieces[0], pieces[1])
	}
	delete(of.opened, p.Receipt.Session)
}

// end sets what is known of the tasks. If only one is read, that is what the lines of the trace say.
func (of *traceReading) end(t *trace.Trace) {
	switch {
	case of.d.state != nil:
		t.State = of.d.state
	case !of.alone:
		t.State = runstate.Of(&of.d.stored.History)
	case of.whole:
		t.State.Apply(&record.Entry{End: &record.RunEnd{}})
	}
}

// A Follower reads a run, and then only what is added to it. [Journal.Follow] returns one. It is not safe for
// concurrent use.
type Follower struct {
	a     *archive
	r     row
	of    *traceReading
	after int64 // the last row that was read
	size  int64 // of the lines that were read
}

// Size returns how many bytes the lines of the run have that were read so far.
func (f *Follower) Size() int64 { return f.size }

// Follow returns a Follower of a run, which is named as for [Journal.Find].
func (j *Journal) Follow(ctx context.Context, run string) (*Follower, error) {
	r, err := j.find(ctx, run)
	if err != nil {
		return nil, err
	}
	return &Follower{a: j.archive, r: r, of: newTraceReading(r.id, j.vault, &decoder{}, trace.ReadOptions{})}, nil
}

// Read returns what [Journal.Trace] and [Journal.Load] return now, but the trace has no State, which the caller makes of
// the history. What they return stays as it is when more is read;
// the caller must not change it. After an error, the Follower must not be used any more.
func (f *Follower) Read(ctx context.Context) (*trace.Trace, *Stored, error) {
	now, err := f.a.find(ctx, f.r.id)
	if err == nil && (now.n != f.r.n || !now.started.Equal(f.r.started)) {
		err = &UnknownRunError{Prefix: f.r.id} // removed, and made again
	}
	if err != nil {
		return nil, nil, err
	}
	_, at, _, err := f.a.store.last(ctx, f.r.n)
	if err != nil {
		return nil, nil, f.a.fail("read", err)
	}
	for l, err := range rows(ctx, f.a.store, f.r.n, f.after, true, f.of.row) {
		if err == nil {
			err = f.of.add(l)
		}
		if err != nil {
			return nil, nil, f.a.fail("read", err)
		}
		f.after, f.size = l.n, f.size+l.bytes
	}
	t, err := f.of.in.Snapshot()
	if err != nil {
		return nil, nil, f.a.fail("read", err)
	}
	s := *f.of.d.stored
	s.Newest, s.History.Log, s.History.Begins = at, slices.Clip(s.History.Log), slices.Clip(s.History.Begins)
	return t, &s, nil
}

// Search searches the prompts and results of a run, which is named as for [Journal.Find], for a text. It returns the
// trace without the words of prompts, of which it holds those of one at a time.
func (a *archive) Search(ctx context.Context, run, text string) (*trace.Trace, trace.Search, error) {
	r, err := a.find(ctx, run)
	if err != nil {
		return nil, trace.Search{}, err
	}
	f := trace.NewFinder(text)
	t, err := a.trace(r, &decoder{state: runstate.New()}, trace.ReadOptions{Finder: f}, everyLine(ctx, a, r))
	if err != nil {
		return nil, trace.Search{}, err
	}
	return t, f.Search(t), nil
}

// event decodes what an event says of a task; nil if it says nothing.
func (d *decoder) event(value []byte) (*record.TaskChange, error) {
	c, seq, hiddenText, err := record.DecodeChange(value)
	if err != nil {
		return nil, err
	}
	return d.change(c, seq, hiddenText), nil
}

// change returns what the event with a number says of a task, with its message if the key allows it; nil if it says
// nothing, or is not about a task that is read.
func (d *decoder) change(c *record.TaskChange, seq int, hiddenText json.RawMessage) *record.TaskChange {
	if c == nil || d.only != nil && c.Task != "" && !slices.Contains(d.only, c.Task) {
		return nil
	}
	var h hiddenEvent
	if hiddenText == nil || json.Unmarshal(hiddenText, &h) != nil {
		return c
	}
	place := changePlace(d.run, seq, c)
	if text, missing := d.vault.show(&h.hidden, place...); missing == "" {
		c.Message = string(text)
	}
	if h.Name != nil {
		if text, missing := d.vault.show(h.Name, append(place, "name")...); missing == "" {
			c.Name = string(text)
		}
	}
	return c
}

// An openedPrompt is the pieces of a prompt that the key decrypts: of its system prompt, and of its text.
type openedPrompt struct {
	session string
	pieces  [2][]promptview.Piece
}

// sealed decrypts the pieces of a prompt; nil if the key does not allow it.
func (d *decoder) sealed(value []byte) (*openedPrompt, error) {
	var l sealedLine
	if err := json.Unmarshal(value, &l); err != nil {
		return nil, err
	}
	text, missing := d.vault.show(&l.Hidden, record.KindSealed, d.run, l.Session)
	if missing != "" {
		return nil, nil
	}
	of := &openedPrompt{session: l.Session}
	return of, json.Unmarshal(text, &of.pieces)
}
