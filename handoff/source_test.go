package handoff_test

import (
	"testing"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/stretchr/testify/require"
)

// carriers holds every carrier with its name and the rule that lets it through.
var carriers = map[handoff.SourceKind]struct {
	name string
	rule handoff.Rule
}{
	handoff.Dependency: {"dependency", handoff.RuleDependsOn},
	handoff.Input:      {"input", handoff.RuleUses},
	handoff.Memory:     {"memory", handoff.RuleMemory},
	handoff.Message:    {"message", handoff.RuleMessage},
	handoff.Goal:       {"goal", handoff.RuleGoal},
	handoff.Roster:     {"roster", handoff.RuleRoster},
	handoff.Plan:       {"plan", handoff.RulePlan},
	handoff.Fault:      {"fault", handoff.RuleFault},
	handoff.Digest:     {"digest", handoff.RuleDigested},
	handoff.Draft:      {"draft", handoff.RuleDraft},
	handoff.Reasoning:  {"reasoning", handoff.RuleResult},
}

func TestCarriersHaveNames(t *testing.T) {
	t.Parallel()
	for kind := range handoff.SourceKind(12) {
		want := "unknown"
		if c, ok := carriers[kind]; ok {
			want = c.name
		}
		require.Equal(t, want, kind.String())
		text, err := kind.MarshalText()
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
}

func TestRuleNamesWhatGranted(t *testing.T) {
	t.Parallel()
	seen := map[handoff.Rule]bool{handoff.RuleDigest: true}
	for kind, carrier := range carriers {
		require.Equal(t, carrier.rule, decide(t, granting(t, kind), offerOf(t, kind)).Rule)
		require.False(t, seen[carrier.rule], "%s means one thing", carrier.rule)
		seen[carrier.rule] = true
	}
	require.Equal(t, handoff.RuleGrant, decide(t, granting(t, 99), offerOf(t, 99)).Rule)
}

// Requirement: G1.
func TestEachCarrierNeedsAGrantOfItsOwn(t *testing.T) {
	t.Parallel()
	for kind := range carriers {
		for other := range carriers {
			if kind != other { // of the same name
				requireHeld(t, granting(t, other), offerOf(t, kind), handoff.RuleGrant, handoff.ReasonRule, handoff.CodeHeld)
			}
		}
	}
}

// granting returns a gate that lets one source of the given kind through.
func granting(t *testing.T, kind handoff.SourceKind) *handoff.Compartment {
	return granted(t, []handoff.Grant{handoff.WholeOf(handoff.Source{Kind: kind, Name: "n"}, "")})
}

// offerOf returns an offer of that source.
func offerOf(t *testing.T, kind handoff.SourceKind) *handoff.Offer {
	o := offer(t, envelope.Text("x"))
	o.Source = handoff.Source{Kind: kind, Name: "n"}
	return o
}
