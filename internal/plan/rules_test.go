package plan_test

import (
	"errors"
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
