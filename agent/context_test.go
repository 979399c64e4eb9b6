package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/llm"
)

// A watchedContext counts how often it is asked whether it has ended.
type watchedContext struct {
	context.Context
	asked int
}

func (c *watchedContext) Err() error {
	c.asked++
	return nil
}

// The work on a large value asks for the end of the context again and again.
func TestValidatingLooksAtTheContextMeanwhile(t *testing.T) {
	t.Parallel()
	ctx := &watchedContext{Context: t.Context()}
	v, err := envelope.ParseJSON("[" + strings.Repeat("1,", 20_000) + "1]")
	require.NoError(t, err)
	require.NoError(t, parsed(t, `{"items":{"type":"integer"}}`).ValidateContext(ctx, v))
	require.Greater(t, ctx.asked, 10)
}

// An answer that comes when the context has ended is not taken.
func TestAnswersAreValidatedUnderTheContextOfTheCall(t *testing.T) {
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
