package explain

import (
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/sent"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/task"
)

// A HandoffsDocument lists decisions of the gate, in JSON, and what agents sent to each other.
type HandoffsDocument struct {
	Handoffs []HandoffDocument `json:"handoffs"`
	Sent     []sent.Handoff    `json:"sent,omitempty"`
}

// A HandoffDocument is one decision, as an event has it, with what identifies it in the run.
type HandoffDocument struct {
	event.Handoff
	Seq         int    `json:"seq"`                   // of the decision among those of the run, from 1
	Title       string `json:"title,omitempty"`       // of the task
	Attempt     int    `json:"attempt,omitempty"`     // from 1; none for the caller
	SourceTitle string `json:"sourceTitle,omitempty"` // of the task whose result it is
}

// HandoffsOf returns the decisions about what a task read, and about its result for other readers, and the
// handoffs that it sent, has read or has not read. The name is a title, a key, an ID or a name; no task is a
// usage error.
func HandoffsOf(k *journals.StoredRun, name string) (*HandoffsDocument, error) {
	t := k.Trace
	tk, err := k.FindTask(name)
	if err != nil {
		return nil, err
	}
	d := &HandoffsDocument{Handoffs: []HandoffDocument{}, Sent: sent.AboutTask(sent.Of(k), tk.ID, tk.Agent)}
	for i := range t.Handoffs {
		if h := &t.Handoffs[i]; h.Task == tk.ID || sourceTask(h) == tk.ID {
			d.Handoffs = append(d.Handoffs, newHandoff(t, i))
		}
	}
	return d, nil
}

// HandoffsByTask returns for each task with decisions what [HandoffsOf] returns.
func HandoffsByTask(k *journals.StoredRun) map[task.ID]*HandoffsDocument {
	t, all, list := k.Trace, map[task.ID]*HandoffsDocument{}, sent.Of(k)
	for i := range t.Handoffs {
		h, one := &t.Handoffs[i], newHandoff(t, i)
		for _, id := range slices.Compact([]task.ID{h.Task, sourceTask(h)}) {
			if all[id] == nil {
				all[id] = &HandoffsDocument{Sent: sent.AboutTask(list, id, agentOf(k, id))}
			}
			all[id].Handoffs = append(all[id].Handoffs, one)
		}
	}
	return all
}

// agentOf returns the agent of a task.
func agentOf(k *journals.StoredRun, id task.ID) string {
	if t := k.State.Find(id); t != nil {
		return t.Agent
	}
	return ""
}

// HandoffsBetween returns the decisions about what one reader had of another, and what that sent to it.
func HandoffsBetween(k *journals.StoredRun, from, to string) *HandoffsDocument {
	t, d := k.Trace, &HandoffsDocument{Handoffs: []HandoffDocument{}}
	for _, h := range sent.Of(k) {
		if h.From == from && (h.To == to || h.To == mailbox.Everyone) {
			d.Sent = append(d.Sent, h)
		}
	}
	for i := range t.Handoffs {
		if h := &t.Handoffs[i]; h.From == from && h.To == to {
			d.Handoffs = append(d.Handoffs, newHandoff(t, i))
		}
	}
	return d
}

// newHandoff returns the document of decision i of a trace.
func newHandoff(t *trace.Trace, i int) HandoffDocument {
	h := &t.Handoffs[i]
	d := HandoffDocument{Handoff: *h, Seq: i + 1}
	if h.Task != "" {
		d.Attempt = record.AttemptOf(h.Session)
		d.Title = t.Title(h.Task)
	}
	if id := sourceTask(h); id != "" {
		d.SourceTitle = t.Title(id)
	}
	return d
}

// sourceTask returns the task whose result a decision is about; empty for other context.
func sourceTask(h *event.Handoff) task.ID {
	switch h.Source.Kind {
	case handoff.Dependency, handoff.Files, handoff.Folder, handoff.Condition:
		id, _, _ := strings.Cut(h.Source.Name, record.TurnPrefix)
		return task.ID(id)
	}
	return ""
}
