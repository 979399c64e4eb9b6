package gate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A decision names the rule or entry that changed what passes, and its line, also if that states no mode.
//
// Requirement: G44.
func TestDecisionsNameTheRuleThatChangesWhatPasses(t *testing.T) {
	t.Parallel()
	short := &handoff.Translation{MaxTokens: 10}
	entry := handoff.Entry{Name: "checked", From: "analyst", To: "writer", Reason: "a person read it", Origin: provenance.Position{File: "team.yaml", Line: 7}}
	rule := func(id handoff.Rule, from, to string, with handoff.PairRule) handoff.PairRule {
		with.ID, with.From, with.To, with.Origin = id, from, to, provenance.Position{File: "team.yaml", Line: 3}
		return with
	}
	grant := gate.Citation{Rule: gate.RuleDependsOn, Line: "team.yaml:12 dependsOn"}
	for _, tt := range []struct {
		name string
		p    handoff.Policy
		want gate.Citation
	}{
		{"no rule", handoff.Policy{}, grant},
		{"a rule that only limits the label", handoff.Policy{Rules: []handoff.PairRule{rule("r", "analyst", "writer", handoff.PairRule{Ceiling: new(label.Secret)})}}, grant},
		{"a rule that only translates", handoff.Policy{Rules: []handoff.PairRule{rule("short", "analyst", "writer", handoff.PairRule{Translate: short})}}, gate.Citation{Rule: "short", Line: "team.yaml:3"}},
		{"a rule that has a model translate", handoff.Policy{Rules: []handoff.PairRule{rule("told", "analyst", "writer", handoff.PairRule{Translate: &handoff.Translation{MaxTokens: 10, ByModel: true}})}}, gate.Citation{Rule: "told", Line: "team.yaml:3"}},
		{"the first of two by name", handoff.Policy{Rules: []handoff.PairRule{rule("z", "*", "writer", handoff.PairRule{Translate: short}), rule("b", "*", "writer", handoff.PairRule{Translate: short})}}, gate.Citation{Rule: "b", Line: "team.yaml:3"}},
		{"a rule with a mode, before one that translates", handoff.Policy{Rules: []handoff.PairRule{rule("whole", "analyst", "writer", handoff.PairRule{Mode: handoff.Full}), rule("short", "*", "writer", handoff.PairRule{Translate: short})}}, gate.Citation{Rule: "whole", Line: "team.yaml:3"}},
		{"an endorser", handoff.Policy{Endorse: []handoff.Endorser{{Entry: entry}}}, gate.Citation{Rule: "checked", Line: "team.yaml:7"}},
		{"a renewal", handoff.Policy{Renew: []handoff.Renewal{{Entry: entry, TTL: time.Hour}}}, gate.Citation{Rule: "checked", Line: "team.yaml:7"}},
		{"what is recast without an endorser", handoff.Policy{Rules: []handoff.PairRule{rule("as system", "analyst", "writer", handoff.PairRule{Translate: &handoff.Translation{Recast: gate.RecastSystem}})}}, gate.Citation{Rule: "as system", Line: "team.yaml:3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			lives := func(h *envelope.Header) {
				if tt.p.Renew != nil {
					h.CreatedAt, h.ExpiresAt = noon.Add(-time.Minute), noon
				}
			}
			d := decide(t, under(t, tt.p), offer(t, envelope.Text("a story"), lives))
			require.Equal(t, tt.want, gate.Citation{Rule: d.Rule, Line: d.Line})
		})
	}
}

// The structured part of a result says the same as its text, so the size of a decision counts one of them.
func TestAResultCountsOnce(t *testing.T) {
	t.Parallel()
	const value = `{"score":7}`
	for _, as := range []task.Payload{"", task.Output, task.Structured, task.Both} {
		o := offer(t, structured(t, value).WithText(value))
		o.As = as
		d := decide(t, newCompartment(t), o)
		require.Equal(t, gate.Sizes{BytesBefore: len(value), BytesAfter: len(value)}, d.Sizes, "delivered as %q", as)
		require.Zero(t, d.TokensSaved())
	}
	o := offerOf(t, handoff.Message)
	o.Envelope = envelopeOf(t, structured(t, value).WithText("the score"))
	o.As = task.Both
	g := gate.WholeOf(o.Source, "edge")
	require.Equal(t, len("the score")+len(value), decide(t, granted(t, []gate.Grant{g}), o).BytesAfter, "a message says two things")
}

// A decision has the provenance of the value, at most twenty of its parents, and none of them unless the offer says that
// they may be shown. Its reader, and a viewer who may not see the value, are told nothing of it.
func TestDecisionsHaveTheProvenanceOfTheValue(t *testing.T) {
	t.Parallel()
	parents := make([]envelope.ID, 25)
	for i := range parents {
		parents[i] = envelope.ID(rune('a' + i))
	}
	o := offer(t, envelope.Text("a story"), func(h *envelope.Header) { h.DerivedFrom, h.Tags = parents, []string{"draft"} })
	d := decide(t, newCompartment(t), o)
	require.Equal(t, gate.Provenance{CreatedAt: noon, Tags: []string{"draft"}}, d.Provenance)
	o.ShowsParents = true
	d = decide(t, newCompartment(t), o)
	require.Equal(t, gate.Provenance{CreatedAt: noon, DerivedFrom: parents[:20], MoreParents: 5, Tags: []string{"draft"}}, d.Provenance)
	require.Zero(t, d.Outline().Provenance)
	require.Zero(t, d.ForReader().Provenance)
	c := d.Clone()
	c.DerivedFrom[0], c.Tags[0] = "x", "x"
	require.Equal(t, envelope.ID("a"), o.Envelope.Header().DerivedFrom[0])
	require.Equal(t, "draft", o.Envelope.Header().Tags[0])
}

// The terms of a pair are made from the rules once, and not again for each piece of context. The test counts allocations,
// so it is not parallel.
func TestTermsOfAPairAreMadeOnce(t *testing.T) {
	p := handoff.Policy{}
	for _, to := range []string{"writer", "critic", "*"} {
		p.Rules = append(p.Rules, handoff.PairRule{From: "analyst", To: to, Block: []task.Path{"notes"}})
	}
	b := rulebook(t, p)
	first := b.Between("analyst", "writer")
	require.Same(t, first, b.Between("analyst", "writer"))
	require.NotSame(t, first, b.Between("analyst", "critic"))
	require.Zero(t, testing.AllocsPerRun(100, func() { b.Between("analyst", "writer") }))
}
