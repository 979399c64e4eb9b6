package agent_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/internal/supervise"
	"github.com/runteam/runteam/llm"
)

// A placed model names itself and its endpoint.
type placed struct{ llm.ModelFunc }

func (placed) Name() string     { return "m" }
func (placed) Endpoint() string { return "http://m.example/v1" }

var each = llm.Usage{InputTokens: 12, OutputTokens: 3, CachedTokens: 10, ReasoningTokens: 2}

func answering() placed {
	return placed{func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: "fine", Usage: each}, nil
	}}
}

func TestMeteredModelPaysEachCall(t *testing.T) {
	t.Parallel()
	b := &till{}
	ctx := supervise.With(t.Context(), b, 0)
	m := agent.Metered(ctx, answering())
	for _, under := range []context.Context{ctx, context.Background()} { // whatever context a call gets
		_, err := m.Call(under, llm.Request{System: "four", Messages: []llm.Message{{Text: "four"}}, Settings: llm.Settings{MaxTokens: 50}, Schema: []byte("fourfour")}, nil)
		require.NoError(t, err)
	}
	require.Equal(t, []llm.Usage{{InputTokens: 4, OutputTokens: 50}, {InputTokens: 4, OutputTokens: 50}}, b.estimates, "the schema is sent too")
	require.Equal(t, []llm.Usage{each, each}, b.took, "with what was cached and of the reasoning")
	require.Equal(t, []bool{true, true}, b.answered)
	require.Equal(t, []string{"m", "m"}, b.models)
	require.Equal(t, "http://m.example/v1", endpoint.Of(m))
	require.Equal(t, []string{"http://m.example/v1"}, endpoint.All(m))
}

// A half is a budget that grants half of what is asked for.
type half struct{}

func (half) Reserve(_ context.Context, _ string, most llm.Usage) (llm.Usage, func(supervise.CallUsage), error) {
	most.OutputTokens /= 2
	return most, func(supervise.CallUsage) {}, nil
}

// An agent may make calls of one metered model side by side, and each has the limit that the budget grants.
func TestMeteredCallsSideBySideAreLimited(t *testing.T) {
	t.Parallel()
	m := agent.Metered(supervise.With(t.Context(), half{}, 0), llm.ModelFunc(func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: strconv.Itoa(r.MaxTokens)}, nil
	}))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			asked := 50 * i
			res, err := m.Call(context.Background(), llm.Request{Settings: llm.Settings{MaxTokens: asked}}, nil)
			assert.NoError(t, err)
			assert.Equal(t, strconv.Itoa(asked/2), res.Text, "without a limit, none is sent")
		})
	}
	all.Wait()
}

func TestMeteredModelOfLLMIsPaidOnce(t *testing.T) {
	t.Parallel()
	outer, inner := &till{}, &till{}
	ctx := supervise.With(t.Context(), outer, 0)
	m := agent.Metered(ctx, answering())
	_, err := agent.New(m, agent.Options{}).Run(ctx, promptOf(t, "", ""))
	require.NoError(t, err)
	require.Len(t, outer.took, 1)

	_, err = agent.New(m, agent.Options{}).Run(supervise.With(ctx, inner, 0), promptOf(t, "", ""))
	require.NoError(t, err)
	require.Len(t, outer.took, 2, "it is paid from both")
	require.Len(t, inner.took, 1)
}

// All budgets of a context must admit a call. What one had reserved when another
// refused is given back.
func TestEveryBudgetAdmitsTheCall(t *testing.T) {
	t.Parallel()
	broke := errors.New("no money")
	for _, tt := range []struct {
		name         string
		outer, inner *till
	}{
		{"the outer one refuses", &till{refuses: broke}, &till{}},
		{"the inner one refuses", &till{}, &till{refuses: broke}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx := supervise.With(supervise.With(t.Context(), tt.outer, 0), tt.inner, 0)
			m := agent.Metered(ctx, llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
				t.Error("it was called")
				return llm.Response{}, nil
			}))
			_, err := m.Call(ctx, llm.Request{}, nil)
			require.ErrorIs(t, err, broke)
			for _, b := range []*till{tt.outer, tt.inner} {
				for _, took := range b.took {
					require.Zero(t, took)
				}
			}
			if tt.inner.refuses == nil {
				require.Len(t, tt.inner.took, 1, "the reservation ended")
			}
		})
	}
}

func TestMeteredWithoutBudgetReturnsTheModel(t *testing.T) {
	t.Parallel()
	m := answering()
	require.IsType(t, m, agent.Metered(t.Context(), m))
	_, err := agent.Metered(t.Context(), nil).Call(t.Context(), llm.Request{}, nil)
	require.ErrorIs(t, err, llm.ErrNoModel)
	_, err = agent.Metered(supervise.With(t.Context(), &till{}, 0), nil).Call(t.Context(), llm.Request{}, nil)
	require.ErrorIs(t, err, llm.ErrNoModel)
	_, err = agent.Metered(supervise.With(t.Context(), &till{}, 0), llm.ModelFunc(nil)).Call(nil, llm.Request{}, nil) //nolint:staticcheck // on purpose
	require.Error(t, err)
}

// A metered call that panics is charged what was reserved.
func TestMeteredCallThatPanicsIsPaid(t *testing.T) {
	t.Parallel()
	b := &till{}
	ctx := supervise.With(t.Context(), b, 0)
	m := agent.Metered(ctx, llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) { panic("no") }))
	require.Panics(t, func() { _, _ = m.Call(ctx, llm.Request{Settings: llm.Settings{MaxTokens: 7}}, nil) })
	require.Equal(t, []llm.Usage{{OutputTokens: 7}}, b.took)
}
