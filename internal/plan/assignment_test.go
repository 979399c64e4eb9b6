package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

func TestTaskThatRequiresAToolGoesToAnAgentThatHasIt(t *testing.T) {
	t.Parallel()
	r, err := newRoster(plan.Config{Agents: []plan.Member{
		{Name: "reader", Agent: asksModel},
		{Name: "clerk", Agent: asksModel, Tools: []*tool.Tool{newTool(t, "lookup", tool.Options{Effect: tool.None})}},
	}})
	require.NoError(t, err)
	p, err := r.plan([]task.Spec{{Title: "Age", Description: "?", Requires: &task.Requires{Tools: []string{"lookup"}}}}, nil)
	require.NoError(t, err)
	require.Equal(t, "clerk", p.Tasks[0].Assignee)
	_, err = r.plan([]task.Spec{{Title: "Age", Description: "?", Requires: &task.Requires{Tools: []string{"search"}}}}, nil)
	require.ErrorContains(t, err, "search")
}
