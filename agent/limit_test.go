package agent_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/callwait"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/supervise"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/limit"
)

// refuses returns a server that refuses so many calls and answers the next ones.
func refuses(name string, n int64, calls *atomic.Int64) *server {
	at := "http://" + name + ".example/v1"
	return &server{name: name, at: at, ModelFunc: func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		if calls.Add(1) <= n {
			return llm.Response{}, &llm.Error{Kind: callfault.RateLimited, Status: 429, Model: name, Endpoint: at}
		}
		return llm.Response{Text: name, CallInfo: llm.CallInfo{FinishReason: "stop"}, Usage: llm.Usage{InputTokens: 5, OutputTokens: 1}}, nil
	}}
}

// TestRateLimitIsNotARetry makes an agent that does not retry call an endpoint that
// refuses the first calls.
func TestRateLimitIsNotARetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		paid := &tally{}
		a := agent.New(refuses("busy", 4, &calls), agent.Options{Limits: new(limit.Group), Retry: llm.RetryOptions{Extra: -1}})
		reply, err := a.Run(supervise.With(t.Context(), paid, 0), promptOf(t, "", ""))
		require.NoError(t, err)
		require.Equal(t, "busy", reply.Text)
		require.EqualValues(t, 5, calls.Load())
		require.Len(t, paid.reserved, 1, "a call that is refused is paid with the one that is made again")
		require.Equal(t, []llm.Usage{{InputTokens: 5, OutputTokens: 1}}, paid.settled)
	})
}

// TestAgentsShareEndpointLimits makes agents call one endpoint, which answers in
// 8 seconds and is called once at a time.
func TestAgentsShareEndpointLimits(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, o agent.Options) (errs []error, took time.Duration) {
		o.Limits = new(limit.Group)
		o.Limits.Set("http://slow.example/v1", limit.Limits{MaxConcurrency: 1})
		errs = make([]error, 3)
		var wg sync.WaitGroup
		begun := time.Now()
		for i := range errs {
			m := &server{name: "slow", at: "http://slow.example/v1", ModelFunc: func(ctx context.Context, _ llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
				select {
				case <-time.After(8 * time.Second):
					return llm.Response{Text: "done", CallInfo: llm.CallInfo{FinishReason: "stop"}}, nil
				case <-ctx.Done():
					return llm.Response{}, context.Cause(ctx)
				}
			}}
			a := agent.New(m, o)
			wg.Go(func() { _, errs[i] = a.Run(t.Context(), promptOf(t, "", "")) })
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
		return errs, time.Since(begun).Truncate(time.Second)
	}
	synctest.Test(t, func(t *testing.T) {
		errs, took := run(t, agent.Options{CallTimeout: 9 * time.Second})
		require.Equal(t, []error{nil, nil, nil}, errs, "the time limit of a call does not count the waiting")
		require.Equal(t, 24*time.Second, took)

		errs, took = run(t, agent.Options{Timeout: 20 * time.Second})
		require.Equal(t, []error{nil, nil}, errs[:2])
		require.ErrorIs(t, errs[2], agent.Condition(codes.Timeout), "the time limit of the work counts the waiting")
		require.Equal(t, 20*time.Second, took)

		errs, took = run(t, agent.Options{Timeout: 12 * time.Second})
		require.NoError(t, errs[0])
		require.ErrorIs(t, errs[1], agent.Condition(codes.Timeout))
		require.ErrorIs(t, errs[2], agent.Condition(codes.Timeout))
		require.Equal(t, 12*time.Second, took)
	})
}

// TestLimitsAreSharedByDefault checks that agents without a Group of their own share limits.
func TestLimitsAreSharedByDefault(t *testing.T) {
	var calls atomic.Int64
	first := agent.New(refuses("shared", 1, &calls), agent.Options{})
	second := agent.New(refuses("shared", 0, new(atomic.Int64)), agent.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = first.Run(callwait.Observe(ctx, func(callwait.Wait) { cancel() }), promptOf(t, "", "")) })
	<-ctx.Done()
	wg.Wait()
	waits, stop := context.WithCancel(t.Context())
	_, err := second.Run(callwait.Observe(waits, func(callwait.Wait) { stop() }), promptOf(t, "", ""))
	require.ErrorIs(t, err, context.Canceled, "it waits for the pause that the first one caused")
}

// TestFallbackWhileEndpointIsRateLimited checks that a call does not wait for long
// while another model may answer, and for the last model as long as usual.
func TestFallbackWhileEndpointIsRateLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var busy, free atomic.Int64
		begun := time.Now()
		a := agent.New(refuses("busy", 100, &busy), agent.Options{Limits: new(limit.Group), Fallback: []llm.Model{refuses("free", 5, &free)}})
		reply, err := a.Run(t.Context(), promptOf(t, "", ""))
		require.NoError(t, err)
		require.Equal(t, "free", reply.Text)
		require.EqualValues(t, 2, busy.Load())
		require.EqualValues(t, 6, free.Load())
		require.Less(t, time.Since(begun), 120*time.Second)
	})
}
