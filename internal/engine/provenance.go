package engine

import (
	"fmt"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/provenance"
)

// A description that the coordinator wrote, or a goal that became a task, is an
// envelope of its own. It reaches its agent through the gate as a result would,
// in the run that planned it and in every run of the saved plan.

// provenanceOf is the provenance of a description that was taken from an envelope.
func provenanceOf(e *envelope.Envelope) *provenance.Record {
	h := e.Header()
	return &provenance.Record{From: h.Producer, Envelope: string(h.ID), Run: h.Run, CreatedAt: h.CreatedAt, ExpiresAt: h.ExpiresAt}
}

// plannedTexts returns the descriptions of a plan that are context, by task; nil
// for the others, and if there are none.
func (r *results) plannedTexts() ([]*envelope.Envelope, error) {
	var list []*envelope.Envelope
	p := r.plan
	for i := range p.Graph.Len() {
		t := p.Graph.Task(i)
		if t.Source.Record == nil {
			continue
		}
		if list == nil {
			list = make([]*envelope.Envelope, p.Graph.Len())
		}
		h := envelope.Header{
			ID: "plan/" + envelope.ID(t.ID), Producer: t.Source.Record.From, Run: r.id, Classification: t.Classification,
			CreatedAt: t.Source.Record.CreatedAt, ExpiresAt: t.Source.Record.ExpiresAt,
		}
		if h.CreatedAt.IsZero() {
			h.CreatedAt = r.start
		}
		if from := t.Source.Record.Envelope; from != "" {
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
func (r *results) plannedText(i int) *envelope.Envelope {
	if r.planned == nil {
		return nil
	}
	return r.planned[i]
}
