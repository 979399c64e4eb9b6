package team

import (
	"fmt"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// A description that the coordinator wrote, or a goal that became a task, is an
// envelope of its own. It reaches its agent through the gate as a result would,
// in the run that planned it and in every run of the saved plan.

// provenanceOf is the provenance of a description that was taken from an envelope.
func provenanceOf(e *envelope.Envelope) *task.Provenance {
	h := e.Header()
	return &task.Provenance{From: h.Producer, Envelope: string(h.ID), Run: h.Run, CreatedAt: h.CreatedAt, ExpiresAt: h.ExpiresAt}
}

// checkProvenance checks a description that is context. Its title and role stand
// in prompts outside of any fence, so they are held to what a plan's are.
func (c *checker) checkProvenance(i int, s *task.Spec) {
	p := s.Provenance
	if p == nil {
		return
	}
	add := func(message, hint string, tokens ...any) {
		c.add(task.Problem{Pointer: naming.Pointer(append([]any{"tasks", i}, tokens...)...), Subject: subjectOf(s), Message: message, Hint: hint, Err: task.ErrInvalid})
	}
	const own = "word it differently, or remove provenance if the task is your own"
	if p.From != handoff.Coordinator && p.From != handoff.User {
		add(fmt.Sprintf("provenance: from: %q wrote no description", p.From), "write coordinator or user, or remove provenance if the task is your own", "provenance", "from")
	}
	if !p.ExpiresAt.IsZero() && !p.ExpiresAt.After(p.CreatedAt) {
		add("provenance: it expires before it was made", "remove expiresAt, or plan again", "provenance", "expiresAt")
	}
	for _, line := range []string{p.Envelope, p.Run} {
		if err := naming.CheckLine(line); line != "" && err != nil {
			add("provenance: "+err.Error(), "write one clean line, or leave it out", "provenance")
		}
	}
	if err := handoff.Harmless(s.Title); err != nil {
		add("its planned title: "+err.Error(), own, "title")
	}
	if err := handoff.Harmless(s.Role); err != nil {
		add("its planned role: "+err.Error(), own, "role")
	}
}

// plannedTexts returns the descriptions of a plan that are context, by task; nil
// for the others, and if there are none.
func (r *run) plannedTexts(p *Plan) ([]*envelope.Envelope, error) {
	var list []*envelope.Envelope
	for i := range p.graph.Len() {
		t := p.graph.Task(i)
		if t.Provenance == nil {
			continue
		}
		if list == nil {
			list = make([]*envelope.Envelope, p.graph.Len())
		}
		h := envelope.Header{
			ID: "plan/" + envelope.ID(t.ID), Producer: t.Provenance.From, Run: r.id, Classification: t.Classification,
			CreatedAt: t.Provenance.CreatedAt, ExpiresAt: t.Provenance.ExpiresAt,
		}
		if h.CreatedAt.IsZero() {
			h.CreatedAt = r.start
		}
		if from := t.Provenance.Envelope; from != "" {
			h.DerivedFrom = []envelope.ID{envelope.ID(from)}
		}
		e, err := envelope.New(h, envelope.Text(t.Description))
		if err != nil {
			return nil, fmt.Errorf("task %q: %w", t.Title, err)
		}
		list[i] = e
	}
	return list, nil
}

// plannedText returns the description of a task as context, or nil if it is the
// caller's own.
func (r *run) plannedText(i int) *envelope.Envelope {
	if r.planned == nil {
		return nil
	}
	return r.planned[i]
}
