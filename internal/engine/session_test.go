package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
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
