package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

type napArguments struct {
	Seconds int  `json:"seconds"`
	Fail    bool `json:"fail,omitempty"`
}

// nap is a tool that takes as long as its arguments say.
func nap(t testing.TB, name string) *tool.Tool {
	t.Helper()
	f, err := tool.New(name, "", func(ctx context.Context, in napArguments) (string, error) {
		select {
		case <-time.After(time.Duration(in.Seconds) * time.Second):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if in.Fail {
			return "", errors.New("bad dream")
		}
		return "slept", nil
	}, tool.Options{Effect: tool.None})
	require.NoError(t, err)
	return f
}

// together is a reply with several calls.
func together(all ...llm.Response) (r llm.Response) {
	for _, one := range all {
		r.ToolCalls = append(r.ToolCalls, one.ToolCalls...)
	}
	r.FinishReason = "tool_calls"
	return r
}

// sleeper is a team of an agent with two tools that take time, and one that has none.
func sleeper(t testing.TB, model llm.Model) *team.Team {
	t.Helper()
	tm, err := team.New(team.Config{Agents: []team.Member{
		{Name: "clerk", Agent: agent.New(named{model}, agent.Options{Retry: llm.RetryOptions{Extra: -1}}), Tools: []*tool.Tool{nap(t, "nap"), nap(t, "bed__sleep")}},
		{Name: "other", Agent: agent.New(&chat{replies: []llm.Response{says("x")}}, agent.Options{})},
	}})
	require.NoError(t, err)
	return tm
}

// callsOf returns the calls that a JSON result lists at a path.
func callsOf(t testing.TB, r *team.Result, path ...any) string {
	t.Helper()
	raw, err := json.Marshal(r)
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal(raw, &v))
	for _, p := range append(path, "toolCalls") {
		switch p := p.(type) {
		case string:
			v = v.(map[string]any)[p]
		case int:
			v = v.([]any)[p]
		}
	}
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// The result lists the calls that reached a tool, in the order of the calls and not of their
// ends. It says of each what its event says.
func TestResultHasTheCallsOfTools(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := &chat{replies: []llm.Response{
			together(calls("nap", `{"seconds": 3}`), calls("nap", `{"seconds": 1, "fail": true}`), calls("bed__sleep", `{"seconds": 2}`)),
			together(calls("nap", `{"title": 1}`), calls("unknown", `{}`), calls("nap", `{"seconds": 0}`)), says("done"),
			calls("nap", `{"seconds": 4}`), says("again"),
		}}
		events := 0
		count := func(e event.Event) {
			if _, ended := e.Data.(event.ToolComplete); ended {
				events++
			}
		}
		res, err := sleeper(t, model).RunTasks(t.Context(), []task.Spec{
			{Title: "A", Description: "?", Assignee: "clerk"}, {Title: "B", Description: "?", Assignee: "clerk", DependsOn: task.On("A")}, {Title: "C", Description: "?", Assignee: "other"},
		}, &team.RunOptions{Subscribers: []func(event.Event){count}})
		require.NoError(t, err)
		require.Equal(t, []team.ToolCallMetrics{
			{Tool: "nap", Duration: 3 * time.Second}, {Tool: "nap", Duration: time.Second, Failed: true}, {Tool: "bed__sleep", Duration: 2 * time.Second}, {Tool: "nap"},
		}, res.ToolCalls("A"))
		require.Nil(t, res.ToolCalls("C"))
		require.Nil(t, res.ToolCalls("D"), "no such task")
		require.Equal(t, 5, events)

		first := `{"toolName": "nap", "durationMs": 3000}, {"toolName": "nap", "durationMs": 1000, "isError": true}, {"toolName": "bed__sleep", "durationMs": 2000}, {"toolName": "nap", "durationMs": 0}`
		second := `{"toolName": "nap", "durationMs": 4000}`
		require.JSONEq(t, "["+first+"]", callsOf(t, res, "tasks", 0, "metrics"))
		require.JSONEq(t, "["+first+"]", callsOf(t, res, "taskResults", string(res.Tasks[0].ID)))
		require.JSONEq(t, "["+second+"]", callsOf(t, res, "tasks", 1, "metrics"))
		require.JSONEq(t, "["+first+","+second+"]", callsOf(t, res, "agentResults", "clerk"))
		require.Equal(t, "[]", callsOf(t, res, "agentResults", "other"))
		require.Equal(t, "[]", callsOf(t, res, "tasks", 2, "metrics"))
	})
}

// Calls of an attempt that failed count. One that the end of the attempt cuts off does not.
func TestCallsOfFailedAttemptsAreInTheResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := &chat{replies: []llm.Response{
			calls("nap", `{"seconds": 1}`), {Text: "half", CallInfo: llm.CallInfo{FinishReason: "length"}}, // the attempt fails
			together(calls("nap", `{"seconds": 2}`), calls("nap", `{"seconds": 60}`)),
		}}
		res, err := sleeper(t, model).RunTasks(t.Context(), []task.Spec{{
			Title: "A", Description: "?", Assignee: "clerk", MaxRetries: 1, RetryDelay: task.NoDelay, Timeout: 10 * time.Second,
		}}, nil)
		require.Error(t, err)
		require.Equal(t, 2, res.Tasks[0].Attempts)
		require.Equal(t, []team.ToolCallMetrics{{Tool: "nap", Duration: time.Second}, {Tool: "nap", Duration: 2 * time.Second}}, res.ToolCalls("A"))
	})
}

// A resumed run and a replay list the calls of earlier processes in the order of the calls too; the
// journal has them in the order of their ends.
func TestResumedRunHasTheCallsOfItsEarlierProcesses(t *testing.T) {
	t.Parallel()
	j := journal.InMemory()
	defer j.Close()
	var order sync.WaitGroup
	order.Add(1)
	wait, err := tool.New("wait", "", func(_ context.Context, in lookupArguments) (string, error) {
		switch in.Name {
		case "last":
			order.Wait()
		case "broken":
			return "", errors.New("broken")
		}
		return in.Name, nil
	}, tool.Options{Effect: tool.None})
	require.NoError(t, err)
	refuse := func(_ context.Context, c team.ToolCall) error {
		if string(c.Arguments) == `{"name":"refused"}` {
			return errors.New("not this one")
		}
		return nil
	}
	tasks := []task.Spec{{Title: "A", Description: "?", Assignee: "clerk"}, {Title: "B", Description: "?", Assignee: "clerk", DependsOn: task.On("A")}}
	build := func(model llm.Model) *team.Team {
		tm, err := team.New(team.Config{OnToolCall: refuse, Agents: []team.Member{{Name: "clerk", Agent: agent.New(named{model}, agent.Options{Retry: llm.RetryOptions{Extra: -1}}), Tools: []*tool.Tool{wait, lookup(t, tool.Options{Effect: tool.None})}}}})
		require.NoError(t, err)
		return tm
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := &chat{over: cancel, replies: []llm.Response{
		calls("lookup", `{"name": "Ann"}`), says("A is done"),
		together(calls("wait", `{"name": "last"}`), calls("wait", `{"name": "refused"}`), calls("wait", `{"name": "broken"}`), calls("lookup", `{"name": "Bob"}`)),
	}}
	ended := 0
	release := func(e event.Event) {
		if _, ok := e.Data.(event.ToolComplete); ok {
			if ended++; ended == 3 { // all but the one that waits
				order.Done()
			}
		}
	}
	_, err = build(first).RunTasks(ctx, tasks, &team.RunOptions{Journal: j, RunID: "r", Subscribers: []func(event.Event){release}})
	require.ErrorIs(t, err, context.Canceled)

	second := &chat{replies: []llm.Response{calls("lookup", `{"name": "nobody"}`), says("B is done")}}
	res, err := build(second).Resume(t.Context(), "r", &team.RunOptions{Tasks: tasks, Journal: j})
	require.NoError(t, err)
	type call struct {
		tool   string
		failed bool
	}
	of := func(list []team.ToolCallMetrics) (all []call) {
		for _, c := range list {
			require.GreaterOrEqual(t, c.Duration, time.Duration(0))
			all = append(all, call{c.Tool, c.Failed})
		}
		return all
	}
	require.Equal(t, []call{{"lookup", false}}, of(res.ToolCalls("A")))
	require.Equal(t, []call{{"wait", false}, {"wait", true}, {"lookup", false}, {"lookup", true}}, of(res.ToolCalls("B")))

	replayed, err := build(&chat{}).Replay(t.Context(), "r", &team.RunOptions{Tasks: tasks, Journal: j})
	require.NoError(t, err)
	require.Equal(t, of(res.ToolCalls("B")), of(replayed.ToolCalls("B")))
}
