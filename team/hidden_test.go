package team_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// A hiddenValue is a value that the caller may not see, and what a task about it takes.
type hiddenValue struct {
	input   string
	replies []llm.Response
	closed  string // what the caller may not see of the answer
}

// Two runs that differ in a value above the caller, in its length and its members, in the turns,
// calls of tools, messages, children and transfers that it causes and in what they take, give the caller equal bytes.
//
// Requirement: G68.
func TestPairsOfHiddenValuesGiveEqualBytes(t *testing.T) {
	t.Parallel()
	answer := func(text string, in, out int) llm.Response {
		r := says(text)
		r.Usage = llm.Usage{InputTokens: in, OutputTokens: out, CachedTokens: in / 2, ReasoningTokens: out / 2}
		return r
	}
	long := strings.Repeat("a much longer value ", 3000)
	values := map[string]hiddenValue{
		"short":      {input: "x", replies: []llm.Response{answer("y", 3, 1)}},
		"long input": {input: long, replies: []llm.Response{answer("y", 30000, 1)}},
		"long reply": {input: "x", replies: []llm.Response{answer(long, 3, 40000)}},
		"members":    {input: `{"a":1,"b":[1,2,3],"c":{"d":"ann@example.com"}}`, replies: []llm.Response{answer(`{"a":1,"b":2}`, 9, 9)}},
		"calls":      {input: "x", replies: []llm.Response{calls("lookup", `{"name":"Ann"}`), calls("lookup", `{"name":"nobody"}`), answer("y", 500, 60)}},
		"reasons":    {input: "x", replies: []llm.Response{{Text: "y", Reasoning: long, CallInfo: llm.CallInfo{FinishReason: "stop"}}}},
		"refused":    {input: "x", replies: []llm.Response{calls("lookup", `{"nobody":1}`), calls("guess", `{}`), calls("send_handoff", `{"to":"open"}`), answer("y", 5, 6)}},
		"messages":   {input: "x", replies: []llm.Response{calls("send_handoff", `{"to":"other","message":"ask"}`), calls("send_handoff", `{"to":"other","message":"ask again"}`), answer("y", 5, 6)}},
		"children":   {input: "x", replies: []llm.Response{calls("spawn_agent", `{"goal":"find it"}`), says("found"), answer("y", 5, 6)}},
		"delegates":  {input: "x", replies: []llm.Response{calls("delegate_to_agent", `{"to":"other","goal":"find it"}`), answer("y", 5, 6)}},
		"transfers":  {input: "x", replies: []llm.Response{calls("lookup", `{"name":"Ann"}`), calls("transfer_to_other", `{"reason":"it is yours"}`)}},
		"cut":        {input: strings.Repeat(long, 20), replies: []llm.Response{answer("y", 3, 1)}},
	}
	want := shownOfHidden(t, values["short"])
	require.Contains(t, want, `"partial":true`)
	for name, v := range values {
		require.Equal(t, want, shownOfHidden(t, v), name)
	}
}

// shownOfHidden returns all that the caller of a run with a hidden value gets.
func shownOfHidden(t *testing.T, v hiddenValue) (shown string) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		logs := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		closed, open := &chat{replies: v.replies}, &chat{replies: []llm.Response{says("open"), says("open")}}
		other := team.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: "other"}, nil })
		tm, err := team.New(team.Config{
			Agents: []team.Member{
				{Name: "closed", Backend: team.Backend{Model: "m"}, Accepts: label.Confidential, Agent: agent.New(closed, agent.Options{}), Spawn: &team.Spawning{Max: 2}, Tools: []*tool.Tool{lookup(t, tool.Options{Effect: tool.None, Accepts: label.Confidential})}},
				{Name: "other", Accepts: label.Confidential, Agent: other},
				{Name: "open", Backend: team.Backend{Model: "m"}, Agent: agent.New(open, agent.Options{})},
			},
			Edges:  []handoff.Edge{{From: "closed", To: "other", Delegate: true, Transfer: true}},
			Prices: map[string]llm.Price{"m": {Input: 3, Output: 15}},
			Logger: logs,
		})
		require.NoError(t, err)
		var events []event.Event
		res, err := tm.RunTasks(t.Context(), []task.Spec{
			{Title: "Open", Description: "Say.", Assignee: "open"},
			{Title: "Closed", Description: "Say.", Assignee: "closed", Uses: []task.Use{{Name: "key"}}, DependsOn: task.On("Open")},
			{Title: "Other", Description: "Say.", Assignee: "other", DependsOn: task.On("Closed")},
		}, &team.RunOptions{
			RunID: "r", Output: "Open", UserAccepts: new(label.Internal), Inputs: []team.Input{{Name: "key", Text: v.input, Classification: label.Confidential, Cut: true}},
			Budget:      team.Budget{MaxTokenBudget: 1 << 20, MaxCostBudget: llm.Dollars(10)},
			Subscribers: []func(event.Event){func(e event.Event) { events = append(events, e) }},
		})
		require.NoError(t, err)
		require.Equal(t, team.StatusOK, res.Status, "%+v", res.Tasks)
		require.Empty(t, closed.replies, "all happened")
		encoder := json.NewEncoder(&out)
		require.NoError(t, encoder.Encode(res))
		for _, e := range events {
			require.NoError(t, encoder.Encode(e))
		}
		for _, task := range res.Tasks {
			task.Envelope = nil // for programs, which may give it to another run
			require.NoError(t, encoder.Encode(task))
		}
		shown = out.String()
	})
	return shown
}
