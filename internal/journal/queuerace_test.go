package journal_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// A command for a run that waits for a worker has no effect on it if a worker takes and ends the run first.
func TestACommandDoesNotReachARunThatHasEndedMeanwhile(t *testing.T) {
	for _, kind := range []steer.Kind{steer.Cancel, steer.Pause} {
		t.Run(string(kind), func(t *testing.T) {
			onBothStores(t, func(t *testing.T, open openFunc) {
				worker := openQueue(t, open, journal.Options{})
				submit(t, worker, submission("r1"))
				var first sync.Once
				late := openQueue(t, open, journal.Options{Now: func() time.Time { // asked before it takes the run
					first.Do(func() { works(t, claim(t, worker), "r1") })
					return time.Now()
				}})
				require.ErrorIs(t, late.Steer(t.Context(), "r1", steer.Command{Kind: kind, By: "ann"}), steer.ErrNotRunning)
				require.Equal(t, "ok", statusOf(t, worker, "r1"))
				requireNone(t, worker, claims())
			})
		})
	}
}

// A run that is given back twice at the same time is worked on once.
func TestARunThatHasSucceededMeanwhileIsNotGivenBack(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		worker := openQueue(t, open, journal.Options{})
		submit(t, worker, submission("r1"))
		require.NoError(t, worker.Steer(t.Context(), "r1", steer.Command{Kind: steer.Pause, By: "ann"}))
		var first sync.Once
		late := openQueue(t, open, journal.Options{Now: func() time.Time { // asked before it gives the run back
			first.Do(func() {
				_, err := worker.Requeue(t.Context(), "r1")
				require.NoError(t, err)
				works(t, claim(t, worker), "r1")
			})
			return time.Now()
		}})
		given, err := late.Requeue(t.Context(), "r1")
		require.NoError(t, err)
		require.False(t, given)
		require.Equal(t, "ok", statusOf(t, worker, "r1"))
	})
}

// An answer that comes while the worker of the run lets go of it gives the run back to the workers.
func TestAnAnswerAtTheEndOfAProcessIsNotForgotten(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		submit(t, j, submission("r1"))
		c := claim(t, j)
		story := newFakeRun("r1", 1)
		of := story.Task(0)
		asks := &record.Question{Session: story.Session(of), Task: of.ID, Title: of.Title, Agent: of.Assignee, Attempt: 1, Time: time.Now(), Key: record.Key{1}}
		require.NoError(t, appendEntries(c.Run, story.beginning(1), record.Entry{Question: asks}))
		taken, err := j.Answer(t.Context(), "r1", of.ID, func(*runstate.Question) (record.Answer, error) {
			if err := appendEntries(c.Run, record.Entry{End: &record.RunEnd{Time: time.Now(), Status: "suspended", Tasks: []record.TaskEnd{{Task: of.ID, Title: of.Title, Agent: of.Assignee, Status: task.Blocked}}}}); err != nil {
				return record.Answer{}, err
			}
			_, err := c.Run.End(context.WithoutCancel(t.Context()))
			return record.Answer{By: "ann", Text: "send", Time: time.Now()}, err
		})
		require.NoError(t, err)
		require.False(t, taken)
		require.Equal(t, journal.Queued, statusOf(t, j, "r1"))
		answers, err := claim(t, j).Run.Waiting(t.Context())
		require.NoError(t, err)
		require.Len(t, answers, 1)
	})
}

// A run whose end could not be stored goes to the next worker.
func TestARunWithoutItsEndIsQueued(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	j, err := journal.Open(path, journal.Options{Key: queueKey})
	require.NoError(t, err)
	submit(t, j, submission("r1"))
	c := claim(t, j)
	edit(t, path, "create trigger refuse before insert on batches begin select raise(abort, 'no'); end")
	require.Error(t, appendEntries(c.Run, newFakeRun("r1", 1).all(1)...))
	edit(t, path, "drop trigger refuse")
	require.Error(t, j.Close(), "it says what it could not write")

	next, err := journal.Open(path, journal.Options{Key: queueKey})
	require.NoError(t, err)
	defer next.Close() //nolint:errcheck // it ends with the test
	require.Equal(t, journal.Queued, statusOf(t, next, "r1"))
	works(t, claim(t, next), "r1")
}

// A process that has lost a run, and does not know it yet, changes nothing of its place in the queue.
func TestALostRunKeepsItsPlace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	open := func() *journal.Journal {
		j, err := journal.Open(path, journal.Options{Key: queueKey})
		require.NoError(t, err)
		return j
	}
	j, next := open(), open()
	defer next.Close() //nolint:errcheck // it ends with the test
	submit(t, j, submission("r1"))
	c := claim(t, j)
	other := journal.ThisHolder()
	other.PID, other.Started = 1<<22+1, "1" // no process has it
	require.NoError(t, journal.TakeLease(j, c.Run, other))
	require.NoError(t, j.Close())
	require.Equal(t, journal.Interrupted, statusOf(t, next, "r1"), "it was taken, and that process is gone")
	works(t, claim(t, next), "r1")
}
