package team_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// counting is a tool that counts its calls by their arguments.
func counting(t testing.TB) (*tool.Tool, map[string]int) {
	t.Helper()
	made := map[string]int{}
	f, err := tool.New("look", "Looks.", func(_ context.Context, in lookupArguments) (string, error) {
		made[in.Name]++
		return "nothing new", nil
	}, tool.Options{Effect: tool.Workspace}) // one call at a time
	require.NoError(t, err)
	return f, made
}

// look is a reply that calls the tool for each name, with a text beside the calls.
func look(text string, names ...string) llm.Response {
	r := llm.Response{Text: text, CallInfo: llm.CallInfo{FinishReason: "tool_calls"}}
	for _, name := range names {
		r.ToolCalls = append(r.ToolCalls, llm.ToolCall{Name: "look", Arguments: fmt.Sprintf(`{ "name": %q }`, name)})
	}
	return r
}

func TestRepetitionsEndATask(t *testing.T) {
	t.Parallel()
	three := []llm.Response{look("", "a"), look("", "a"), look("", "a")}
	for _, tt := range []struct {
		name    string
		limit   *team.LoopDetection
		replies []llm.Response
		calls   int // that are made
		warned  bool
		ended   bool
	}{
		{"off", nil, append(three, look("", "a"), says("done")), 4, false, false},
		{"an end at once", &team.LoopDetection{OnLoop: "terminate"}, three, 2, false, true},
		{"a warning that helps", &team.LoopDetection{}, append(three, look("", "b"), says("done")), 4, true, false},
		{"a warning that does not", &team.LoopDetection{}, append(three, look("", "a")), 3, true, true},
		{"only one warning", &team.LoopDetection{}, append(three, look("", "b"), look("", "a")), 4, true, true},
		{"another call between", &team.LoopDetection{OnLoop: "terminate"}, []llm.Response{look("", "a"), look("", "a"), look("", "b"), look("", "a")}, 3, false, true},
		{"too far apart", &team.LoopDetection{OnLoop: "terminate"}, []llm.Response{look("", "a"), look("", "a"), look("", "b"), look("", "c"), look("", "a"), says("done")}, 5, false, false},
		{"a wider window", &team.LoopDetection{OnLoop: "terminate", Window: 5}, []llm.Response{look("", "a"), look("", "a"), look("", "b"), look("", "c"), look("", "a")}, 4, false, true},
		{"calls in another order", &team.LoopDetection{OnLoop: "terminate", MaxRepetitions: 2}, []llm.Response{look("", "a", "b"), look("", "b", "a")}, 2, false, true},
		{"other calls of one tool", &team.LoopDetection{OnLoop: "terminate", MaxRepetitions: 2}, []llm.Response{look("", "a"), look("", "b"), look("", "a", "b"), says("done")}, 4, false, false},
		{"the same text", &team.LoopDetection{OnLoop: "terminate", MaxRepetitions: 2}, []llm.Response{look("Let me see.", "a"), look(" Let me see.\n", "b")}, 1, false, true},
		{"no text", &team.LoopDetection{OnLoop: "terminate", MaxRepetitions: 2}, []llm.Response{look("", "a"), look("", "b"), says("done")}, 2, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, made := counting(t)
			model := &chat{replies: append([]llm.Response{}, tt.replies...)}
			tm, err := team.New(team.Config{Agents: []team.Member{{Name: "clerk", Agent: agent.New(model, agent.Options{}), Tools: []*tool.Tool{f}, LoopDetection: tt.limit}}})
			require.NoError(t, err)
			var warnings []string
			res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "A", Description: "?", Assignee: "clerk", MaxRetries: 2}}, &team.RunOptions{Subscribers: []func(event.Event){func(e event.Event) {
				if w, ok := e.Data.(event.Warning); ok {
					warnings = append(warnings, w.Code+" "+w.Message)
				}
			}}})
			require.Empty(t, model.replies, "it was not asked again")
			total := 0
			for _, n := range made {
				total += n
			}
			require.Equal(t, tt.calls, total)
			if tt.warned {
				require.Equal(t, []string{`LOOP_DETECTED agent "clerk" makes the same calls of tools 3 times within 4 turns; it was warned`}, warnings)
				last := model.requests[3].Messages
				require.Equal(t, llm.User, last[len(last)-1].Role)
				require.Contains(t, last[len(last)-1].Text, "You have repeated the same calls or words 3 times.")
				require.NotContains(t, last[len(last)-1].Text, "JSON")
				for _, r := range model.requests[4:] {
					require.Equal(t, 1, strings.Count(fmt.Sprint(r.Messages), "You have repeated"))
				}
			} else {
				require.Empty(t, warnings)
			}
			if !tt.ended {
				require.NoError(t, err)
				require.Equal(t, "done", res.Output)
				return
			}
			require.ErrorContains(t, err, "the agent repeats itself: it ")
			require.Equal(t, "LOOP_DETECTED", res.Tasks[0].Error.Code)
			require.Equal(t, 1, res.Tasks[0].Attempts, "it is not retried")
		})
	}
}

// A resumed conversation gets the warning of the first process again, and the same end.
func TestLoopIsDetectedAfterACrash(t *testing.T) {
	t.Parallel()
	j := journal.InMemory()
	defer j.Close()
	f, err := tool.New("look", "", func(context.Context, struct{}) (string, error) { return "nothing", nil }, tool.Options{Effect: tool.None})
	require.NoError(t, err)
	tasks := []task.Spec{{Title: "A", Description: "?", Assignee: "clerk"}}
	build := func(model llm.Model) *team.Team {
		tm, err := team.New(team.Config{Agents: []team.Member{{Name: "clerk", Agent: agent.New(named{model}, agent.Options{}), Tools: []*tool.Tool{f}, LoopDetection: &team.LoopDetection{}}}})
		require.NoError(t, err)
		return tm
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := &chat{replies: []llm.Response{calls("look", ""), calls("look", ""), calls("look", "")}, over: cancel}
	_, err = build(first).RunTasks(ctx, tasks, &team.RunOptions{Journal: j, RunID: "loop"})
	require.Error(t, err)
	second := &chat{replies: []llm.Response{calls("look", "")}}
	res, err := build(second).Resume(t.Context(), "loop", &team.RunOptions{Tasks: tasks, Journal: j})
	require.ErrorContains(t, err, "the agent repeats itself")
	require.Equal(t, "LOOP_DETECTED", res.Tasks[0].Error.Code)
	require.Len(t, second.requests, 1)
	require.Equal(t, first.requests[3].Messages, second.requests[0].Messages)
}
