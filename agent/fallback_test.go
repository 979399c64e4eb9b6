package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/internal/supervise"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/limit"
)

// A server is a model with a name and an address.
type server struct {
	llm.ModelFunc
	name, at string
}

func (s *server) Name() string     { return s.name }
func (s *server) Endpoint() string { return s.at }

// serves returns a server that answers with a text, or fails if it is empty.
func serves(name, text string, calls *int) *server {
	at := "http://" + name + ".example/v1"
	return &server{name: name, at: at, ModelFunc: func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		*calls++
		if text == "" {
			return llm.Response{}, &llm.Error{Kind: callfault.ServerError, Status: 503, Model: name, Endpoint: at, Usage: llm.Usage{InputTokens: 2}}
		}
		return llm.Response{Text: text, CallInfo: llm.CallInfo{FinishReason: "stop", Model: name}, Usage: llm.Usage{InputTokens: 5, OutputTokens: 1}}, nil
	}}
}

// A tally is a budget that records each reservation.
type tally struct {
	models   []string
	reserved []llm.Usage
	settled  []llm.Usage
	refuse   int // the number of the reservation that is refused
}

var errSpent = errors.New("the budget is spent")

func (b *tally) Reserve(_ context.Context, model string, most llm.Usage) (llm.Usage, func(supervise.CallUsage), error) {
	b.models = append(b.models, model)
	if b.reserved = append(b.reserved, most); len(b.reserved) == b.refuse {
		return most, nil, errSpent
	}
	return most, func(s supervise.CallUsage) { b.settled = append(b.settled, s.Charged) }, nil
}

func TestFallbackModelAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var down, up int
		a := agent.New(serves("down", "", &down), agent.Options{Fallback: []llm.Model{serves("up", "hello", &up)}})
		paid := &tally{}
		reply, err := a.Run(supervise.With(t.Context(), paid, 0), promptOf(t, "You write.", ""))
		require.NoError(t, err)
		require.Equal(t, "hello", reply.Text)
		require.Equal(t, []int{3, 1}, []int{down, up}, "after the retries of the first")
		require.Equal(t, llm.Usage{InputTokens: 3*2 + 5, OutputTokens: 1}, reply.Usage)
		require.Equal(t, 1, reply.Turns)
		require.Len(t, paid.reserved, 4, "each call is paid by itself")
		require.Len(t, paid.settled, 4)
		require.Equal(t, []string{"down", "down", "down", "up"}, paid.models, "at the price of its own model")
		require.Equal(t, []string{"down", "up"}, a.Models())
	})
}

func TestBudgetErrorEndsFallback(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var down, up int
		a := agent.New(serves("down", "", &down), agent.Options{
			Retry: llm.RetryOptions{Extra: -1}, Fallback: []llm.Model{serves("up", "hello", &up)},
		})
		_, err := a.Run(supervise.With(t.Context(), &tally{refuse: 2}, 0), promptOf(t, "You write.", ""))
		require.ErrorIs(t, err, errSpent)
		require.Zero(t, up, "what is not paid is not called")
	})
}

// A call that hangs fails after CallTimeout, and the next model is called.
func TestFallbackAfterCallTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var up int
		hangs := llm.ModelFunc(func(ctx context.Context, _ llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
			<-ctx.Done()
			return llm.Response{}, fmt.Errorf("the call ended: %w", context.Cause(ctx))
		})
		o := agent.Options{CallTimeout: time.Minute, Timeout: 2 * time.Minute, Fallback: []llm.Model{serves("up", "hello", &up)}}
		begin := time.Now()
		reply, err := agent.New(hangs, o).Run(t.Context(), promptOf(t, "You write.", ""))
		require.NoError(t, err)
		require.Equal(t, "hello", reply.Text)
		require.Equal(t, time.Minute, time.Since(begin))
		o.Timeout = 30 * time.Second
		_, err = agent.New(hangs, o).Run(t.Context(), promptOf(t, "You write.", ""))
		require.ErrorIs(t, err, agent.Condition(codes.Timeout))
		require.Equal(t, 1, up, "when the time of the agent is over, no other model is called")
	})
}

func TestFallbackInVersionAndEndpoints(t *testing.T) {
	t.Parallel()
	var n int
	a, b, c := serves("a", "x", &n), serves("b", "x", &n), serves("c", "x", &n)
	with := func(models ...llm.Model) *agent.LLM { return agent.New(a, agent.Options{Fallback: models}) }
	require.Equal(t, []string{a.at}, with().Endpoints())
	require.Equal(t, []string{a.at, b.at, c.at}, with(b, c).Endpoints())
	both := llm.Fallback(a, b)
	wrapped := []llm.Model{
		llm.Retry(both, llm.RetryOptions{}), new(limit.Group).Model(both, 0), new(scripted.Recorder).Model(both),
		agent.Metered(supervise.With(t.Context(), &tally{}, 0), both),
	}
	for _, m := range wrapped {
		require.Equal(t, []string{a.at, b.at}, agent.New(m, agent.Options{}).Endpoints(), "%T", m)
	}
	require.Equal(t, []string{a.at, ""}, with(llm.ModelFunc(c.Call)).Endpoints())

	versions := map[string]bool{}
	for _, m := range []*agent.LLM{with(), with(b), with(c), with(b, c), with(c, b), with(&server{name: "b", at: a.at, ModelFunc: b.ModelFunc})} {
		require.NotEmpty(t, m.Version())
		versions[m.Version()] = true
	}
	require.Len(t, versions, 6, "each model of the chain, its place and its order count")
	require.Empty(t, with(llm.ModelFunc(c.Call)).Version())

	require.NoError(t, with(b).Check())
	require.ErrorIs(t, with(b, nil).Check(), llm.ErrNoModel)
	_, err := with((*server)(nil)).Run(t.Context(), promptOf(t, "You write.", ""))
	require.ErrorIs(t, err, llm.ErrNoModel)
}
