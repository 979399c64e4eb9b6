package engine_test

import (
	"context"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

func TestNilContextIsAnError(t *testing.T) {
	t.Parallel()
	tm := led(t, engine.AgentFunc(never(t)), member("a", never(t)))
	var none context.Context
	for name, run := range map[string]func(*engine.Team, context.Context) error{
		"tasks": func(tm *engine.Team, ctx context.Context) error {
			_, err := tm.RunTasks(ctx, []task.Spec{spec("a")}, nil)
			return err
		},
		"agent": func(tm *engine.Team, ctx context.Context) error {
			_, err := tm.RunAgent(ctx, "a", "x", nil)
			return err
		},
		"goal": func(tm *engine.Team, ctx context.Context) error {
			_, err := tm.RunTeam(ctx, engine.Goal{Text: "x"}, nil)
			return err
		},
		"plan": func(tm *engine.Team, ctx context.Context) error {
			_, err := tm.PlanTeam(ctx, engine.Goal{Text: "x"}, nil)
			return err
		},
	} {
		require.ErrorContains(t, run(tm, none), "the context is nil", name)
		require.ErrorContains(t, run(nil, t.Context()), "the team is nil or zero", name)
		require.ErrorContains(t, run(&engine.Team{}, t.Context()), "the team is nil or zero", name)
	}
}

// Two runs do not take from one bus at the same time.
func TestOneRunAtATimeUsesABus(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]func(*engine.Team) *engine.RunOptions{
		"bus": func(tm *engine.Team) *engine.RunOptions { return &engine.RunOptions{Bus: tm.NewBus()} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun, end := make(chan struct{}), make(chan struct{})
			tm := newTeam(t, member("a", func(context.Context, prompt.Prompt) (agent.Reply, error) {
				close(begun)
				<-end
				return agent.Reply{Text: "x"}, nil
			}), member("b", says("x")))
			shared := o(tm)
			var wg sync.WaitGroup
			wg.Go(func() {
				_, err := tm.RunTasks(t.Context(), []task.Spec{spec("a")}, shared)
				if err != nil {
					t.Error(err)
				}
			})
			<-begun
			_, err := tm.RunTasks(t.Context(), []task.Spec{spec("b")}, shared)
			require.ErrorContains(t, err, "run")
			close(end)
			wg.Wait()
			res, err := tm.RunTasks(t.Context(), []task.Spec{spec("b")}, shared)
			require.NoError(t, err, "the first has ended")
			require.True(t, res.Success())
		})
	}
}

// Token counts below zero and overflowing sums are refused.
func TestInvalidUsageIsRefused(t *testing.T) {
	t.Parallel()
	for name, give := range map[string]agent.Reply{
		"input":  {Text: "x", Usage: llm.Usage{InputTokens: -1, OutputTokens: 5}},
		"output": {Text: "x", Usage: llm.Usage{InputTokens: 5, OutputTokens: math.MinInt}},
		"turns":  {Text: "x", Turns: -1, Usage: llm.Usage{InputTokens: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := retrying("a", 3)
			res := run(t, newTeam(t, member("a", func(context.Context, prompt.Prompt) (agent.Reply, error) { return give, nil })), nil, s)
			require.Equal(t, codes.Reply, res.Tasks[0].Error.Code)
			require.True(t, strings.Contains(res.Tasks[0].Error.Message, "negative usage"))
			require.Equal(t, 1, res.Tasks[0].Metrics.Attempts)
			require.Equal(t, 5, res.Usage.InputTokens+res.Usage.OutputTokens, "what can be is counted")
		})
	}
	res := run(t, newTeam(t, member("a", func(context.Context, prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: "x", Usage: llm.Usage{InputTokens: math.MaxInt, OutputTokens: math.MaxInt - 1}}, nil
	})), nil, by("a", spec("one")), by("a", spec("two")))
	require.Equal(t, llm.Usage{InputTokens: math.MaxInt, OutputTokens: math.MaxInt}, res.Usage)
}
