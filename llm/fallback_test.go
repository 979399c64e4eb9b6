package llm_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/llm"
)

// A host is a model with a name and an address that fails, or answers with its name.
type host struct {
	name  string
	err   error
	calls int
	says  []string // what it streams before it answers or fails
}

func (h *host) Endpoint() string { return "http://" + h.name + "/v1" }

func (h *host) Call(_ context.Context, _ llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
	h.calls++
	for _, text := range h.says {
		if emit != nil {
			if err := emit(llm.Delta{Text: text, Attempt: 1}); err != nil {
				return llm.Response{}, err
			}
		}
	}
	if h.err != nil {
		return llm.Response{}, h.err
	}
	return llm.Response{Text: h.name, CallInfo: llm.CallInfo{Model: h.name}, Usage: llm.Usage{InputTokens: 10, OutputTokens: 1}}, nil
}

// fails returns a host whose calls fail, after three tokens.
func fails(name string, kind string) *host {
	h := &host{name: name}
	h.err = &llm.Error{Kind: kind, Model: name, Endpoint: h.Endpoint(), Message: "words of the server", Usage: llm.Usage{InputTokens: 3}}
	return h
}

func TestFallbackCallsNextModelAfterEndpointFailure(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		callfault.RateLimited: true, callfault.ServerError: true, callfault.Unreachable: true, callfault.BadResponse: true, callfault.Cut: true,
		callfault.Empty: true, callfault.Timeout: true, callfault.NoCredit: true,
		callfault.Unauthorized: false, callfault.UnknownModel: false, callfault.NotFound: false, callfault.BadRequest: false, callfault.TooLarge: false, "": false,
	}
	for kind, next := range tests {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			first, second := fails("first", kind), &host{name: "second"}
			res, err := llm.Fallback(first, second).Call(t.Context(), llm.Request{}, nil)
			if !next {
				require.Equal(t, first.err, err, "the error is that of the model, as it is")
				require.Zero(t, second.calls)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "second", res.Text)
			require.Equal(t, "http://second/v1", res.Endpoint)
			require.Equal(t, llm.Usage{InputTokens: 13, OutputTokens: 1}, res.Usage, "what the failed call took is counted")
			require.Len(t, res.Warnings, 1)
			require.Contains(t, res.Warnings[0], `model "first" at http://first/v1: `)
			require.Contains(t, res.Warnings[0], `; answered by model "second" at http://second/v1`)
			require.NotContains(t, res.Warnings[0], "words of the server")
		})
	}
}

func TestFallbackDoesNotHideOtherErrors(t *testing.T) {
	t.Parallel()
	second := &host{name: "second"}
	wrong := errors.New("the budget is spent")
	_, err := llm.Fallback(&host{name: "first", err: wrong}, second).Call(t.Context(), llm.Request{}, nil)
	require.Equal(t, wrong, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = llm.Fallback(fails("first", callfault.Timeout), second).Call(ctx, llm.Request{}, nil)
	require.Error(t, err)
	require.Zero(t, second.calls, "no other endpoint is called after the caller canceled")
}

func TestFallbackAfterRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := fails("first", callfault.ServerError), fails("second", callfault.RateLimited)
		third := &host{name: "third"}
		m := llm.Fallback(llm.Retry(first, llm.RetryOptions{}), llm.Retry(second, llm.RetryOptions{Extra: 1}), third)
		res, err := m.Call(t.Context(), llm.Request{}, nil)
		require.NoError(t, err)
		require.Equal(t, "third", res.Text)
		require.Equal(t, []int{3, 2, 1}, []int{first.calls, second.calls, third.calls})
		require.Equal(t, 3*3+2*3+10, res.Usage.InputTokens)
		require.Len(t, res.Warnings, 1)
		require.Equal(t, []string{"http://first/v1", "http://second/v1", "http://third/v1"}, endpoint.All(m))
	})
}

func TestFallbackWhenAllFail(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		models []llm.Model
		kind   string
	}{
		{"the last one", []llm.Model{fails("a", callfault.ServerError), fails("b", callfault.RateLimited)}, callfault.RateLimited},
		{"one that may pass", []llm.Model{fails("a", callfault.Unreachable), fails("b", callfault.NoCredit)}, callfault.Unreachable},
		{"a wrong key in the end", []llm.Model{fails("a", callfault.ServerError), fails("b", callfault.Unauthorized)}, callfault.ServerError},
		{"nothing that passes", []llm.Model{fails("a", callfault.NoCredit), fails("b", callfault.UnknownModel)}, callfault.UnknownModel},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := llm.Fallback(tt.models...).Call(t.Context(), llm.Request{}, nil)
			e, ok := errors.AsType[*llm.Error](err)
			require.True(t, ok)
			require.Equal(t, tt.kind, e.Kind)
			require.Equal(t, 6, e.Usage.InputTokens, "the usage of all")
			require.ErrorContains(t, err, `model "a" at http://a/v1: `)
			require.ErrorContains(t, err, `; fallback: model "b" at http://b/v1: `)
		})
	}
	_, err := llm.Fallback().Call(t.Context(), llm.Request{}, nil)
	require.ErrorIs(t, err, llm.ErrNoModel)
	_, err = llm.Fallback(nil, &host{name: "b"}).Call(t.Context(), llm.Request{}, nil)
	require.ErrorIs(t, err, llm.ErrNoModel, "a missing model is a mistake, and no failure of an endpoint")
}

func TestFallbackNumbersStreamAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := fails("first", callfault.Cut), &host{name: "second", says: []string{"the ", "end"}}
		first.says = []string{"the beg"}
		var texts []string // of each attempt
		m := llm.Fallback(llm.Retry(first, llm.RetryOptions{Extra: 1}), llm.Retry(second, llm.RetryOptions{}))
		_, err := m.Call(t.Context(), llm.Request{}, func(d llm.Delta) error {
			if d.Attempt > len(texts) {
				texts = append(texts, "")
			}
			require.Len(t, texts, d.Attempt, "attempts are counted without gaps")
			texts[d.Attempt-1] += d.Text
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, []string{"the beg", "the beg", "the end"}, texts)
	})
	stop := errors.New("enough")
	second := &host{name: "second"}
	first := fails("first", callfault.Cut)
	first.says = []string{"x"}
	_, err := llm.Fallback(first, second).Call(t.Context(), llm.Request{}, func(llm.Delta) error { return stop })
	require.ErrorIs(t, err, stop)
	require.Zero(t, second.calls)
}

func TestEndpointsOfFallback(t *testing.T) {
	t.Parallel()
	a, b := &host{name: "a"}, &host{name: "b"}
	unnamed := llm.ModelFunc(nil)
	require.Equal(t, "http://a/v1", endpoint.Of(llm.Fallback(a, &host{name: "a"})), "two models at one endpoint")
	require.Empty(t, endpoint.Of(llm.Fallback(a, b)), "who asks for the only endpoint is not given one of several")
	require.Empty(t, endpoint.Of(llm.Retry(llm.Fallback(a, b), llm.RetryOptions{})))
	require.Equal(t, []string{"http://a/v1", "", "http://b/v1"}, endpoint.All(llm.Retry(llm.Fallback(a, unnamed, b), llm.RetryOptions{})))
	require.Equal(t, []string{""}, endpoint.All(unnamed))
}
