package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
)

// What a session spent counts also without a budget, for each turn of this process.
func TestSessionSpent(t *testing.T) {
	t.Parallel()
	calls := 0
	tm := newTeam(t, member("writer", func(context.Context, prompt.Prompt) (agent.Reply, error) {
		reply := agent.Reply{Text: "x", Usage: llm.Usage{InputTokens: 60, OutputTokens: 1}}
		if calls++; calls == 2 {
			return reply, errors.New("no answer")
		}
		return reply, nil
	}))
	s, err := tm.NewSession(engine.SessionOptions{Agent: "writer"})
	require.NoError(t, err)
	for range 3 {
		_, err := s.Send(t.Context(), "Go.", label.Internal, nil)
		require.NoError(t, err)
	}
	spent, _ := s.Spent()
	require.Equal(t, llm.Usage{InputTokens: 180, OutputTokens: 3}, spent)
	require.Equal(t, 2, s.Answered())
	require.Equal(t, 3, s.Turns())
}

// What a session tells its caller of its costs leaves out calls whose prompt or reply is hidden, which count against the
// budget all the same.
func TestSessionTellsNoCostOfHiddenCalls(t *testing.T) {
	t.Parallel()
	for _, hidden := range []bool{false, true} {
		t.Run(fmt.Sprint(hidden), func(t *testing.T) {
			t.Parallel()
			m := asks("writer", llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
				return llm.Response{Text: `{"score":4}`, Usage: llm.Usage{InputTokens: 60, OutputTokens: 1}}, nil
			}))
			m.Accepts, m.Model = label.Confidential, "m"
			lower := lowering("writer", handoff.User, label.Internal)
			lower.UnsafeText = true // a turn has no output schema
			tm, err := engine.New(engine.Config{Agents: []engine.Member{m}, Prices: mills, Policy: &handoff.Policy{Declassify: []handoff.Declassifier{lower}}})
			require.NoError(t, err)
			s, err := tm.NewSession(engine.SessionOptions{Agent: "writer"})
			require.NoError(t, err)
			o := &engine.RunOptions{Budget: plan.Budget{MaxCostBudget: llm.Dollars(10)}, UserAccepts: new(label.Internal)}
			level, told := label.Internal, llm.Dollars(0.061)
			if hidden {
				level, told = label.Confidential, 0
			}
			res, err := s.Send(t.Context(), "Go.", level, o)
			require.NoError(t, err)
			usage, cost := s.Spent()
			require.Equal(t, told, cost)
			require.Equal(t, hidden, usage == llm.Usage{})
			o.Budget.MaxCostBudget = llm.Dollars(0.062)
			res, err = s.Send(t.Context(), "Go.", level, o)
			require.NoError(t, err)
			require.Equal(t, engine.StatusBudget, res.Status)
			exceeded, ok := errors.AsType[*engine.BudgetError](res.Err())
			require.True(t, ok)
			require.Equal(t, int64(told), exceeded.Spent)
		})
	}
}
