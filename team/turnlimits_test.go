package team_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// The calls of the last turn are not made: no model would read their results.
func TestCallsOfTheLastTurnAreNotMade(t *testing.T) {
	t.Parallel()
	for maxTurns, want := range map[int]struct {
		calls int
		text  string
	}{0: {9, "maxTurns is 10, and the model has not answered; raise it"}, 1: {0, "maxTurns is 1,"}, 3: {2, "maxTurns is 3,"}} {
		model, made := &chat{}, 0
		for range 11 {
			model.replies = append(model.replies, calls("pay", ""))
		}
		pay, err := tool.New("pay", "", func(context.Context, struct{}) (string, error) { made++; return "paid", nil }, tool.Options{Repeatable: true})
		require.NoError(t, err)
		tm, err := team.New(team.Config{Agents: []team.Member{{Name: "clerk", Agent: agent.New(model, agent.Options{MaxTurns: maxTurns}), Tools: []*tool.Tool{pay}, AllowUntrusted: []string{"pay"}}}})
		require.NoError(t, err)
		res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "A", Description: "?", Assignee: "clerk", MaxRetries: 1}}, nil)
		require.ErrorContains(t, err, want.text)
		require.Equal(t, "MAX_TURNS", res.Tasks[0].Error.Code)
		require.Equal(t, want.calls, made)
		require.Len(t, model.requests, want.calls+1)
	}
}

// The Timeout of an agent bounds each turn, without its calls of tools. The Timeout of a task
// bounds all of them together.
func TestTimeoutsOfAConversation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			name       string
			agent      time.Duration
			task       time.Duration
			slowest    time.Duration // turn of the model
			wantErr    string
			wantPassed time.Duration
		}{
			{"each turn is within it", 10 * time.Second, 0, 9 * time.Second, "", 4*9*time.Second + 3*30*time.Second},
			{"a turn is not", 10 * time.Second, 0, 11 * time.Second, "more than 10s", 10 * time.Second},
			{"the whole is too long", 10 * time.Second, time.Minute, 9 * time.Second, "more than 1m0s", time.Minute},
		} {
			model := llm.ModelFunc(func(ctx context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
				select {
				case <-time.After(tt.slowest):
				case <-ctx.Done():
					return llm.Response{}, context.Cause(ctx)
				}
				if len(r.Messages) < 7 {
					return calls("wait", ""), nil
				}
				return says("done"), nil
			})
			wait, err := tool.New("wait", "", func(ctx context.Context, _ struct{}) (string, error) {
				select {
				case <-time.After(30 * time.Second):
				case <-ctx.Done():
				}
				return "", nil
			}, tool.Options{Effect: tool.None})
			require.NoError(t, err)
			tm, err := team.New(team.Config{Agents: []team.Member{{Name: "clerk", Agent: agent.New(model, agent.Options{Timeout: tt.agent}), Tools: []*tool.Tool{wait}}}})
			require.NoError(t, err)
			began := time.Now()
			_, err = tm.RunTasks(t.Context(), []task.Spec{{Title: "A", Description: "?", Assignee: "clerk", Timeout: tt.task}}, nil)
			if tt.wantErr == "" {
				require.NoError(t, err, tt.name)
			} else {
				require.ErrorContains(t, err, tt.wantErr, tt.name)
			}
			require.Equal(t, tt.wantPassed, time.Since(began), tt.name)
		}
	})
}

// MaxTokens of an agent bounds the answer of each of its turns.
func TestEachTurnHasTheLimitOnItsTokens(t *testing.T) {
	t.Parallel()
	model := &chat{replies: []llm.Response{calls("lookup", `{"name":"ann"}`), says("23")}}
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "clerk", Agent: agent.New(model, agent.Options{Settings: llm.Settings{MaxTokens: 2000}}), Tools: []*tool.Tool{lookup(t, tool.Options{Effect: tool.None})}}}})
	require.NoError(t, err)
	res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "A", Description: "?", Assignee: "clerk"}}, nil)
	require.NoError(t, err)
	require.Equal(t, "ok", string(res.Status))
	require.Len(t, model.requests, 2)
	for _, r := range model.requests {
		require.Equal(t, 2000, r.Settings.MaxTokens)
	}
}
