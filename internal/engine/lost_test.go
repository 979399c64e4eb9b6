package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// losing is a journal whose runs another process may have once lost is closed.
type losing struct {
	*journal.Journal
	lost chan struct{}
}

func (l losing) OpenRun(ctx context.Context, o record.Opening) (record.Log, error) {
	log, err := l.Journal.OpenRun(ctx, o)
	if err != nil {
		return nil, err
	}
	return losingRun{log.(*journal.Run), l.lost}, nil
}

type losingRun struct {
	*journal.Run
	lost chan struct{}
}

func (r losingRun) Lost() <-chan struct{} { return r.lost }

// A run that another process may have ends its calls, begins none, and has no end, so that it is resumed.
func TestALostRunEndsItsCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := losing{journal.InMemory(journal.Options{}), make(chan struct{})}
		defer j.Close() //nolint:errcheck // it ends with the test
		began := time.Now()
		calls := 0
		slow := engine.AgentFunc(func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
			calls++
			select {
			case <-ctx.Done():
				return agent.Reply{}, context.Cause(ctx)
			case <-time.After(time.Hour):
				return agent.Reply{Text: "late"}, nil
			}
		})
		time.AfterFunc(time.Minute, func() { close(j.lost) })
		res, err := start(t.Context(), newTeam(t, engine.Member{Name: "a", Agent: slow}), []task.Spec{spec("a")}, &engine.RunOptions{RunID: "r", Journal: j})
		require.NoError(t, err)
		require.Equal(t, engine.StatusInterrupted, res.Status)
		require.InDelta(t, time.Minute, time.Since(began), float64(5*time.Second))
		require.Equal(t, 1, calls)
		h, err := j.LoadRun(t.Context(), "r")
		require.NoError(t, err)
		require.Nil(t, h.End)
	})
}
