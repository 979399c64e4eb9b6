package journal

import (
	"cmp"
	"context"
	"encoding/json"

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
	lines := &lineReader{ctx: ctx, j: j, run: r.n}
	d := &decoder{vault: j.vault, run: r.id, stored: new(Stored)}
	opened := map[string][2][]prompt.Piece{}
	t, err := trace.ReadWith(lines, trace.ReadOptions{Other: func(kind string, value json.RawMessage) error {
		switch kind {
		case kindSealed:
			return d.sealed(opened, value)
		case kindInfo, kindBegin, kindAsked, kindBegun, kindExchange, kindRejected, kindEnd, kindMessage:
			return d.line(kind, value)
		}
		return trace.ErrKind
	}})
	if err != nil {
		return nil, j.fail("read", err)
	}
	for i := range t.Prompts {
		p := &t.Prompts[i]
		if pieces, ok := opened[p.Receipt.Session]; ok {
			p.Open(pieces[0], pieces[1])
		}
	}
	if d.stored.History.End != nil {
		t.SetResult(result(r.id, d.stored))
	}
	return t, nil
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
