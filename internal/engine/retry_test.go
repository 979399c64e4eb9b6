package engine_test

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
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// flaky is an agent that fails n times and then answers.
func flaky(n int, err error) agentFunc {
	calls := 0
	return func(context.Context, prompt.Prompt) (agent.Reply, error) {
		calls++
		usage := llm.Usage{InputTokens: 10, OutputTokens: 1}
		if calls <= n {
			return agent.Reply{Usage: usage}, err
		}
		return agent.Reply{Text: fmt.Sprint("answer ", calls), Usage: usage}, nil
	}
}

func retrying(title string, n int) task.Spec {
	s := spec(title)
	s.MaxRetries = n
	return s
}

func TestRetryDelays(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		delay   time.Duration
		backoff float64
		random  float64
		want    []time.Duration
	}{
		{"defaults, no jitter", 0, 0, 0, []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 15 * time.Second}},
		{"half of the jitter", 0, 0, 0.5, []time.Duration{750 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second, 6 * time.Second, 12 * time.Second, 22500 * time.Millisecond}},
		{"own delay and factor", 100 * time.Millisecond, 3, 0, []time.Duration{50 * time.Millisecond, 150 * time.Millisecond, 450 * time.Millisecond}},
		{"no growth", time.Second, 1, 0, []time.Duration{500 * time.Millisecond, 500 * time.Millisecond}},
		{"no pause", task.NoDelay, 2, 0.9, []time.Duration{0, 0, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var heard audience
				o := heard.options()
				o.Random = func() float64 { return tt.random }
				s := retrying("a", len(tt.want))
				s.RetryDelay, s.RetryBackoff = tt.delay, tt.backoff
				res := run(t, newTeam(t, member("a", flaky(len(tt.want), errBroken))), o, s)
				require.True(t, res.Success())
				var waits []time.Duration
				var sum time.Duration
				for i, e := range heard.only(event.TaskRetry) {
					waits = append(waits, e.Wait)
					sum += e.Wait
					require.Equal(t, i+1, e.Attempt)
					require.Equal(t, "AGENT_ERROR", e.Code)
					require.Equal(t, errBroken.Error(), e.Message)
				}
				require.Equal(t, tt.want, waits)
				require.Equal(t, sum, res.EndedAt.Sub(res.StartedAt), "it waits as long as it says")
			})
		})
	}
}

func TestAttemptsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard audience
		res := run(t, newTeam(t, member("a", flaky(2, errBroken))), heard.options(), retrying("a", 5))
		a := of(t, res, "a")
		require.Equal(t, "answer 3", a.Result)
		require.Equal(t, 3, a.Metrics.Attempts)
		require.Equal(t, llm.Usage{InputTokens: 30, OutputTokens: 3}, a.Metrics.Usage, "failed attempts cost too")
		require.Equal(t, a.Metrics.Usage, res.Usage)
		require.Equal(t, res.StartedAt, a.Metrics.Start, "the first attempt")
		require.Equal(t, res.EndedAt, a.Metrics.End, "the last one")
		require.Len(t, a.Receipts, 3)
		require.NotEqual(t, a.Receipts[0].Session, a.Receipts[1].Session, "each attempt has a contract of its own")
		for i, e := range heard.only(event.AgentStart) {
			require.Equal(t, i+1, e.Attempt)
		}
	})
}

func TestMaxRetriesBoundsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for retries, want := range map[int]int{-1: 1, 0: 1, 1: 2, 4: 5} {
			res := run(t, newTeam(t, member("a", flaky(100, errBroken))), nil, retrying("a", retries))
			require.Equal(t, want, of(t, res, "a").Metrics.Attempts, retries)
			require.Equal(t, task.Failed, of(t, res, "a").Status)
			require.ErrorIs(t, res.Err(), errBroken)
		}
	})
}

func TestWaitingTaskHoldsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := member("waits", flaky(1, errBroken))
		slow.MaxParallel = 1
		waits, also := retrying("waits", 1), spec("also")
		waits.RetryDelay = 20 * time.Second
		also.Assignee = "waits"
		res := run(t, newTeam(t, slow, member("works", sleeps(time.Second))), &engine.RunOptions{MaxConcurrency: 1, Random: func() float64 { return 0 }}, waits, also, spec("works"))
		require.True(t, res.Success())
		require.Equal(t, time.Duration(0), of(t, res, "also").Metrics.Start.Sub(res.StartedAt), "nor a slot of its agent")
		require.Equal(t, time.Second, of(t, res, "works").Metrics.End.Sub(res.StartedAt))
		require.Equal(t, 10*time.Second, of(t, res, "waits").Metrics.End.Sub(res.StartedAt))
	})
}

func TestTerminalErrorsAreNotRetried(t *testing.T) {
	t.Parallel()
	schema := spec("a")
	schema.OutputSchema = []byte(`{"type":"number"}`)
	tests := []struct {
		name  string
		agent agentFunc
		spec  task.Spec
		code  string
	}{
		{"a reply that does not match the schema", says("no number"), schema, "OUTPUT_SCHEMA_INVALID"},
		{"the agent says that it cannot match the schema", fails(codes.Condition(codes.Schema)), spec("a"), "OUTPUT_SCHEMA_INVALID"},
		{"no turn left", fails(codes.Condition(codes.MaxTurns)), spec("a"), "MAX_TURNS"},
		{"a tool that was not given", fails(codes.Condition(codes.ToolCall)), spec("a"), "TOOL_NOT_GRANTED"},
		{"401", fails(&llm.Error{Kind: callfault.Unauthorized, Status: 401}), spec("a"), "MODEL_UNAUTHORIZED"},
		{"402", fails(&llm.Error{Kind: callfault.NoCredit, Status: 402}), spec("a"), "MODEL_NO_CREDIT"},
		{"404", fails(&llm.Error{Kind: callfault.NotFound, Status: 404}), spec("a"), "MODEL_NOT_FOUND"},
		{"unknown model", fails(&llm.Error{Kind: callfault.UnknownModel, Status: 404}), spec("a"), "MODEL_UNKNOWN_MODEL"},
		{"400", fails(&llm.Error{Kind: callfault.BadRequest, Status: 400}), spec("a"), "MODEL_BAD_REQUEST"},
		{"a reply above the limit", fails(&llm.Error{Kind: callfault.TooLarge, Status: 200}), spec("a"), "MODEL_TOO_LARGE"},
		{"wrapped", fails(fmt.Errorf("ask: %w", &llm.Error{Kind: callfault.BadRequest, Status: 422})), spec("a"), "MODEL_BAD_REQUEST"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.spec.MaxRetries = 3
			res := run(t, newTeam(t, member("a", tt.agent)), nil, tt.spec)
			require.Equal(t, 1, of(t, res, "a").Metrics.Attempts)
			require.Equal(t, tt.code, of(t, res, "a").Error.Code)
		})
	}
}

func TestTransientErrorsAreRetried(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err  error
		code string
	}{
		{&llm.Error{Kind: callfault.RateLimited, Status: 429}, "MODEL_RATE_LIMITED"},
		{&llm.Error{Kind: callfault.ServerError, Status: 500}, "MODEL_SERVER_ERROR"},
		{&llm.Error{Kind: callfault.Unreachable}, "MODEL_UNREACHABLE"},
		{&llm.Error{Kind: callfault.BadResponse, Status: 200}, "MODEL_BAD_RESPONSE"},
		{&llm.Error{Kind: callfault.Cut, Status: 200}, "MODEL_CUT"},
		{&llm.Error{Kind: callfault.Empty, Status: 200}, "MODEL_EMPTY"},
		{&llm.Error{Kind: callfault.Timeout}, "MODEL_TIMEOUT"},
		{&llm.Error{}, "MODEL_ERROR"},
		{codes.Condition(codes.Timeout), "TIMEOUT"},
		{errors.New(""), "AGENT_ERROR"},
	}
	for _, tt := range tests {
		t.Run(tt.code, func(t *testing.T) {
			t.Parallel()
			s := retrying("a", 1)
			s.RetryDelay = task.NoDelay
			res := run(t, newTeam(t, member("a", fails(tt.err))), nil, s)
			require.Equal(t, 2, of(t, res, "a").Metrics.Attempts)
			require.Equal(t, tt.code, of(t, res, "a").Error.Code)
			require.NotEmpty(t, of(t, res, "a").Error.Message)
			require.ErrorIs(t, res.Err(), tt.err)
		})
	}
}

func TestCancelEndsTheWaitForARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := retrying("a", 3)
		s.RetryDelay = 20 * time.Second
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		res, err := newTeam(t, member("a", fails(errBroken))).RunTasks(ctx, []task.Spec{s}, nil)
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, engine.StatusCanceled, res.Status)
		require.Equal(t, task.Skipped, of(t, res, "a").Status)
		require.Equal(t, 1, of(t, res, "a").Metrics.Attempts)
	})
}
