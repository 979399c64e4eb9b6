package gate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawEntries adds to a policy what it may say of one pair besides a rule.
func drawEntries(t *rapid.T, p *handoff.Policy, from, to string) {
	entry := handoff.Entry{Name: from + " to " + to, From: from, To: to, Reason: "r"}
	if rapid.Bool().Draw(t, "declassifies") {
		p.Declassify = append(p.Declassify, handoff.Declassifier{
			Entry: entry, Paths: []task.Path{rapid.SampledFrom([]task.Path{"/a/**", "/*/**"}).Draw(t, "lowered")},
			LowerTo: rapid.SampledFrom([]label.Classification{label.Public, label.Internal}).Draw(t, "lower to"), UnsafeText: rapid.Bool().Draw(t, "unsafe"),
		})
	}
	if entry.Name += ", endorsed"; rapid.Bool().Draw(t, "endorses") {
		p.Endorse = append(p.Endorse, handoff.Endorser{Entry: entry})
	}
	if entry.Name += ", renewed"; rapid.Bool().Draw(t, "renews") {
		p.Renew = append(p.Renew, handoff.Renewal{Entry: entry, TTL: time.Duration(rapid.IntRange(1, 3).Draw(t, "hours")) * time.Hour})
	}
}

// drawRulebook draws what a policy says of analyst and critic, for writer.
func drawRulebook(t *rapid.T) *gate.Rulebook {
	p := handoff.Policy{Default: rapid.SampledFrom([]handoff.Mode{"", handoff.Full, handoff.Scoped}).Draw(t, "default"), HideIdentity: rapid.Bool().Draw(t, "hides"), NoTranslationByModel: rapid.IntRange(0, 3).Draw(t, "no model translates") == 0}
	maxRules := rapid.IntRange(0, 5).Draw(t, "maximum of rules") // under many rules almost nothing is delivered
	for _, pair := range [][2]string{{"analyst", "writer"}, {"critic", "writer"}, {"analyst", handoff.Anyone}, {"critic", handoff.Anyone}, {handoff.Anyone, "writer"}} {
		if len(p.Rules) < maxRules && rapid.Bool().Draw(t, "rule") {
			r := rules(t, pair[0], pair[1])
			if rapid.Bool().Draw(t, "ceiling") {
				r.Ceiling = new(levels().Draw(t, "most"))
			}
			if rapid.Bool().Draw(t, "redacts") {
				r.Redact = handoff.Redaction{Kinds: []redact.Kind{redact.IP}}
			}
			if r.Mode == "" && r.Allow == nil {
				r.Translate = rapid.SampledFrom([]*handoff.Translation{nil, {MaxTokens: 5}, {MaxTokens: 9}, {MaxTokens: 7, ByModel: true}, {Recast: "system"}}).Draw(t, "translated")
			}
			if pair[0] != handoff.Anyone && pair[1] == "writer" && rapid.Bool().Draw(t, "reveals") {
				r.Reveal = map[redact.Kind][]task.Path{redact.Email: {rapid.SampledFrom([]task.Path{"", "/a", "/*/**"}).Draw(t, "revealed")}}
			}
			p.Rules = append(p.Rules, r)
		}
	}
	for _, from := range []string{"analyst", "critic"} {
		drawEntries(t, &p, from, "writer")
	}
	own := handoff.Policy{Default: p.Default, HideIdentity: p.HideIdentity, NoTranslationByModel: p.NoTranslationByModel}
	b := rulebook(t, own)
	with := func(change func(p *handoff.Policy)) { // unless it does not load with that
		more := own
		change(&more)
		if made, err := gate.Compile(&more, parties); err == nil {
			own, b = more, made
		}
	}
	for i := range p.Rules {
		with(func(more *handoff.Policy) { more.Rules = append(slices.Clip(own.Rules), p.Rules[i]) })
	}
	for i := range p.Declassify {
		with(func(more *handoff.Policy) { more.Declassify = append(slices.Clip(own.Declassify), p.Declassify[i]) })
	}
	for i := range p.Endorse {
		with(func(more *handoff.Policy) { more.Endorse = append(slices.Clip(own.Endorse), p.Endorse[i]) })
	}
	for i := range p.Renew {
		with(func(more *handoff.Policy) { more.Renew = append(slices.Clip(own.Renew), p.Renew[i]) })
	}
	return b
}

// Requirement: G62.
func TestChainGetsWhatEachOfItsAgentsMayPass(t *testing.T) {
	t.Parallel()
	delivered := 0
	rapid.Check(t, func(t *rapid.T) {
		b, need, o := drawRulebook(t), drawNeed(t), drawOffer(t)
		names := rapid.SampledFrom([][]string{{"analyst", "critic"}, {"critic", "analyst"}, {"analyst", "critic", "analyst"}}).Draw(t, "holders")
		chain := names[len(names)-1]
		for _, name := range slices.Backward(names[:len(names)-1]) {
			chain = naming.Chain(name, chain)
		}
		terms := b.Between(chain, "writer")
		leaves := func(from string) map[int][]string {
			g := gate.WholeOf(upstream, "")
			if need != nil {
				g.Paths = need
			}
			g.Terms = b.Between(from, "writer")
			h := header()
			h.Producer = from
			e, err := envelope.New(h, o.Envelope.Open())
			require.NoError(t, err)
			own := *o
			own.Envelope, own.Optional = e, true
			d, err := granted(t, []gate.Grant{g}).Decide(t.Context(), &own, noon)
			require.NoError(t, err)
			sealed, err := granted(t, []gate.Grant{g}).Seal(&own, &d)
			if err != nil {
				return nil
			}
			return numbers(t, sealed.Payload())
		}
		for _, name := range names {
			require.Empty(t, terms.Widens(b.Between(name, "writer"), true), "%s gets more than of %s", chain, name)
		}
		if terms.Summarizes() { // an excerpt is compared by its terms alone
			return
		}
		passed := leaves(chain)
		for leaf := range passed {
			for _, name := range names {
				require.Contains(t, leaves(name), leaf, "of %s", name)
			}
		}
		if len(passed) > 0 {
			delivered++
		}
	})
	require.Positive(t, delivered)
}

func TestChainOfHiddenNames(t *testing.T) {
	t.Parallel()
	b := rulebook(t, handoff.Policy{HideIdentity: true})
	require.Equal(t, "agent 1 > agent 3 > former agent", b.ShownName("analyst > critic > somebody"))
}
