package team_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// The receipt of each prompt, of later turns too, has what the handshake fixed: what the task is about,
// and the tools that the agent may call. A tool of the agent that the task does not name is not among
// them, and cannot be called. The plan shows the same.
// Requirement: G21.
func TestReceiptHasTheContract(t *testing.T) {
	t.Parallel()
	find := lookup(t, tool.Options{Effect: tool.None})
	other := *find
	other.Name = "other"
	model := &chat{replies: []llm.Response{calls("lookup", `{"name":"ann"}`), calls("other", `{"name":"ann"}`), says("23")}}
	tm, err := team.New(team.Config{Agents: []team.Member{
		{Name: "clerk", Agent: agent.New(model, agent.Options{}), Tools: []*tool.Tool{find, &other}}, {Name: "writer", Agent: answering("done"), Accepts: label.Confidential},
	}})
	require.NoError(t, err)
	specs := []task.Spec{
		{Title: "Find the age", Description: "How old is Ann?", Assignee: "clerk", Tools: []string{"lookup"}, Timeout: time.Minute},
		{Title: "Write it", Description: "Write.", Assignee: "writer"},
	}
	p, err := tm.Plan(specs, nil)
	require.NoError(t, err)
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	require.Contains(t, string(raw), `"tools":["lookup"]`)
	res, err := tm.RunTasks(t.Context(), specs, nil)
	require.NoError(t, err)
	require.Len(t, res.Tasks[0].Receipts, 3)
	bounds := &prompt.Bounds{Clearance: label.Internal, MaxInput: label.Internal, MaxOutput: label.Internal, SessionMs: 60_000}
	for _, r := range res.Tasks[0].Receipts {
		require.Equal(t, prompt.Agreement{Caller: "user", Summary: "Find the age", Tools: []string{"lookup"}, Bounds: bounds}, r.Contract)
	}
	require.Contains(t, model.requests[2].Messages[4].Text, "Unknown tool. Available tools: lookup.")
	require.Equal(t, prompt.Agreement{Caller: "user", Summary: "Write it", Bounds: &prompt.Bounds{Clearance: label.Confidential, MaxInput: label.Internal, MaxOutput: label.Internal}}, res.Tasks[1].Receipts[0].Contract)
	raw, err = json.Marshal(res.Tasks[0].Receipts[0])
	require.NoError(t, err)
	require.Contains(t, string(raw), `"contract":{"caller":"user","taskSummary":"Find the age","toolsDisclosed":["lookup"],"bounds":{"clearance":"internal","maxInput":"internal","maxOutput":"internal","sessionMs":60000}}`)
}
