package gate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
)

// A contract names the tools that the task lets the agent call. More than the agent declares are
// refused, and none is disclosed by default.
// Requirement: G21.
func TestContractDisclosesTools(t *testing.T) {
	t.Parallel()
	caps := &gate.Capabilities{Agent: "clerk", Tools: []string{"search", "mail"}}
	k, err := gate.Negotiate(gate.Request{Session: "s", Tools: []string{"mail"}}, caps)
	require.NoError(t, err)
	require.Equal(t, []string{"mail"}, k.Tools)
	require.True(t, k.Discloses("mail"))
	require.False(t, k.Discloses("search"), "the task does not grant it")

	k, err = gate.Negotiate(gate.Request{Session: "s"}, caps)
	require.NoError(t, err)
	require.Empty(t, k.Tools)
	require.False(t, k.Discloses("mail"))

	_, err = gate.Negotiate(gate.Request{Session: "s", Tools: []string{"mail", "pay"}}, caps)
	var refused *gate.Refusal
	require.ErrorAs(t, err, &refused)
	require.Equal(t, gate.RuleTools, refused.Rule)
	require.Equal(t, `"clerk" does not declare the tools pay`, refused.Reason)
	require.NotEmpty(t, refused.Hint)
}

// The contract has the summary of the task only for a reader who is cleared for it.
func TestContractKeepsTheSummaryForClearedReaders(t *testing.T) {
	t.Parallel()
	for level := label.Public; level <= label.Secret; level++ {
		for accepts := label.Public; accepts <= label.Secret; accepts++ {
			k, err := gate.Negotiate(gate.Request{Session: "s", Classification: label.Public, Summary: gate.Summary{Text: "Settle the claim", Classification: level}},
				&gate.Capabilities{Agent: "clerk", Accepts: accepts, Produces: accepts})
			require.NoError(t, err)
			require.Equal(t, level <= accepts, k.Summary == "Settle the claim", "%v for %v", level, accepts)
			require.Equal(t, level > accepts, k.Summary == "", "%v for %v", level, accepts)
		}
	}
}
