package agent_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/llm"
)

// An answer that arrives after the end of the context is not used.
func TestValidationStopsWhenContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	a := agent.New(llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		cancel()
		return llm.Response{Text: `{"n":1}`}, nil
	}), agent.Options{})
	reply, err := a.Run(ctx, promptOf(t, "", `{"type":"object"}`))
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, reply.JSON)
}
