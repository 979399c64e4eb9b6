package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
)

// TestMaxParallelCountsChildren checks that the limit of an agent holds for its tasks and its children together,
// at any depth, and that waiting parents do not count.
func TestMaxParallelCountsChildren(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ parallel, depth, children int }{{1, 1, 5}, {1, 3, 5}, {2, 1, 5}, {2, 3, 3}, {3, 2, 4}} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				words := make([]string, tt.children)
				for i := range words {
					words[i] = fmt.Sprint(i)
				}
				f := &family{spawn: plan.Spawning{Max: 1000, Depth: tt.depth, Timeout: 10 * time.Hour}, parent: []step{{calls: several(words...)}, {text: "done"}}}
				f.child = func(goal string, turn int) step {
					if deeper := strings.TrimPrefix(goal, "look into ") + "x"; turn == 0 && strings.Count(deeper, "x") < tt.depth {
						return step{calls: several(deeper, deeper)}
					}
					return step{text: "found " + goal}
				}
				m := f.member()
				m.MaxParallel = tt.parallel
				other := member("other", says("x"))
				res := run(t, newTeam(t, m, other), &engine.RunOptions{MaxConcurrency: 8}, errand(), by("clerk", spec("second")), by("other", spec("third")))
				require.NoError(t, res.Err())
				require.Equal(t, tt.parallel, f.most)
				require.Contains(t, f.last(""), fmt.Sprintf("found look into %d", tt.children-1))
			})
		})
	}
}

// TestMaxParallelCountsDelegates checks that goals count towards the limit of the agent that works on them.
func TestMaxParallelCountsDelegates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &family{child: func(string, int) step { return step{text: "9 percent"} }}
		var calls []llm.ToolCall
		for i := range 4 {
			calls = append(calls, call("delegate_to_agent", fmt.Sprintf(`{"to":"expert","goal":"look into %d"}`, i)))
		}
		f.parent = []step{{calls: calls}, {text: "done"}}
		clerk := f.member()
		clerk.Spawn = nil
		works := &family{child: f.child, parent: []step{{text: "done"}}}
		expert := works.member()
		expert.Spawn, expert.Name, expert.MaxParallel = nil, "expert", 1
		tm, err := engine.New(engine.Config{Agents: []engine.Member{clerk, expert}, Edges: []handoff.Edge{{From: "clerk", To: "expert", Delegate: true}}})
		require.NoError(t, err)
		res := run(t, tm, &engine.RunOptions{MaxConcurrency: 8}, errand(), by("expert", spec("own")))
		require.NoError(t, res.Err())
		require.Equal(t, 1, works.most)
		require.Len(t, works.asked, 5)
	})
}

// TestParentsEndAfterTheBudget checks that a parent that waits for its place ends when the task that has it
// exhausts the budget of the run.
func TestParentsEndAfterTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		delegated := []llm.ToolCall{call("delegate_to_agent", `{"to":"expert","goal":"look into taxes"}`)}
		f := &family{parent: []step{{calls: delegated}, {text: "done"}}}
		clerk := f.member()
		clerk.Spawn, clerk.MaxParallel = nil, 1
		inner := clerk.Agent
		clerk.Agent = agent.Func(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			if !strings.Contains(p.Text(), "# Task: second") {
				return inner.Run(ctx, p)
			}
			time.Sleep(10 * time.Minute)
			return agent.Reply{ToolCalls: []llm.ToolCall{call("unknown", `{}`)}, Usage: llm.Usage{InputTokens: 10_000}}, nil
		})
		expert := member("expert", agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) {
			time.Sleep(time.Minute) // the second task takes the place meanwhile
			return agent.Reply{Text: "9 percent"}, nil
		}))
		tm, err := engine.New(engine.Config{Agents: []engine.Member{clerk, expert}, Edges: []handoff.Edge{{From: "clerk", To: "expert", Delegate: true}}})
		require.NoError(t, err)
		began := time.Now()
		res := run(t, tm, &engine.RunOptions{MaxConcurrency: 2, Budget: plan.Budget{MaxTokenBudget: 9000}}, errand(), by("clerk", spec("second")))
		require.Error(t, res.Err())
		require.Less(t, time.Since(began), 12*time.Minute)
		require.Equal(t, "BUDGET_EXCEEDED", of(t, res, "errand").Error.Code)
	})
}
