package mcp_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/mcp"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// A server that forgets its sessions while a task makes calls, after a ping said that it knows the
// session: a call without effect is made in a new one, and an external one ends the task.
func TestSessionForgottenAmidCalls(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options tool.Options
		code    string
		made    string // the calls that the server made
	}{
		"external":   {tool.Options{}, "EFFECTS_UNCERTAIN", "a"},
		"none":       {noEffect, "", "a b a"},
		"repeatable": {repeatable, "", "a b a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := newWeb(t, "plain")
			var forget sync.Once
			web.before = func(_ http.ResponseWriter, method, name string) bool {
				if method == "tools/call" && name == "b" {
					forget.Do(web.forget)
				}
				return false
			}
			var made []string
			web.after = func(_ http.ResponseWriter, method, name string) bool {
				if method == "tools/call" {
					made = append(made, name) // one call at a time
				}
				return false
			}
			tools, err := (&mcp.Server{Name: "test", URL: web.URL, Options: tt.options}).Tools(t.Context())
			require.NoError(t, err)
			began, turn := web.sessions, 0
			model := llm.ModelFunc(func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
				if turn++; turn > 3 {
					return llm.Response{Text: "done"}, nil
				}
				return llm.Response{ToolCalls: []llm.ToolCall{{Name: []string{"", "test__a", "test__b", "test__a"}[turn], Arguments: `{}`}}}, nil
			})
			var allow []string
			for _, f := range tools {
				allow = append(allow, f.Name)
			}
			tm, err := team.New(team.Config{Agents: []team.Member{{Name: "clerk", Agent: agent.New(model, agent.Options{}), Tools: tools, AllowUntrusted: allow}}})
			require.NoError(t, err)
			res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Look", Description: "?", Assignee: "clerk"}}, nil)
			require.Equal(t, tt.made, strings.Join(made, " "))
			if tt.code != "" {
				require.ErrorContains(t, err, "the call may have taken effect")
				require.NotNil(t, res.Tasks[0].Error)
				require.Equal(t, tt.code, res.Tasks[0].Error.Code)
				require.Contains(t, res.Tasks[0].Error.Message, "test__b")
				require.Equal(t, began+1, web.sessions)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "done", res.Tasks[0].Result)
			require.Equal(t, began+2, web.sessions, "all later calls are in the new session")
		})
	}
}

// A call that runs when the server forgets its session ends in it, while others begin in a new one.
func TestCallThatRunsInAForgottenSession(t *testing.T) {
	t.Parallel()
	web := newWeb(t, "plain")
	calls := web.task(t, noEffect)
	began := web.sessions
	waiting := make(chan error)
	go func() {
		_, _, err := calls.call("wait")
		waiting <- err
	}()
	require.Eventually(t, func() bool { return web.count("tools/call") == 1 }, 5*time.Second, time.Millisecond)
	web.forget()
	_, _, err := calls.call("a")
	require.NoError(t, err)
	require.NoError(t, <-waiting)
	require.Equal(t, began+2, web.sessions)
}
