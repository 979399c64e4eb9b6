package team_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// approving is a team of one clerk that asks before each call.
func approving(t testing.TB, model llm.Model, ask func(context.Context, team.ToolCall) error, tools ...*tool.Tool) *team.Team {
	t.Helper()
	tm, err := team.New(team.Config{OnToolCall: ask, Agents: []team.Member{{Name: "clerk", Agent: agent.New(named{model}, agent.Options{}), Tools: tools, AllowUntrusted: []string{"send"}}}})
	require.NoError(t, err)
	return tm
}

func TestProgramDecidesAboutCalls(t *testing.T) {
	t.Parallel()
	key := "password=hunter2hunter2"
	for _, tt := range []struct {
		name string
		ask  func() error
		want string // what the agent gets; empty if the call is made
	}{
		{"allowed", func() error { return nil }, ""},
		{"refused", func() error { return errors.New("ask Bob first; use " + key) }, "Call refused: ask Bob first; use password=[REDACTED:"},
		{"panics", func() error { panic("canary") }, "\nCall refused.\n"},
		{"panics when its error is read", func() error { return (*brokenError)(nil) }, "\nCall refused.\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sent := 0
			send, err := tool.New("send", "Sends.", func(context.Context, lookupArguments) (string, error) { sent++; return "sent", nil }, tool.Options{})
			require.NoError(t, err)
			var asked []team.ToolCall
			model := &chat{replies: []llm.Response{calls("send", `{"name": "ann@example.org"}`), calls("send", `{}`), says("done")}}
			tm := approving(t, model, func(_ context.Context, c team.ToolCall) error {
				require.Zero(t, sent)
				asked = append(asked, c)
				return tt.ask()
			}, send)
			_, err = tm.RunTasks(t.Context(), []task.Spec{{Title: "Mail", Description: "?", Assignee: "clerk"}}, &team.RunOptions{RunID: "r"})
			require.NoError(t, err)
			require.Len(t, asked, 1, "it is not asked about calls that are refused in any case")
			require.JSONEq(t, `{"name": "[REDACTED:email]"}`, string(asked[0].Arguments))
			asked[0].Arguments, asked[0].Task = nil, ""
			require.Equal(t, team.ToolCall{Run: "r", Title: "Mail", Agent: "clerk", Tool: "send", Effect: tool.External}, asked[0])
			result := model.requests[1].Messages[2].Text
			if tt.want == "" {
				require.Equal(t, 1, sent)
				require.Contains(t, result, "\nsent\n")
				return
			}
			require.Zero(t, sent)
			require.Contains(t, result, tt.want)
			require.Contains(t, result, ", error")
			require.NotContains(t, result, key)
			require.NotContains(t, result, "canary")
		})
	}
}

type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

// A resumed run does not ask again about a call that was made or refused.
func TestResumedRunDoesNotAskAgain(t *testing.T) {
	t.Parallel()
	j := journal.InMemory()
	defer j.Close()
	send, err := tool.New("send", "Sends.", func(_ context.Context, in lookupArguments) (string, error) { return "sent to " + in.Name, nil }, tool.Options{Effect: tool.None})
	require.NoError(t, err)
	tasks := []task.Spec{{Title: "Mail", Description: "?", Assignee: "clerk"}}
	ctx, cancel := context.WithCancel(t.Context())
	first := &chat{replies: []llm.Response{calls("send", `{"name": "Ann"}`), calls("send", `{"name": "Bob"}`)}, over: cancel}
	_, err = approving(t, first, func(_ context.Context, c team.ToolCall) error {
		if string(c.Arguments) == `{"name":"Bob"}` {
			return errors.New("not to Bob")
		}
		return nil
	}, send).RunTasks(ctx, tasks, &team.RunOptions{Journal: j, RunID: "mail"})
	require.Error(t, err)
	second := &chat{replies: []llm.Response{calls("send", `{"name": "Cid"}`), says("done")}}
	var asked []string
	_, err = approving(t, second, func(_ context.Context, c team.ToolCall) error { asked = append(asked, string(c.Arguments)); return nil }, send).
		Resume(t.Context(), "mail", &team.RunOptions{Tasks: tasks, Journal: j})
	require.NoError(t, err)
	require.Equal(t, []string{`{"name":"Cid"}`}, asked)
	require.Equal(t, first.requests[2].Messages, second.requests[0].Messages)
	require.Contains(t, second.requests[0].Messages[4].Text, "Call refused: not to Bob")
}

// A program may take its time, and the time limit of the task ends that.
func TestProgramMayWaitBeforeItDecides(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, ignores := range []bool{false, true} {
			var mu sync.Mutex
			sent := 0
			send, err := tool.New("send", "", func(context.Context, struct{}) (string, error) { mu.Lock(); defer mu.Unlock(); sent++; return "", nil }, tool.Options{})
			require.NoError(t, err)
			model := &chat{replies: []llm.Response{calls("send", ""), calls("send", "")}}
			turn := 0
			tm := approving(t, model, func(ctx context.Context, _ team.ToolCall) error {
				if turn++; turn == 1 {
					time.Sleep(time.Minute)
					return nil
				}
				if ignores {
					time.Sleep(time.Hour)
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			}, send)
			began := time.Now()
			res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Mail", Description: "?", Assignee: "clerk", Timeout: 10 * time.Minute}}, nil)
			require.ErrorContains(t, err, "more than 10m0s")
			require.Equal(t, "EFFECTS_UNCERTAIN", res.Tasks[0].Error.Code, "the first call was made")
			require.Equal(t, 10*time.Minute, time.Since(began))
			mu.Lock()
			require.Equal(t, 1, sent)
			mu.Unlock()
			time.Sleep(2 * time.Hour)
		}
	})
}
