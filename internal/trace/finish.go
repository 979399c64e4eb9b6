package trace

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// Times are positions among the lines, since each process of a run numbers its events from 1:
// the i-th event, from 0, is at 2i, and lines between it and the next are at 2i+1.

// A period is the time from the first completion of a task to the last: it may run again in a
// later process of its run.
type period struct{ first, last int }

// A start is an attempt that started.
type start struct {
	task    task.ID
	attempt int
}

// finish computes what needs all lines.
func (r *Reader) finish() *Trace {
	t := r.trace
	r.addEventDecisions()
	t.Handoffs = r.hidden.Visible(t.Handoffs)
	t.Prompts = slices.DeleteFunc(t.Prompts, func(p Prompt) bool { return r.hidden[p.Receipt.Task] && record.IsInner(p.Receipt.Session) })
	t.over = 2 * r.events
	again := map[string]int{} // position of the next prompt of each session
	for i := range slices.Backward(t.Prompts) {
		p := &t.Prompts[i]
		if p.Title == "" {
			p.Title = t.State.Find(p.Receipt.Task).Title
		}
		until, ok := again[p.Receipt.Session]
		if !ok {
			until = t.over
		}
		again[p.Receipt.Session] = p.at
		p.at = sent(p.at, until, r.starts[start{p.Receipt.Task, p.Attempt}])
	}
	// A prefetched prompt may wait for a free agent while a later one is sent.
	slices.SortStableFunc(t.Prompts, func(a, b Prompt) int { return cmp.Compare(a.at, b.at) })
	t.addUnrecordedEnds()
	t.held = heldOf(t)
	return t
}

// started adds that an attempt at a task began.
func (r *Reader) started(id task.ID, attempt int) {
	of := start{id, attempt}
	r.starts[of] = append(r.starts[of], 2*r.events)
	r.events++
}

// ended records that a task completed.
func (t *Trace) ended(id task.ID, at int) {
	of, again := t.ends[id]
	if of.last = at; !again {
		of.first = at
	}
	t.ends[id] = of
}

// sent returns when a prompt was sent that is at this position, with the next of its session
// at until: at the event that starts its attempt, which follows it. Without such an event it
// was not sent, or the event was not recorded.
func sent(at, until int, starts []int) int {
	for _, began := range starts {
		if at < began && began < until {
			return began
		}
	}
	return at
}

// addUnrecordedEnds finds when tasks completed whose events were not recorded, as after a
// crash: before their result was first in a prompt.
func (t *Trace) addUnrecordedEnds() {
	recorded := maps.Clone(t.ends)
	for i := range t.Prompts {
		p := &t.Prompts[i]
		for id := range p.results() {
			if _, known := recorded[id]; known {
				continue
			}
			if of, found := t.ends[id]; !found || p.at <= of.first {
				t.ends[id] = period{p.at - 1, p.at - 1}
			}
		}
	}
}

// heldOf returns the decisions that withheld context in sessions without a prompt.
func heldOf(t *Trace) map[task.ID][]event.Handoff {
	sent := map[string]bool{}
	for i := range t.Prompts {
		sent[t.Prompts[i].Receipt.Session] = true
	}
	held := map[task.ID][]event.Handoff{}
	for i := range t.Handoffs {
		if h := &t.Handoffs[i]; h.To != handoff.User && h.Verdict == gate.Withheld && !sent[h.Session] {
			held[h.Task] = append(held[h.Task], *h)
		}
	}
	return held
}

// addEventDecisions adds the decisions that only events have.
func (r *Reader) addEventDecisions() {
	if len(r.ruled) == 0 {
		return
	}
	chained := map[string]int{}
	for i := range r.trace.Handoffs {
		chained[form(&r.trace.Handoffs[i])]++
	}
	for i := range r.ruled {
		if key := form(&r.ruled[i]); chained[key] > 0 {
			chained[key]--
			continue
		}
		r.trace.Handoffs = append(r.trace.Handoffs, r.ruled[i])
	}
}

// form returns a decision as text, to compare it.
func form(h *event.Handoff) string {
	text, err := json.Marshal(h)
	if err != nil {
		return "" // an unknown label, which no reader returns
	}
	return string(text)
}
