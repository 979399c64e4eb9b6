package plan_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/task"
)

// Problems with what an agent says of itself point at the agent.
func TestIntakeProblemsPointAtTheAgent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pointer string
		mode    handoff.Mode
		give    plan.Intake
	}{
		{"/agents/1/allowedContextFields/0", "", plan.Intake{AllowedContextFields: []task.Path{"x"}}},
		{"/agents/1/allowedContextFields", handoff.Full, plan.Intake{AllowedContextFields: []task.Path{"/x"}}},
		{"/agents/1/blockedContextFields/1", "", plan.Intake{BlockedContextFields: []task.Path{"/a", "/~x"}}},
		{"/agents/1/translate", "", plan.Intake{Translate: &handoff.Translation{}}},
		{"/agents/1/maxContextTokens", "", plan.Intake{MaxContextTokens: -1}},
		{"/agents/1/handoff", "most", plan.Intake{}},
	}
	for _, tt := range tests {
		t.Run(tt.pointer, func(t *testing.T) {
			t.Parallel()
			_, err := newRoster(plan.Config{Agents: []plan.Member{{Name: "a", Agent: unused}, {Name: "b", Agent: unused, Receives: plan.Receives{Handoff: tt.mode, Intake: tt.give}}}})
			found, ok := errors.AsType[task.Problems](err)
			require.True(t, ok)
			require.Equal(t, tt.pointer, found[0].Pointer)
			require.NotEmpty(t, found[0].Message)
		})
	}
}
