package llm_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/callwait"
	"github.com/runteam/runteam/llm"
)

// answers is a model that gives one answer after the other.
type answers struct {
	errs  []error // nil means a success; after the last, successes
	calls []time.Time
	each  func(emit func(llm.Delta) error) error
}

func (a *answers) Call(ctx context.Context, _ llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
	n := len(a.calls)
	a.calls = append(a.calls, time.Now())
	if err := ctx.Err(); err != nil {
		return llm.Response{}, context.Cause(ctx)
	}
	if a.each != nil && emit != nil {
		if err := a.each(emit); err != nil {
			return llm.Response{}, err
		}
	}
	if n < len(a.errs) && a.errs[n] != nil {
		return llm.Response{}, a.errs[n]
	}
	return llm.Response{Text: "done", Usage: llm.Usage{InputTokens: 10, OutputTokens: 1}}, nil
}

func failures(kind string, n int) []error {
	var all []error
	for range n {
		all = append(all, &llm.Error{Kind: kind, Usage: llm.Usage{InputTokens: 3}})
	}
	return all
}

func TestRetryKinds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		kind  string
		calls int
	}{
		{callfault.RateLimited, 3},
		{callfault.ServerError, 3},
		{callfault.Unreachable, 3},
		{callfault.BadResponse, 3},
		{callfault.Cut, 3},
		{callfault.Empty, 3},
		{callfault.Unauthorized, 1},
		{callfault.NoCredit, 1},
		{callfault.UnknownModel, 1},
		{callfault.NotFound, 1},
		{callfault.BadRequest, 1},
		{callfault.TooLarge, 1},
		{callfault.Timeout, 1},
		{"", 1},
	}
	for _, tt := range tests {
		t.Run(string(tt.kind), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &answers{errs: failures(tt.kind, 5)}
				_, err := llm.Retry(m, llm.RetryOptions{}).Call(t.Context(), llm.Request{}, nil)
				e, ok := errors.AsType[*llm.Error](err)
				require.True(t, ok)
				require.Equal(t, tt.kind, e.Kind)
				require.Len(t, m.calls, tt.calls)
				require.Equal(t, 3*tt.calls, e.Usage.InputTokens, "what the failed attempts took is counted")
			})
		})
	}
}

func TestRetrySucceedsOnThirdAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &answers{errs: failures(callfault.ServerError, 2)}
		var seen []callwait.Wait
		ctx := callwait.Observe(t.Context(), func(w callwait.Wait) {
			require.ErrorAs(t, w.Err, new(*llm.Error))
			seen = append(seen, w)
		})
		res, err := llm.Retry(m, llm.RetryOptions{}).Call(ctx, llm.Request{}, nil)
		require.NoError(t, err)
		require.Equal(t, "done", res.Text)
		require.Equal(t, llm.Usage{InputTokens: 16, OutputTokens: 1}, res.Usage)
		require.Len(t, seen, 2)
		require.InDelta(t, time.Second, seen[0].For, float64(time.Second/2+1))
		require.InDelta(t, 2*time.Second, seen[1].For, float64(time.Second+1))
		require.Equal(t, seen[0].For, m.calls[1].Sub(m.calls[0]), "it waits as long as it says")
		require.Equal(t, seen[1].For, m.calls[2].Sub(m.calls[1]))
	})
}

func TestRetryExtra(t *testing.T) {
	t.Parallel()
	for extra, calls := range map[int]int{-1: 1, 0: 3, 1: 2, 4: 5} {
		synctest.Test(t, func(t *testing.T) {
			m := &answers{errs: failures(callfault.Cut, 9)}
			_, err := llm.Retry(m, llm.RetryOptions{Extra: extra}).Call(t.Context(), llm.Request{}, nil)
			require.Error(t, err)
			require.Len(t, m.calls, calls)
		})
	}
}

func TestRetryHonorsRetryAfter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		after time.Duration
		calls int
	}{
		{"two minutes", 2 * time.Minute, 2},
		{"longer", 2*time.Minute + time.Second, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				m := &answers{errs: []error{&llm.Error{Kind: callfault.RateLimited, RetryAfter: tt.after}}}
				_, err := llm.Retry(m, llm.RetryOptions{}).Call(t.Context(), llm.Request{}, nil)
				require.Len(t, m.calls, tt.calls)
				if tt.calls == 1 {
					require.ErrorContains(t, err, "retry after 2m1s")
					require.Zero(t, time.Since(start), "it does not wait in vain")
					return
				}
				require.NoError(t, err)
				require.Equal(t, tt.after, time.Since(start))
			})
		})
	}
}

func TestRetryStopsWhenContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stop := errors.New("stopped by hand")
		ctx, cancel := context.WithCancelCause(t.Context())
		start := time.Now()
		time.AfterFunc(time.Minute, func() { cancel(stop) })
		m := &answers{errs: []error{&llm.Error{Kind: callfault.RateLimited, Status: 429, RetryAfter: 90 * time.Second}}}
		_, err := llm.Retry(m, llm.RetryOptions{}).Call(ctx, llm.Request{}, nil)
		require.ErrorIs(t, err, stop)
		require.ErrorContains(t, err, "rate limited (429)", "it names the failure before the wait")
		require.Equal(t, time.Minute, time.Since(start))
		require.Len(t, m.calls, 1)
	})
}

func TestRetryNumbersStreamAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &answers{errs: failures(callfault.Cut, 1), each: func(emit func(llm.Delta) error) error {
			return errors.Join(emit(llm.Delta{Text: "a", Attempt: 1}), emit(llm.Delta{Text: "b", Attempt: 1}))
		}}
		var got []llm.Delta
		_, err := llm.Retry(m, llm.RetryOptions{}).Call(t.Context(), llm.Request{}, func(d llm.Delta) error {
			got = append(got, d)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, []llm.Delta{{"a", 1}, {"b", 1}, {"a", 2}, {"b", 2}}, got)
	})
}

func TestRetryStopsWhenEmitFails(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	m := &answers{each: func(emit func(llm.Delta) error) error {
		if emit(llm.Delta{Text: "a"}) != nil {
			return &llm.Error{Kind: callfault.Cut} // a model that takes it for its own failure
		}
		return nil
	}}
	_, err := llm.Retry(m, llm.RetryOptions{}).Call(t.Context(), llm.Request{}, func(llm.Delta) error { return full })
	require.Error(t, err)
	require.Len(t, m.calls, 1)
}

func TestRetryReturnsOtherErrors(t *testing.T) {
	t.Parallel()
	strange := errors.New("strange")
	m := &answers{errs: []error{strange}}
	_, err := llm.Retry(m, llm.RetryOptions{}).Call(t.Context(), llm.Request{}, nil)
	require.Equal(t, strange, err)
	require.Len(t, m.calls, 1)
}

func TestModelFunc(t *testing.T) {
	t.Parallel()
	var m llm.Model = llm.ModelFunc(func(_ context.Context, req llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: req.System}, nil
	})
	res, err := m.Call(t.Context(), llm.Request{System: "x"}, nil)
	require.NoError(t, err)
	require.Equal(t, "x", res.Text)
	_, err = llm.ModelFunc(nil).Call(t.Context(), llm.Request{}, nil)
	require.ErrorIs(t, err, llm.ErrNoModel)
}
