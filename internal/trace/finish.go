package trace

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/task"
)

// Times are places among the lines, since the numbers of events begin anew with
// each process of a run: the i-th event, from 0, is at 2i, and what stands
// between it and the next, at 2i+1.

// A period is from when a task first completed to when it last did: it may run
// again in a later process of its run.
type period struct{ first, last int }

// A start is an attempt that began.
type start struct {
	task    task.ID
	attempt int
}

// finish completes what only the whole tells.
func (r *Reader) finish() *Trace {
	t := r.trace
	t.order, t.ends = map[*Prompt]int{}, map[task.ID]period{}
	starts := map[start][]int{}
	for i := range t.Events {
		switch e := &t.Events[i]; e.Type {
		case event.TaskComplete:
			t.ended(e.Task, 2*i)
		case event.AgentStart:
			of := start{e.Task, e.Attempt}
			starts[of] = append(starts[of], 2*i)
		}
	}
	times := make([]int, len(t.Prompts)) // when each prompt was sent
	again := map[string]int{}            // where the next prompt of each session stands
	for i := range slices.Backward(t.Prompts) {
		p, at := &t.Prompts[i], 2*r.after[i]-1
		if p.Title == "" {
			p.Title = t.Tasks[t.index[p.Receipt.Task]].Title
		}
		until, ok := again[p.Receipt.Session]
		if !ok {
			until = 2 * len(t.Events)
		}
		times[i], again[p.Receipt.Session] = sent(at, until, starts[start{p.Receipt.Task, p.Attempt}]), at
	}
	r.sort(times)
	t.untold()
	r.rulings()
	t.held = heldOf(t)
	return t
}

// sort puts the prompts in the order of the times at which they were sent: a
// prompt that was ready may wait for a free agent while a later one is sent.
func (r *Reader) sort(times []int) {
	t := r.trace
	if !slices.IsSorted(times) {
		places := make([]int, len(times))
		for i := range places {
			places[i] = i
		}
		slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(times[a], times[b]) })
		t.Prompts, times = permuted(t.Prompts, places), permuted(times, places)
		if f := r.o.Finder; f != nil {
			f.prompts = permuted(f.prompts, places)
		}
	}
	for i := range t.Prompts {
		t.order[&t.Prompts[i]] = times[i]
	}
}

// permuted returns a list in another order: the element at places[i] is at i.
func permuted[T any](list []T, places []int) []T {
	out := make([]T, len(list))
	for i, from := range places {
		out[i] = list[from]
	}
	return out
}

// ended notes that a task completed.
func (t *Trace) ended(id task.ID, at int) {
	of, again := t.ends[id]
	if of.last = at; !again {
		of.first = at
	}
	t.ends[id] = of
}

// sent returns when a prompt was sent that stands at a place, and another of
// the same session not before until: when its attempt began, of which the event
// comes later. An attempt without one was never sent, or nobody was told.
func sent(at, until int, starts []int) int {
	for _, began := range starts {
		if at < began && began < until {
			return began
		}
	}
	return at
}

// untold finds when a task completed that no event tells of, as after a crash:
// before its result was first in a prompt.
func (t *Trace) untold() {
	told := maps.Clone(t.ends)
	for i := range t.Prompts {
		p := &t.Prompts[i]
		for id := range p.results() {
			if _, known := told[id]; known {
				continue
			}
			if of, found := t.ends[id]; !found || t.order[p] <= of.first {
				t.ends[id] = period{t.order[p] - 1, t.order[p] - 1}
			}
		}
	}
}

// heldOf lists what was held under sessions of which there is no prompt.
func heldOf(t *Trace) map[task.ID][]event.Handoff {
	sent := map[string]bool{}
	for i := range t.Prompts {
		sent[t.Prompts[i].Receipt.Session] = true
	}
	held := map[task.ID][]event.Handoff{}
	for i := range t.Handoffs {
		if h := &t.Handoffs[i]; h.To != handoff.User && h.Verdict == handoff.Held && !sent[h.Session] {
			held[h.Task] = append(held[h.Task], *h)
		}
	}
	return held
}

// rulings adds the decisions that only events tell.
func (r *Reader) rulings() {
	told := map[string]int{}
	for i := range r.trace.Handoffs {
		told[form(&r.trace.Handoffs[i])]++
	}
	for i := range r.ruled {
		if key := form(&r.ruled[i]); told[key] > 0 {
			told[key]--
			continue
		}
		r.trace.Handoffs = append(r.trace.Handoffs, r.ruled[i])
	}
}

// form returns a decision in a form that can be compared.
func form(h *event.Handoff) string {
	text, err := json.Marshal(h)
	if err != nil {
		return "" // a level that does not exist, which no reader makes
	}
	return string(text)
}
