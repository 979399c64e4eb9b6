package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"io"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/trace"
)

// Trace returns the record of a run, which is named as for [Journal.Find], as a
// trace of it would be read. Its result is made of what the journal has; there
// is none if the run did not come to its end. Words of prompts above
// confidential are there if the key of the journal opens them.
func (j *Journal) Trace(ctx context.Context, run string) (*trace.Trace, error) {
	r, err := j.find(ctx, run)
	if err != nil {
		return nil, err
	}
	return j.trace(r, &lineReader{ctx: ctx, j: j, run: r.n}, trace.ReadOptions{})
}

// trace reads the lines of a run, or those about one of its tasks.
func (j *Journal) trace(r row, lines io.Reader, o trace.ReadOptions) (*trace.Trace, error) {
	d := &decoder{vault: j.vault, run: r.id, stored: new(Stored)}
	alone, whole := false, false // one task is read, and the run ended, where that is not decoded
	head := o.Head
	o.Head = func(t *trace.Trace, only *trace.Task) {
		if alone = only != nil; head != nil {
			head(t, only)
		}
	}
	opened := map[string][2][]prompt.Piece{}
	o.Other = func(kind string, value json.RawMessage) error {
		switch kind {
		case kindSealed:
			return d.sealed(opened, value)
		case kindBegin, kindEnd:
			if whole = kind == kindEnd; alone {
				return nil
			}
			return d.line(kind, value)
		case kindInfo, kindAsked, kindBegun, kindExchange, kindRejected, kindMessage:
			if alone {
				return nil
			}
			err := d.line(kind, value)
			if err == nil && kind == kindExchange && o.Finder != nil {
				d.seen(o.Finder)
			}
			return err
		}
		return trace.ErrKind
	}
	o.Prompt = func(p *trace.Prompt) {
		if pieces, ok := opened[p.Receipt.Session]; ok {
			p.Open(pieces[0], pieces[1])
		}
		delete(opened, p.Receipt.Session)
	}
	t, err := trace.ReadWith(lines, o)
	if err != nil {
		return nil, j.fail("read", err)
	}
	if whole && alone {
		t.SetResult(&trace.Result{Run: r.id})
	}
	if end := d.stored.History.End; end != nil {
		t.SetResult(result(r.id, d.stored))
		if o.Finder != nil {
			o.Finder.Answer(end.Answer)
		}
	}
	return t, nil
}

// Search looks for a text in the prompts and results of a run, which is named as
// for [Journal.Find], and returns what it found and the trace without its words.
// It holds the words of one prompt or result at a time.
func (j *Journal) Search(ctx context.Context, run, text string) (*trace.Trace, trace.Search, error) {
	r, err := j.find(ctx, run)
	if err != nil {
		return nil, trace.Search{}, err
	}
	f := trace.NewFinder(text)
	t, err := j.trace(r, &lineReader{ctx: ctx, j: j, run: r.n}, trace.ReadOptions{Finder: f})
	if err != nil {
		return nil, trace.Search{}, err
	}
	return t, f.Search(t), nil
}

// seen looks at the exchange that was decoded last, and keeps none of its words.
func (d *decoder) seen(f *trace.Finder) {
	x := d.stored.History.Log[len(d.stored.History.Log)-1].Exchange
	if x.Part == "" && x.Completed() {
		t := trace.TaskResult{Task: trace.Task{ID: x.Task}}
		tell(&t, x)
		f.Result(&t)
	}
	x.Result, x.Shown, x.Error = nil, nil, ""
}

// sealed opens the words of a prompt, as far as the key does.
func (d *decoder) sealed(into map[string][2][]prompt.Piece, value []byte) error {
	var l sealedLine
	if err := json.Unmarshal(value, &l); err != nil {
		return err
	}
	text, missing := d.vault.show(&l.Hidden, kindSealed, d.run, l.Session)
	if missing != "" {
		return nil
	}
	var pieces [2][]prompt.Piece
	err := json.Unmarshal(text, &pieces)
	into[l.Session] = pieces
	return err
}

// result makes the result of a run of its exchanges and its end.
func result(run string, s *Stored) *trace.Result {
	h := &s.History
	r := &trace.Result{Run: run, Status: h.End.Status, Output: h.End.Answer}
	known := map[task.ID]trace.Task{}
	for _, t := range s.Info.Tasks {
		known[t.ID] = t
	}
	last, steps := map[task.ID]*event.Exchange{}, map[task.ID]bool{}
	for i := range h.Log {
		x := h.Log[i].Exchange
		if x == nil || x.Part != "" {
			continue
		}
		if isStep(x.Task) && !steps[x.Task] {
			steps[x.Task] = true
			r.Steps = append(r.Steps, trace.Step{Kind: x.Title})
		}
		if x.Completed() {
			last[x.Task] = x
		}
	}
	for _, e := range h.End.Tasks {
		t := trace.TaskResult{Task: known[e.Task]}
		t.ID, t.Title, t.Status = e.Task, e.Title, e.Status
		t.Assignee = cmp.Or(e.Agent, t.Assignee)
		if x := last[e.Task]; x != nil && e.Status == task.Completed {
			tell(&t, x)
		}
		r.Tasks = append(r.Tasks, t)
	}
	return r
}

// tell adds to a task what the caller may see of its result.
func tell(t *trace.TaskResult, x *event.Exchange) {
	if x.Result != nil {
		t.Label, t.Text, t.Structured = x.Result.Classification, cmp.Or(x.Result.Text, string(x.Result.JSON)), x.Result.JSON
	}
	if x.Missing != "" {
		t.Label = ceiling + 1
	}
	if x.Shown != nil {
		t.Text, t.Structured = x.Shown.Text, json.RawMessage(x.Shown.Structured)
	}
}
