package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// deaf is an agent that does not mind its context.
func deaf(d time.Duration) agentFunc {
	return func(context.Context, prompt.Prompt) (agent.Reply, error) {
		time.Sleep(d)
		return agent.Reply{Text: "done anyway"}, nil
	}
}

func TestAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errStop := errors.New("the user has seen enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(5*time.Second, func() { cancel(errStop) })
		var heard audience
		tm := newTeam(t, member("quick", sleeps(time.Second)), member("slow", sleeps(time.Hour)), member("next", sleeps(time.Second)), member("last", sleeps(time.Second)), member("deaf", deaf(10*time.Second)))
		start := time.Now()
		res, err := tm.RunTasks(ctx, []task.Spec{spec("quick"), spec("slow"), spec("deaf"), spec("next", "slow"), spec("last", "deaf")}, heard.options())
		require.NoError(t, err)
		require.Equal(t, 10*time.Second, time.Since(start), "it waits for what runs")
		require.Equal(t, []task.Status{task.Completed, task.Skipped, task.Completed, task.Skipped, task.Skipped}, statuses(res))
		require.Equal(t, "done", of(t, res, "quick").Result)
		require.Equal(t, "done anyway", of(t, res, "deaf").Result, "finished work is returned")
		for title, reason := range map[string]string{"slow": "Interrupted: run aborted.", "next": "Skipped: run aborted.", "last": "Skipped: run aborted."} {
			require.Equal(t, reason, of(t, res, title).Result)
			require.Nil(t, of(t, res, title).Error)
		}
		require.Zero(t, of(t, res, "last").Metrics.Attempts, "nothing starts after the cancel")
		require.Equal(t, engine.StatusCanceled, res.Status)
		require.False(t, res.Success())
		require.Equal(t, errStop, res.Cause)
		require.ErrorIs(t, res.Err(), errStop)
		require.ErrorIs(t, res.Err(), engine.ErrCanceled)
		require.Empty(t, res.Errors)

		skipped := heard.only(event.TaskSkipped)
		require.Len(t, skipped, 3)
		require.Equal(t, "Interrupted: run aborted.", skipped[0].Message)
		for _, e := range heard.only(event.AgentComplete) {
			if e.Title == "slow" {
				require.Equal(t, "CANCELED", e.Code)
			}
		}
		require.Equal(t, "cancelled", heard.events[len(heard.events)-1].Code)
	})
}

func TestAgentThatReturnsTheCauseIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errBroken) })
		var heard audience
		waits := func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
			<-ctx.Done()
			return agent.Reply{}, context.Cause(ctx)
		}
		s := retrying("a", 2)
		res, err := newTeam(t, member("a", waits)).RunTasks(ctx, []task.Spec{s}, heard.options())
		require.NoError(t, err)
		require.Equal(t, []task.Status{task.Skipped}, statuses(res))
		require.Equal(t, "CANCELED", heard.only(event.AgentComplete)[0].Code)
		require.Empty(t, heard.only(event.TaskRetry), "no attempt follows")
	})
}

func TestContextThatHasEndedStartsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var called log
	tm := newTeam(t, member("a", func(context.Context, prompt.Prompt) (agent.Reply, error) {
		called.add("called")
		return agent.Reply{}, nil
	}))
	res, err := tm.RunTasks(ctx, []task.Spec{spec("a")}, nil)
	require.NoError(t, err, "a run that started always returns a result")
	require.Empty(t, called.all())
	require.Equal(t, engine.StatusCanceled, res.Status)
	require.ErrorIs(t, res.Err(), context.Canceled)
	require.Equal(t, "Skipped: run aborted.", of(t, res, "a").Result)
}

func TestCancelAfterTheLastTaskIsASuccess(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	tm := newTeam(t, member("a", func(context.Context, prompt.Prompt) (agent.Reply, error) {
		cancel()
		return agent.Reply{Text: "x"}, nil
	}))
	res, err := tm.RunTasks(ctx, []task.Spec{spec("a")}, nil)
	require.NoError(t, err)
	require.Equal(t, engine.StatusOK, res.Status)
	require.NoError(t, res.Err())
	require.NoError(t, res.Cause)
}

func TestFailureDuringAnAbortKeepsItsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		tm := newTeam(t, member("fails", fails(errBroken)), member("slow", sleeps(time.Hour)))
		res, err := tm.RunTasks(ctx, []task.Spec{spec("fails"), spec("slow")}, nil)
		require.NoError(t, err)
		require.Equal(t, engine.StatusTimeout, res.Status, "a deadline of the caller's is a timeout")
		require.ErrorIs(t, res.Err(), context.DeadlineExceeded)
		require.ErrorIs(t, res.Err(), engine.ErrTimeout)
		require.ErrorIs(t, res.Err(), errBroken)
		require.Equal(t, []task.Status{task.Failed, task.Skipped}, statuses(res))
	})
}

func TestRunTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, member("quick", sleeps(time.Second)), member("slow", sleeps(time.Hour)))
		start := time.Now()
		res := run(t, tm, &engine.RunOptions{Timeout: 3 * time.Second}, spec("quick"), spec("slow", "quick"))
		require.Equal(t, 3*time.Second, time.Since(start))
		require.Equal(t, engine.StatusTimeout, res.Status)
		require.ErrorIs(t, res.Cause, engine.ErrTimeout)
		require.EqualError(t, res.Err(), "run timed out after 3s")
		require.Equal(t, []task.Status{task.Completed, task.Skipped}, statuses(res))
	})
}

func TestAttemptTimeout(t *testing.T) {
	t.Parallel()
	limited := func(s task.Spec) task.Spec { s.Timeout = 2 * time.Second; return s }
	bounded := func(m engine.Member) engine.Member { m.MaxSession = 2 * time.Second; return m }
	tests := []struct {
		name string
		give engine.Member
		spec task.Spec
		took time.Duration
	}{
		{"of the task", member("a", sleeps(time.Hour)), limited(spec("a")), 2 * time.Second},
		{"of the agent's session", bounded(member("a", sleeps(time.Hour))), spec("a"), 2 * time.Second},
		{"exactly at the limit", member("a", sleeps(2*time.Second)), limited(spec("a")), 2 * time.Second},
		{"a late reply is refused", member("a", deaf(time.Minute)), limited(spec("a")), time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				res := run(t, newTeam(t, tt.give, member("b", says("b"))), nil, tt.spec, spec("b"))
				require.Equal(t, tt.took, res.EndedAt.Sub(res.StartedAt))
				require.Equal(t, "TIMEOUT", of(t, res, "a").Error.Code)
				require.Equal(t, engine.StatusError, res.Status, "the run itself was in time")
				require.Equal(t, "b", of(t, res, "b").Result)
			})
		})
	}
}

func TestAttemptInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := spec("a")
		s.Timeout = 2 * time.Second
		res := run(t, newTeam(t, member("a", sleeps(2*time.Second-time.Nanosecond))), nil, s)
		require.True(t, res.Success())
	})
}

func TestEachAttemptHasItsOwnTime(t *testing.T) {
	t.Parallel()
	for name, stuck := range map[string]agentFunc{"an agent that minds its context": sleeps(time.Hour), "one that does not": deaf(3 * time.Second)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				second := func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
					if calls++; calls == 1 {
						return stuck(ctx, p)
					}
					return sleeps(time.Second)(ctx, p)
				}
				s := retrying("a", 1)
				s.Timeout = 2 * time.Second
				res := run(t, newTeam(t, member("a", second)), nil, s)
				require.True(t, res.Success(), "a timeout is worth another attempt: %v", res.Err())
				require.Equal(t, 2, calls)
			})
		})
	}
}

func TestAttemptTimeoutKeepsTheAgentsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := spec("a")
		s.Timeout = time.Second
		res := run(t, newTeam(t, member("a", func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
			<-ctx.Done()
			return agent.Reply{}, errBroken
		})), nil, s)
		require.ErrorIs(t, res.Err(), engine.ErrAttemptTimeout)
		require.ErrorIs(t, res.Err(), errBroken)
		require.Equal(t, "the attempt took too long: more than 1s: the agent is out of order", of(t, res, "a").Error.Message)
	})
}

// An abort ends each phase of a run for a goal, and what is done is returned.
func TestAbortInEachPhase(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{"plan", "task", "synthesis"} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			stop := func(ctx context.Context) (agent.Reply, error) {
				cancel()
				<-ctx.Done()
				return agent.Reply{}, ctx.Err()
			}
			coordinator := engine.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
				switch synthesis := strings.Contains(p.Text(), "## Original Goal"); {
				case !synthesis && phase == "plan", synthesis && phase == "synthesis":
					return stop(ctx)
				case synthesis:
					return agent.Reply{Text: "the answer"}, nil
				}
				return agent.Reply{Text: twoTasks}, nil
			})
			tm := led(t, coordinator, member("ada", says("done")), member("bob", func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
				if phase == "task" {
					return stop(ctx)
				}
				return agent.Reply{Text: "told"}, nil
			}))
			res, err := tm.RunTeam(ctx, engine.Goal{Text: "x"}, nil)
			require.NoError(t, err)
			require.Equal(t, engine.StatusCanceled, res.Status)
			require.ErrorIs(t, res.Err(), engine.ErrCanceled)
			require.Empty(t, res.Output)
			switch phase {
			case "plan":
				require.Empty(t, res.Tasks)
				require.Equal(t, "COORDINATOR_DECOMPOSITION_FAILED", res.Errors[0].Code)
			case "task":
				require.Equal(t, task.Completed, res.Tasks[0].Status)
				require.Equal(t, "Interrupted: run aborted.", res.Tasks[1].Result)
				require.Equal(t, []engine.StepKind{engine.StepPlan}, kinds(res), "nobody is asked for an answer any more")
			case "synthesis":
				require.Equal(t, "told", res.Tasks[1].Result)
				require.Equal(t, "COORDINATOR_SYNTHESIS_FAILED", res.Errors[0].Code)
			}
		})
	}
}

func TestGoalThatWasCanceledBeforeCallsNoAgent(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	res, err := led(t, engine.AgentFunc(never(t)), member("ada", never(t)), member("bob", never(t))).RunTeam(ctx, engine.Goal{Text: "x"}, nil)
	require.NoError(t, err)
	require.Equal(t, engine.StatusCanceled, res.Status)
	require.Equal(t, "COORDINATOR_DECOMPOSITION_FAILED", res.Errors[0].Code)
	require.Equal(t, "CANCELED", res.Errors[0].Reason)
}

func TestRepairedPlanWarnsWhatWasWrong(t *testing.T) {
	t.Parallel()
	c := &planner{plans: []string{`[{"title": "A", "description": "x", "assignee": "eve"}]`, twoTasks}}
	res, err := led(t, c, member("ada", says("a")), member("bob", says("b"))).RunTeam(t.Context(), engine.Goal{Text: "x"}, nil)
	require.NoError(t, err)
	require.True(t, res.Success())
	require.Len(t, res.Warnings, 1)
	require.Contains(t, res.Warnings[0], `was given back`)
	require.Contains(t, res.Warnings[0], `unknown agent "eve"`)
}
