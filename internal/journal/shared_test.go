package journal_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/prompt"
)

// A second run of a team with the same run of a journal calls no agent, and the
// record of the first does not change.
func TestSecondRunOfATeamOnOneRunIsRefused(t *testing.T) {
	t.Parallel()
	inStores(t, func(t *testing.T, path string) {
		j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{})
		require.NoError(t, err)
		r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
		require.NoError(t, err)
		var calls atomic.Int64
		tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "worker", Agent: engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) {
			calls.Add(1)
			return agent.Reply{Text: "Done."}, nil
		})}}})
		require.NoError(t, err)
		o := &engine.RunOptions{RunID: "r1", Journal: journaltest.Opened(r)}
		res, err := tm.RunTasks(t.Context(), chains(3, 1), o)
		require.NoError(t, err)
		require.NoError(t, res.Err())
		require.EqualValues(t, 3, calls.Load())

		again, err := tm.RunTasks(t.Context(), chains(3, 1), o)
		if err == nil {
			err = again.Err()
		}
		require.ErrorIs(t, err, journal.ErrShared)
		require.EqualValues(t, 3, calls.Load(), "nobody was asked")
		head, err := r.End(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, "verified", requireVerified(t, j, "r1", nil, head).Status)
		s, err := j.Load(t.Context(), "r1")
		require.NoError(t, err)
		require.Len(t, s.History.Begins, 1)
		require.NotNil(t, s.History.End)
		require.NoError(t, j.Close())
	})
}
