package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/limit"
	"github.com/runteam/runteam/task"
)

// A quota is a model that refuses calls above 10 in 10 seconds, without saying until when.
type quota struct {
	mu             sync.Mutex
	began          time.Time
	calls, refused int
}

func (q *quota) Endpoint() string { return "http://quota.example/v1" }

func (q *quota) Call(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if time.Since(q.began) >= 10*time.Second {
		q.began, q.calls = time.Now(), 0
	}
	if q.calls++; q.calls > 10 {
		q.refused++
		return llm.Response{}, &llm.Error{Kind: callfault.RateLimited, Status: 429, Endpoint: q.Endpoint()}
	}
	return llm.Response{Text: "done", CallInfo: llm.CallInfo{FinishReason: "stop"}}, nil
}

// TestTasksAboveARateLimitComplete runs 40 tasks against an endpoint that takes 10 calls
// in 10 seconds. Before calls waited for their endpoint, 20 of them failed, and 64 of 84
// calls were refused.
func TestTasksAboveARateLimitComplete(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tasks []task.Spec
		for i := range 40 {
			tasks = append(tasks, task.Spec{Title: fmt.Sprint("task ", i), Description: "Do it.", Assignee: "a"})
		}
		q := &quota{}
		var heard audience
		tm := newTeam(t, engine.Member{Name: "a", Agent: agent.New(q, agent.Options{Limits: new(limit.Group)})})
		res := run(t, tm, heard.options(), tasks...)
		require.NoError(t, res.Err())
		require.LessOrEqual(t, q.refused*100, 20*(40+q.refused), "%d of %d calls", q.refused, 40+q.refused)
		require.NotZero(t, q.refused)

		limited := heard.only(event.Limited)
		require.NotEmpty(t, limited)
		require.LessOrEqual(t, len(limited), q.refused)
		require.Equal(t, "http://quota.example/v1: its rate limit is reached; calls wait", limited[0].Message)
		require.GreaterOrEqual(t, limited[0].Wait, time.Second)
		require.NotEmpty(t, limited[0].Task)
		require.Empty(t, heard.only(event.Warning), "no call was retried")
	})
}

// TestCallsThatWaitForSetLimitsSaySo checks that a run says why its tasks wait, and that
// it does so seldom.
func TestCallsThatWaitForSetLimitsSaySo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := new(limit.Group)
		limits.Set("http://quota.example/v1", limit.Limits{RequestsPerMinute: 5})
		var tasks []task.Spec
		for i := range 20 {
			tasks = append(tasks, task.Spec{Title: fmt.Sprint("task ", i), Description: "Do it.", Assignee: "a"})
		}
		var heard audience
		tm := newTeam(t, engine.Member{Name: "a", Agent: agent.New(&quota{}, agent.Options{Limits: limits})})
		res := run(t, tm, heard.options(), tasks...)
		require.NoError(t, res.Err())
		require.Equal(t, 3*61*time.Second, res.EndedAt.Sub(res.StartedAt).Round(time.Second))
		limited := heard.only(event.Limited)
		require.Len(t, limited, 3)
		for _, e := range limited {
			require.Equal(t, "http://quota.example/v1: the limits that are set for it are reached; calls may wait", e.Message)
			require.Equal(t, 61*time.Second, e.Wait.Round(time.Second))
		}
	})
}
