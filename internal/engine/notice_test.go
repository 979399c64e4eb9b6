package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
)

// A wait between two model calls is told, in words that the caller is cleared for.
func TestRetriedModelCallsEmitEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		flaky := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
			if calls++; calls == 1 {
				return llm.Response{}, &llm.Error{Kind: callfault.ServerError, Status: 503, Message: "busy"}
			}
			return llm.Response{Text: "done", CallInfo: llm.CallInfo{FinishReason: "stop"}}, nil
		})
		var heard audience
		tm := newTeam(t, engine.Member{Name: "a", Agent: agent.New(flaky, agent.Options{})})
		res := run(t, tm, heard.options(), spec("a"))
		require.NoError(t, res.Err())
		var warned []event.Event
		for _, e := range heard.events {
			if e.Type == event.Warning {
				warned = append(warned, e)
			}
		}
		require.Len(t, warned, 1)
		require.Equal(t, of(t, res, "a").ID, warned[0].Task)
		require.Equal(t, "MODEL_SERVER_ERROR", warned[0].Code)
		require.Contains(t, warned[0].Message, "busy")
		require.Positive(t, warned[0].Wait)
	})
}

// An agent that leaves a call running behind it is not told of any more: by
// then its attempt serves another task, with another label.
//
// Requirement: G42.
func TestNoticesEndWithTheirAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failing := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
			time.Sleep(time.Second)
			return llm.Response{}, &llm.Error{Kind: callfault.ServerError, Status: 503, Message: "CANARY"}
		})
		hedges := func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			go func() { _, _ = agent.New(failing, agent.Options{}).Run(ctx, p) }()
			return agent.Reply{Text: "first"}, nil
		}
		a := spec("a")
		a.Classification = label.Secret
		var heard audience
		run(t, newTeam(t, cleared("a", label.Secret, hedges), member("b", sleeps(time.Minute))), heard.options(), a, spec("b"))
		for _, e := range heard.events {
			require.NotEqual(t, event.Warning, e.Type)
		}
	})
}
