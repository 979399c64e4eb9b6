package journal_test

import (
	"context"
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
