package gate

import (
	"maps"
	"slices"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// A conversation that was transferred has several holders, and its result is made by all of them. Its
// producer is the chain of their names, and what a policy says of it is what it says of each of them:
// whatever asks for the terms of a producer therefore gets the intersection.

// ofChain returns the terms of what the agents of a chain made together.
func (b *Rulebook) ofChain(from, to string) *Terms {
	names := naming.Distinct(from)
	t := b.between(names[0], to)
	for _, name := range names[1:] {
		intersect(t, b.between(name, to))
	}
	t.from, t.redactor = from, b.redactorFor(to, t.added)
	return t
}

// intersect narrows terms to what other terms of the same reader let through too. What the two say in
// ways that cannot both be done is delivered as a heading.
func intersect(t, o *Terms) {
	if !sameLowering(t, o) { // with another ceiling, it would lower what one of them delivers as it is
		t.lower = nil
	}
	if narrower(t.mode, o.mode) != t.mode || t.stated.Rule == "" {
		t.stated = o.stated
	}
	t.mode, t.exact, t.needs = narrower(t.mode, o.mode), t.exact && o.exact, t.needs || o.needs
	if x, y := t.translation, o.translation; x.recast != y.recast || x.maxTokens > 0 && y.maxTokens > 0 && x.byModel != y.byModel {
		t.mode = handoff.Minimal
	}
	t.selection = t.selection.And(o.selection)
	if t.narrows.Rule == "" {
		t.narrows = o.narrows
	}
	if o.ceiling < t.ceiling {
		t.ceiling, t.ceilingBy = o.ceiling, o.ceilingBy
	}
	t.translation.join(o.translation)
	t.reveal, t.added = commonReveal(t.reveal, o.reveal), t.added.and(o.added)
	if o.endorse == nil {
		t.endorse = nil
	}
	switch {
	case t.renew == nil || o.renew == nil:
		t.renew = nil
	case o.renew.TTL < t.renew.TTL:
		t.renew = o.renew
	}
	for _, c := range o.cited {
		if !slices.Contains(t.cited, c) {
			t.cited = append(t.cited, c)
		}
	}
}

// join adds another translation of the same value.
func (x *translation) join(o translation) {
	if !x.active {
		x.by = o.by
	}
	x.active, x.byModel, x.off = x.active || o.active, x.byModel || o.byModel, x.off || o.off
	if o.maxTokens > 0 && (x.maxTokens == 0 || o.maxTokens < x.maxTokens) {
		x.maxTokens = o.maxTokens
	}
}

// commonReveal returns what both reveal.
func commonReveal(a, b map[redact.Kind][]task.Path) map[redact.Kind][]task.Path {
	common := map[redact.Kind][]task.Path{}
	for kind, paths := range a {
		for _, p := range paths {
			if pathsWithin([]task.Path{p}, b[kind]) {
				common[kind] = append(common[kind], p)
			}
		}
		for _, p := range b[kind] {
			if !slices.Contains(common[kind], p) && pathsWithin([]task.Path{p}, paths) {
				common[kind] = append(common[kind], p)
			}
		}
	}
	maps.DeleteFunc(common, func(_ redact.Kind, paths []task.Path) bool { return len(paths) == 0 })
	return common
}

// sameLowering reports whether two terms lower the same values in the same way.
func sameLowering(t, o *Terms) bool {
	a, b := t.lower, o.lower
	return a != nil && b != nil && a.LowerTo == b.LowerTo && a.UnsafeText == b.UnsafeText && a.Approve == b.Approve && slices.Equal(a.Paths, b.Paths) &&
		t.ceiling == o.ceiling && t.exact == o.exact
}

// ProducerOf returns the producer that terms are of; empty for nil terms.
func ProducerOf(t *Terms) string {
	if t == nil {
		return ""
	}
	return t.from
}

// Limited returns terms with a ceiling that a rule which is no rule of the policy sets, such as the
// highest label of an edge.
func Limited(t *Terms, most label.Classification, by Citation, from, to string) *Terms {
	own := *t.orDefault()
	if t == nil {
		own.from, own.to, own.redactor = from, to, standardRedactor(to)
	}
	if most < own.ceiling {
		own.ceiling, own.ceilingBy = most, by
	}
	return &own
}

// Transferred returns the result of an agent to which another one transferred the conversation, as that
// of both: its producer is the chain, and it is at least as sensitive as the turn that transferred.
func Transferred(e *envelope.Envelope, by string, level label.Classification, id envelope.ID) (*envelope.Envelope, error) {
	h := e.Header()
	h.ID, h.Producer, h.Classification = id, naming.Chain(by, h.Producer), h.Classification.Join(level)
	return envelope.New(h, e.Open())
}

// MadeBy returns an envelope as one of a chain of producers; nil if it cannot be one, so that nothing is delivered.
func MadeBy(e *envelope.Envelope, producer string) *envelope.Envelope {
	h := e.Header()
	h.Producer = producer
	made, err := envelope.New(h, e.Open())
	if err != nil {
		return nil
	}
	return made
}

// AsBefore returns a result that was issued again as that of all agents that had made it.
func AsBefore(made, old *envelope.Envelope) (*envelope.Envelope, error) {
	h, was := made.Header(), old.Header()
	h.Producer, h.Classification, h.DerivedFrom, h.Tags = was.Producer, h.Classification.Join(was.Classification), was.DerivedFrom, was.Tags
	h.ExpiresAt = Earliest(h.ExpiresAt, was.ExpiresAt)
	return envelope.New(h, made.Open())
}
