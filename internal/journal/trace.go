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
	return a.trace(r, &decoder{traceOnly: true}, trace.ReadOptions{}, everyLine(ctx, a, r))
}

// Decisions returns the decisions of the gate in a run, which is named as for [Journal.Find], in the order
// in which they were recorded, but for those of which the caller may not know. It reads no prompts.
func (a *archive) Decisions(ctx context.Context, run string) (list []event.Handoff, err error) {
	r, err := a.find(ctx, run)
	if err != nil {
		return nil, err
	}
	opener := record.LinePrefix(record.KindDecision)
	for l, err := range a.store.rows(ctx, r.n, 0, true) {
		if err != nil {
			return nil, a.fail("read", err)
		}
		for line := range bytes.Lines(l.text) {
			if !bytes.HasPrefix(line, opener) {
				continue
			}
			h, err := decisionOf(line)
			if err != nil {
				return nil, a.fail("read", fmt.Errorf("run %s: its decision cannot be read: %w", r.id, err))
			}
			if h != nil {
				list = append(list, *h)
			}
		}
	}
	return record.Hidden{}.Visible(list), nil
}

// everyLine returns a function that reads every line of a run.
func everyLine(ctx context.Context, a *archive, r row) func(*trace.Reader) error {
	return func(in *trace.Reader) error {
		for l, err := range a.store.rows(ctx, r.n, 0, true) {
			if err == nil {
				err = takeLines(in, l.text)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// takeLines passes lines to a reader.
func takeLines(in *trace.Reader, lines []byte) error {
	for line := range bytes.Lines(lines) {
		if err := in.Line(line); err != nil {
			return err
		}
	}
	return nil
}

// trace returns the trace of a run, whose lines read reads. The decoder decodes the lines of
// the history; if one task is read alone, only if its field only is set by then.
func (a *archive) trace(r row, d *decoder, o trace.ReadOptions, read func(*trace.Reader) error) (*trace.Trace, error) {
	of := newTraceReading(r.id, a.vault, d, o)
	if err := read(of.in); err != nil {
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
	known  bool                             // the tasks of the run are
	alone  bool                             // one task is read
	whole  bool                             // the run ended
}

// newTraceReading begins to read a run.
func newTraceReading(run string, v *vault, d *decoder, o trace.ReadOptions) *traceReading {
	d.vault, d.run, d.stored = v, run, &Stored{History: record.History{Mask: v.mask}}
	of := &traceReading{d: d, listed: o.Listed, opened: map[string][2][]promptview.Piece{}}
	o.Listed, o.Other, o.Event, o.Prompt = of.taskList, of.line, of.event, of.prompt
	of.in = trace.NewReader(o)
	return of
}

// taskList takes the tasks of the run, of which only one may be read.
func (of *traceReading) taskList(t *trace.Trace, only *trace.Task) {
	if of.listed != nil {
		of.listed(t, only)
	}
	of.known, of.alone = true, only != nil
}

// line takes a line that a trace alone does not have.
func (of *traceReading) line(kind string, value json.RawMessage) error {
	switch kind {
	case record.KindSealed:
		return of.d.sealed(of.opened, value)
	case record.KindPrefetchStart:
		var b record.PrefetchStart
		if json.Unmarshal(value, &b) == nil {
			of.in.Began(b.Session)
		}
	case record.KindRunStart:
		return of.begin(value)
	case record.KindRunEnd:
		of.whole = true
	case record.KindInfo:
		if of.d.traceOnly && !of.known {
			return nil // only in files before version 10, whose heads list the tasks, it says something of them
		}
	case record.KindCallStart, record.KindAgentCall, record.KindRejected, record.KindMessage, record.KindTurn, record.KindToolStart, record.KindToolEnd, record.KindFiles, record.KindQuestion, record.KindAnswer, record.KindCommand:
	default:
		return trace.ErrKind
	}
	if of.alone && of.d.only == nil { // the history was not requested
		return nil
	}
	return of.d.line(kind, value)
}

// begin takes the start of a process.
func (of *traceReading) begin(value json.RawMessage) error {
	b, err := of.d.decodeBegin(value)
	if err != nil {
		return err
	}
	of.whole = false
	of.in.AddTasks(trace.Planned(b.Tasks))
	of.d.begin(b)
	return nil
}

// event takes an event.
func (of *traceReading) event(e event.Event, hiddenText json.RawMessage) {
	if !of.alone || of.d.only != nil {
		of.d.addChange(record.ChangeOf(&e), e.Seq, hiddenText)
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
	for l, err := range f.a.store.rows(ctx, f.r.n, f.after, true) {
		if err == nil {
			err = takeLines(f.of.in, l.text)
		}
		if err != nil {
			return nil, nil, f.a.fail("read", err)
		}
		f.after, f.size = l.n, f.size+int64(len(l.text))
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
	t, err := a.trace(r, &decoder{traceOnly: true}, trace.ReadOptions{Finder: f}, everyLine(ctx, a, r))
	if err != nil {
		return nil, trace.Search{}, err
	}
	return t, f.Search(t), nil
}

// event decodes an event of the history.
func (d *decoder) event(value []byte) error {
	c, seq, hiddenText, err := record.DecodeChange(value)
	if err == nil {
		d.addChange(c, seq, hiddenText)
	}
	return err
}

// addChange adds what the event with a number says of a task to the history, unless it says nothing.
func (d *decoder) addChange(c *record.TaskChange, seq int, hiddenText json.RawMessage) {
	if c == nil || d.only != nil && c.Task != "" && !slices.Contains(d.only, c.Task) {
		return
	}
	var h hidden
	if hiddenText != nil && json.Unmarshal(hiddenText, &h) == nil {
		if text, missing := d.vault.show(&h, changePlace(d.run, seq, c)...); missing == "" {
			c.Message = string(text)
		}
	}
	d.stored.History.Log = append(d.stored.History.Log, record.Entry{Change: c})
}

// sealed decrypts the pieces of a prompt, if the key allows it.
func (d *decoder) sealed(into map[string][2][]promptview.Piece, value []byte) error {
	var l sealedLine
	if err := json.Unmarshal(value, &l); err != nil {
		return err
	}
	text, missing := d.vault.show(&l.Hidden, record.KindSealed, d.run, l.Session)
	if missing != "" {
		return nil
	}
	var pieces [2][]promptview.Piece
	err := json.Unmarshal(text, &pieces)
	into[l.Session] = pieces
	return err
}
