package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/task"
)

// A name that reads like a number is an error, since it would stand for another agent.
func TestHideIdentityRefusesNamesThatReadLikeNumbers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"agent 2", "Agent 12", "agent", "former agent"} {
		_, err := newRoster(plan.Config{Agents: []plan.Member{{Name: name, Agent: unused}}, Policy: &handoff.Policy{HideIdentity: true}})
		found, ok := errors.AsType[task.Problems](err)
		require.True(t, ok, name)
		require.Len(t, found, 1)
		require.Equal(t, "/policy/hideIdentity", found[0].Pointer)
		require.ErrorIs(t, found[0], handoff.ErrPolicy)
	}
}

// A policy with one bad rule is no policy: there is no team.
//
// Requirement: G2.
func TestOneInvalidRuleRefusesTheTeam(t *testing.T) {
	t.Parallel()
	good := handoff.PairRule{From: "maker", To: "reader", Mode: handoff.Minimal}
	for name, bad := range map[string]handoff.PairRule{
		"an unknown mode":  {From: "reader", To: "maker", Mode: "open"},
		"an unknown agent": {From: "nobody", To: "maker", Mode: handoff.Full},
		"a second rule":    {From: "maker", To: "reader", Mode: handoff.Full},
		"no path":          {From: "reader", To: "maker", Allow: []task.Path{"score"}},
		"an empty list":    {From: "reader", To: "maker", Allow: []task.Path{}},
	} {
		r, err := plan.New(plan.Config{Agents: []plan.Member{member("maker"), member("reader")}, Policy: &handoff.Policy{Rules: []handoff.PairRule{good, bad}}})
		require.Nil(t, r, name)
		var found task.Problems
		require.ErrorAs(t, err, &found, name)
		require.True(t, strings.HasPrefix(found[0].Pointer, "/policy/rules/1"), "%s: %v", name, found[0].Pointer)
	}
}
