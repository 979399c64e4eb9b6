package trace

import (
	"encoding/json"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/task"
)

// finish completes what only the whole tells.
func (r *reader) finish() *Trace {
	t := r.trace
	t.index, t.order, t.ends = r.known, map[*Prompt]int{}, map[task.ID]int{}
	starts := map[start]int{}
	for i := range t.Events {
		switch e := &t.Events[i]; e.Type {
		case event.TaskComplete:
			t.ends[e.Task] = e.Seq
		case event.AgentStart:
			starts[start{e.Task, e.Attempt}] = e.Seq
		}
	}
	for i := range t.Prompts {
		p := &t.Prompts[i]
		if p.Title == "" {
			p.Title = t.Tasks[r.known[p.Receipt.Task]].Title
		}
		seq, ok := starts[start{p.Receipt.Task, p.Attempt}]
		if !ok {
			seq = r.after[i] // it was never sent, or nobody was told
		}
		t.order[p] = seq
	}
	r.rulings()
	t.held = heldOf(t)
	return t
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

// A start is an attempt that began.
type start struct {
	task    task.ID
	attempt int
}

// rulings adds the decisions that only events tell.
func (r *reader) rulings() {
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
