package agent_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
	"github.com/runteam/runteam/prompt"
)

// TestCheckRefusesAgentsWithoutModel lists agents that cannot work: none of them panics.
func TestCheckRefusesAgentsWithoutModel(t *testing.T) {
	t.Parallel()
	var none *agent.LLM
	for name, a := range map[string]*agent.LLM{
		"nil": none, "zero": {}, "nil model": agent.New(nil, agent.Options{}),
		"nil function": agent.New(llm.ModelFunc(nil), agent.Options{}), "typed nil": agent.New((*openai.Model)(nil), agent.Options{}),
	} {
		require.ErrorIs(t, a.Check(), llm.ErrNoModel, name)
		_, err := a.Run(t.Context(), prompt.Prompt{})
		require.ErrorIs(t, err, llm.ErrNoModel, name)
		require.Equal(t, []string{""}, a.Endpoints(), name)
		require.Empty(t, a.Version(), name)
	}
	fine := agent.New(llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: "x"}, nil
	}), agent.Options{})
	require.NoError(t, fine.Check())
	_, err := fine.Run(nil, prompt.Prompt{}) //nolint:staticcheck // what is tested
	require.ErrorContains(t, err, "the context is nil")
	_, err = (*openai.Model)(nil).Call(t.Context(), llm.Request{}, nil)
	require.ErrorIs(t, err, llm.ErrNoModel)
}

func TestNegativeUsageIsRefused(t *testing.T) {
	t.Parallel()
	calls := 0
	a := agent.New(llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		calls++
		return llm.Response{Text: "x", Usage: llm.Usage{InputTokens: 5, OutputTokens: -1_000_000}}, nil
	}), agent.Options{Retry: llm.RetryOptions{Extra: -1}})
	reply, err := a.Run(t.Context(), prompt.Prompt{})
	require.ErrorContains(t, err, "negative number of tokens")
	require.Equal(t, llm.Usage{InputTokens: 5}, reply.Usage, "the count that can be true is reported, as for other failed calls")
	require.Equal(t, 1, calls)
}
