package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A slowJournal takes a while for each commit. Commits follow one another.
type slowJournal struct {
	memory
	takes time.Duration
}

func (j *slowJournal) OpenRun(context.Context, record.Opening) (record.Log, error) { return j, nil }

func (j *slowJournal) Append(entries []record.Entry, done func(error)) {
	j.memory.Append(entries, func(err error) {
		time.Sleep(j.takes)
		done(err)
	})
}

// The time of an attempt is its agent's: neither the wait for the journal nor
// that for a recorder counts, and each attempt has all of it.
func TestAttemptsTimeStartsWhenItsAgentIsCalled(t *testing.T) {
	t.Parallel()
	slow := func(context.Context, record.Prompt) error {
		time.Sleep(time.Second)
		return nil
	}
	limits := map[string]func(*task.Spec, *engine.Member){
		"of the task":  func(s *task.Spec, _ *engine.Member) { s.Timeout = 5 * time.Millisecond },
		"of the agent": func(_ *task.Spec, m *engine.Member) { m.MaxSession = 5 * time.Millisecond },
	}
	for name, limit := range limits {
		for _, o := range []engine.RunOptions{{Journal: &slowJournal{takes: time.Second}}, {Recorder: slow}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					left := []time.Duration{}
					m := member("a", func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
						end, ok := ctx.Deadline()
						require.True(t, ok)
						if left = append(left, time.Until(end)); len(left) == 1 {
							return agent.Reply{}, errBroken
						}
						time.Sleep(4 * time.Millisecond)
						return agent.Reply{Text: "x"}, nil
					})
					s, next := retrying("a", 1), by("a", spec("b", "a"))
					limit(&s, &m)
					limit(&next, &m)
					res := run(t, newTeam(t, m), &o, s, next)
					require.NoError(t, res.Err())
					require.Equal(t, []time.Duration{5 * time.Millisecond, 5 * time.Millisecond, 5 * time.Millisecond}, left)
				})
			})
		}
	}
}

// A run's own limit counts all of it.
func TestRunTimeIncludesTheWaitForTheJournal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		res := run(t, newTeam(t, member("a", never(t))), &engine.RunOptions{Journal: &slowJournal{takes: time.Minute}, Timeout: time.Second}, spec("a"))
		require.Equal(t, engine.StatusTimeout, res.Status)
	})
}

// A summary of the agent's own takes from the time of the attempt that it serves;
// what is recorded about either does not.
func TestSummaryCountsInTheTimeOfItsAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var left []time.Duration
		reader := func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			end, ok := ctx.Deadline()
			require.True(t, ok)
			left = append(left, time.Until(end))
			time.Sleep(20 * time.Second)
			return agent.Reply{Text: strings.Repeat("x", 10)}, nil
		}
		tm := governed(t, summarizing(50), member("maker", says("a long story")), member("reader", reader))
		s := spec("reader", "maker")
		s.Timeout = time.Minute
		res := run(t, tm, &engine.RunOptions{Journal: &slowJournal{takes: time.Hour}}, spec("maker"), s)
		require.NoError(t, res.Err())
		require.Equal(t, []time.Duration{time.Minute, 40 * time.Second}, left)
	})
}
