package gate_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/stretchr/testify/require"
)

// carriers holds every carrier with its name and the rule that lets it through.
var carriers = map[handoff.SourceKind]struct {
	name string
	rule handoff.Rule
}{
	handoff.Dependency: {"dependency", gate.RuleDependsOn},
	handoff.Input:      {"input", gate.RuleUses},
	handoff.Memory:     {"memory", gate.RuleMemory},
	handoff.Message:    {"message", gate.RuleMessage},
	handoff.Goal:       {"goal", gate.RuleGoal},
	handoff.Roster:     {"roster", gate.RuleRoster},
	handoff.Plan:       {"plan", gate.RulePlan},
	handoff.Fault:      {"fault", gate.RuleFault},
	handoff.Digest:     {"digest", gate.RuleDigested},
	handoff.Draft:      {"draft", gate.RuleDraft},
	gate.Reasoning:     {"reasoning", gate.RuleResult},
}

func TestCarriersHaveNames(t *testing.T) {
	t.Parallel()
	for kind, c := range carriers {
		require.Equal(t, c.name, string(kind))
	}
}

func TestRuleNamesWhatGranted(t *testing.T) {
	t.Parallel()
	seen := map[handoff.Rule]bool{gate.RuleDigest: true}
	for kind, carrier := range carriers {
		require.Equal(t, carrier.rule, decide(t, granting(t, kind), offerOf(t, kind)).Rule)
		require.False(t, seen[carrier.rule], "%s means one thing", carrier.rule)
		seen[carrier.rule] = true
	}
	require.Equal(t, gate.RuleGrant, decide(t, granting(t, "other"), offerOf(t, "other")).Rule)
}

// Requirement: G1.
func TestEachCarrierNeedsAGrantOfItsOwn(t *testing.T) {
	t.Parallel()
	for kind := range carriers {
		for other := range carriers {
			if kind != other { // of the same name
				requireWithheld(t, granting(t, other), offerOf(t, kind), gate.RuleGrant, gate.ReasonRule, gate.CodeWithheld)
			}
		}
	}
}

// granting returns a gate that lets one source of the given kind through.
func granting(t *testing.T, kind handoff.SourceKind) *gate.Compartment {
	return granted(t, []gate.Grant{gate.WholeOf(gate.Source{Kind: kind, Name: "n"}, "")})
}

// offerOf returns an offer of that source.
func offerOf(t *testing.T, kind handoff.SourceKind) *gate.Offer {
	o := offer(t, envelope.Text("x"))
	o.Source = gate.Source{Kind: kind, Name: "n"}
	return o
}

// A record of a later version may have kinds that this version cannot show for what they are.
func TestStoredSourcesHaveKnownKinds(t *testing.T) {
	t.Parallel()
	for kind := range carriers {
		var s gate.Source
		require.NoError(t, json.Unmarshal(fmt.Appendf(nil, `{"kind":%q,"name":"x"}`, kind), &s))
		require.Equal(t, gate.Source{Kind: kind, Name: "x"}, s)
	}
	var d gate.Decision
	require.ErrorContains(t, json.Unmarshal([]byte(`{"source":{"kind":"rumor","name":"x"}}`), &d), `unknown kind of context "rumor"`)
}
