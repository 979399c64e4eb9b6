package engine_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

func TestEventsOfARun(t *testing.T) {
	t.Parallel()
	brief := spec("plain")
	brief.TTL = time.Nanosecond // its result is gone before its reader starts
	retried := retrying("flaky", 1)
	retried.RetryDelay = task.NoDelay
	tests := []struct {
		name string
		give []task.Spec
		want []string
	}{
		{"a success", []task.Spec{spec("plain")},
			[]string{"run_start", "task_ready plain", "task_start plain", "agent_start plain", "agent_complete plain", "task_complete plain", "all_complete", "run_complete"}},
		{"a retry", []task.Spec{retried},
			[]string{"run_start", "task_ready flaky", "task_start flaky", "agent_start flaky", "agent_complete flaky", "task_retry flaky", "task_ready flaky", "agent_start flaky", "agent_complete flaky", "task_complete flaky", "all_complete", "run_complete"}},
		{"a failure and its cascade", []task.Spec{spec("broken"), spec("next", "broken"), spec("last", "next")},
			[]string{"run_start", "task_ready broken", "task_start broken", "agent_start broken", "agent_complete broken", "error broken", "error next", "error last", "all_complete", "run_complete"}},
		{"held before its agent starts", []task.Spec{brief, spec("reader", "plain")},
			[]string{"run_start", "task_ready plain", "task_start plain", "agent_start plain", "agent_complete plain", "task_complete plain", "task_ready reader", "task_start reader", "error reader", "all_complete", "run_complete"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tm := newTeam(t, member("plain", says("fine")), member("flaky", flaky(1, errBroken)), member("broken", fails(errBroken)),
				member("next", says("x")), member("last", says("x")), member("reader", says("x")))
			var heard audience
			o := heard.options()
			o.MaxConcurrency, o.RunID = 1, "run-7"
			run(t, tm, o, tt.give...)
			require.Equal(t, tt.want, heard.types())
			for i, e := range heard.events {
				require.Equal(t, i+1, e.Seq, "without a gap")
				require.Equal(t, "run-7", e.Run)
				if i > 0 {
					require.False(t, e.Time.Before(heard.events[i-1].Time))
				}
			}
		})
	}
}

func TestEventsHaveTheirData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		worker := func(context.Context, prompt.Prompt) (agent.Reply, error) {
			time.Sleep(time.Second)
			return agent.Reply{Text: "four", Usage: llm.Usage{InputTokens: 7, OutputTokens: 3}}, nil
		}
		var heard audience
		tm := newTeam(t, member("a", worker), member("broken", fails(errBroken)), member("x", says("x")), member("y", says("y")))
		res := run(t, tm, heard.options(), spec("a"), spec("broken"), spec("x", "broken"), spec("y", "x"))
		a, broken := of(t, res, "a").ID, of(t, res, "broken").ID

		require.Equal(t, 4, heard.events[0].Tasks)
		for _, e := range heard.events {
			switch {
			case e.Type == event.AgentStart && e.Task == a:
				require.Equal(t, len("# Task: a\n\nDo a."), e.Bytes)
				require.Equal(t, of(t, res, "a").Receipts[0], e.Receipt)
			case e.Type == event.AgentComplete && e.Task == a, e.Type == event.TaskComplete && e.Task == a:
				require.Equal(t, task.Completed, e.Status)
				require.Equal(t, []int{7, 3, 4}, []int{e.Input, e.Output, e.Bytes}, e.Type)
				require.Equal(t, time.Second, e.Duration)
			case e.Type == event.Error && e.Task == broken:
				require.Equal(t, []string{"AGENT_ERROR", errBroken.Error(), ""}, []string{e.Code, e.Message, string(e.Root)})
			case e.Type == event.Error:
				require.Equal(t, task.Failed, e.Status)
				require.Equal(t, codes.Dependency, e.Code)
				require.Equal(t, broken, e.Root, "not the direct dependency, but where it began")
				require.Equal(t, of(t, res, e.Title).Error.Message, e.Message)
			}
		}
		end := heard.events[len(heard.events)-1]
		require.Equal(t, "error", end.Code)
		require.Equal(t, []int{7, 3}, []int{end.Input, end.Output})
		require.Equal(t, time.Second, end.Duration)
	})
}

func TestWarningsAndRevealAreEvents(t *testing.T) {
	t.Parallel()
	var heard audience
	o := heard.options()
	o.Inputs = []engine.Input{{Name: "unused", Text: "x"}}
	o.UserAccepts, o.Reveal = new(label.Secret), true
	res := run(t, newTeam(t, member("a", says("x"))), o, spec("a"))
	require.Equal(t, []string{`input "unused": no task uses it`}, res.Warnings)
	require.Equal(t, res.Warnings[0], heard.only(event.Warning)[0].Message)
	require.Equal(t, "the caller reads up to secret", heard.only(event.Reveal)[0].Message)
}

func TestSlowSubscriberDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow, quick audience
		res := run(t, newTeam(t, member("a", sleeps(time.Second))), &engine.RunOptions{Subscribers: []func(event.Event){
			func(e event.Event) { time.Sleep(500 * time.Millisecond); slow.take(e) },
			quick.take,
		}}, spec("a"))
		require.Equal(t, time.Second, res.EndedAt.Sub(res.StartedAt))
		require.Equal(t, quick.events, slow.events, "it has caught up when the run returns")
	})
}

func TestSubscriberThatPanicsIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	tm, err := engine.New(engine.Config{Agents: []engine.Member{member("a", says("x"))}, Logger: slog.New(slog.NewTextHandler(&out, nil))})
	require.NoError(t, err)
	var heard audience
	calls := 0
	res := run(t, tm, &engine.RunOptions{Subscribers: []func(event.Event){
		func(event.Event) { calls++; panic("not ready") },
		heard.take,
	}}, spec("a"))
	require.True(t, res.Success())
	require.Len(t, heard.events, 9)
	require.Equal(t, 9, calls, "it still gets every event")
	require.Equal(t, 1, strings.Count(out.String(), "panicked"))
}

func TestSubscriberThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		tm, err := engine.New(engine.Config{Agents: []engine.Member{member("a", says("x"))}, Logger: slog.New(slog.NewTextHandler(&out, nil))})
		require.NoError(t, err)
		stuck := make(chan struct{})
		var heard audience
		start := time.Now()
		res := run(t, tm, &engine.RunOptions{Subscribers: []func(event.Event){func(event.Event) { <-stuck }, heard.take}}, spec("a"))
		require.True(t, res.Success())
		require.Equal(t, 5*time.Second, time.Since(start))
		require.Equal(t, res.StartedAt, res.EndedAt, "the run itself was not held up")
		require.Len(t, heard.events, 9)
		require.Contains(t, out.String(), "did not take its events in time")
		close(stuck) // synctest fails if the goroutine is not gone then
	})
}

func TestRunsOfOneTeamAtTheSameTime(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	tm := newTeam(t, member("a", func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		served.Add(1)
		return agent.Reply{Text: p.Receipt().Run}, nil
	}))
	for _, id := range []string{"one", "two", "three", "four"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			var heard audience
			o := heard.options()
			o.RunID = id
			res := run(t, tm, o, spec("a"))
			require.Equal(t, id, res.RunID)
			require.Equal(t, id, res.Output)
			require.Len(t, heard.events, 9)
		})
	}
	require.NotEqual(t, run(t, tm, nil, spec("a")).RunID, run(t, tm, nil, spec("a")).RunID)
}
