package explain

import (
	"strconv"
	"strings"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/task"
)

// A HandoffsDocument lists decisions of the gate, in JSON.
type HandoffsDocument struct {
	Handoffs []HandoffDocument `json:"handoffs"`
}

// A HandoffDocument is one decision, as an event has it, with what identifies it in the run.
type HandoffDocument struct {
	event.Handoff
	Seq         int       `json:"seq"` // of the decision among those of the run, from 1
	Time        time.Time `json:"time"`
	Task        task.ID   `json:"task,omitempty"` // whose agent reads; of the caller, that of the result
	Title       string    `json:"title,omitempty"`
	Attempt     int       `json:"attempt,omitempty"`     // from 1; none for the caller
	SourceTitle string    `json:"sourceTitle,omitempty"` // of the task whose result it is
}

// HandoffsOf returns the decisions about what a task read, and about its result for other readers. The name
// is a title, a key, an ID or a name; no task is a usage error.
func HandoffsOf(t *trace.Trace, name string) (*HandoffsDocument, error) {
	tk, err := t.Find(name)
	if err != nil {
		return nil, &exit.Error{Kind: exit.KindUsage, Err: err}
	}
	return handoffs(t, func(h *event.Handoff) bool {
		return h.Task == tk.ID || sourceTask(h) == tk.ID
	}), nil
}

// HandoffsBetween returns the decisions about what one reader had of another.
func HandoffsBetween(t *trace.Trace, from, to string) *HandoffsDocument {
	return handoffs(t, func(h *event.Handoff) bool { return h.From == from && h.To == to })
}

// handoffs returns the decisions for which wanted is true.
func handoffs(t *trace.Trace, wanted func(*event.Handoff) bool) *HandoffsDocument {
	d := &HandoffsDocument{Handoffs: []HandoffDocument{}}
	for i := range t.Handoffs {
		h := &t.Handoffs[i]
		if !wanted(h) {
			continue
		}
		one := HandoffDocument{Handoff: *h, Seq: i + 1, Time: h.Time, Task: h.Task, Attempt: attemptOf(t.Run, h)}
		if h.Task != "" {
			one.Title = t.Title(h.Task)
		}
		if id := sourceTask(h); id != "" {
			one.SourceTitle = t.Title(id)
		}
		d.Handoffs = append(d.Handoffs, one)
	}
	return d
}

// sourceTask returns the task whose result a decision is about; empty for other context.
func sourceTask(h *event.Handoff) task.ID {
	switch h.Source.Kind {
	case handoff.Dependency, handoff.Files, handoff.Condition:
		id, _ := turnOf(h.Source.Name)
		return task.ID(id)
	}
	return ""
}

// attemptOf returns the attempt that a decision is for, which its session has after run and task.
func attemptOf(run string, h *event.Handoff) int {
	rest, ok := strings.CutPrefix(h.Session, run+"/"+string(h.Task)+"/")
	if !ok {
		return 0
	}
	number, _, _ := strings.Cut(rest, "/")
	n, _ := strconv.Atoi(number) // a session of a condition has no number
	return n
}
