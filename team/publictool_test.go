package team_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// A tool that accepts public context is called from a task that is public.
func TestToolForPublicContext(t *testing.T) {
	t.Parallel()
	model := &chat{replies: []llm.Response{calls("lookup", `{"name": "Ann"}`), says("Ann is 23.")}}
	tm, err := team.New(team.Config{Agents: []team.Member{{
		Name: "clerk", Agent: agent.New(model, agent.Options{}), Accepts: label.Public, Tools: []*tool.Tool{lookup(t, tool.Options{Effect: tool.None, Accepts: label.Public})},
	}}})
	require.NoError(t, err)
	res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Age", Description: "How old is Ann?", Assignee: "clerk", Classification: label.Public}}, nil)
	require.NoError(t, err)
	require.Contains(t, model.requests[1].Messages[2].Text, "Ann is 23 years old")
	require.Equal(t, label.Public, res.Tasks[0].Label)
}
