package readyqueue_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/task"
)

// record notes every event of a queue as "event id".
func record(q *idQueue) *[]string {
	log := new([]string)
	for _, e := range []readyqueue.Event{readyqueue.Ready, readyqueue.Completed, readyqueue.Failed, readyqueue.Skipped, readyqueue.AllComplete} {
		q.On(e, func(t task.Task) { *log = append(*log, fmt.Sprintf("%s %s %s", e, t.ID, t.Status)) })
	}
	return log
}

func TestEventsAreInOrder(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"), one("b", "a"), one("c", "b"), one("d", "b?"), one("e"))
	log := record(q)
	run(t, q, "a")
	require.NoError(t, q.Fail("b", "x", at))
	require.NoError(t, q.Skip("e", "x", at))
	run(t, q, "d")
	require.Equal(t, []string{
		"task:complete a completed", "task:ready b pending",
		"task:failed b failed", "task:ready d pending", "task:failed c failed",
		"task:skipped e skipped",
		"task:complete d completed", "all:complete  ",
	}, *log)
}

func TestAllCompleteFiresOnce(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"), one("b", "a"))
	log := record(q)
	q.SkipRemaining(unexplained, at)
	q.SkipRemaining(unexplained, at)
	require.Equal(t, []string{"task:skipped a skipped", "task:skipped b skipped", "all:complete  "}, *log)
	require.NoError(t, q.Add(one("c")))
	run(t, q, "c")
	require.Equal(t, []string{"task:ready c pending", "task:complete c completed", "all:complete  "}, (*log)[3:])
}

func TestCancelEndsASubscription(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"), one("b"))
	var first, second int
	cancel := q.On(readyqueue.Completed, func(task.Task) { first++ })
	var own func()
	own = q.On(readyqueue.Completed, func(task.Task) { second++; own() }) // while it is called
	run(t, q, "a")
	cancel()
	cancel()
	run(t, q, "b")
	require.Equal(t, []int{1, 1}, []int{first, second})
}

func TestHandlerMayCallTheQueue(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"), one("b", "a"), one("c", "b"), one("x"), one("y", "x"))
	log := record(q)
	q.On(readyqueue.Ready, func(ready task.Task) { run(t, q, ready.ID) })
	q.On(readyqueue.Failed, func(failed task.Task) {
		if failed.ID == "x" {
			got, _ := q.Get("y")
			require.Equal(t, task.Failed, got.Status) // the state is ahead of the events
			require.NoError(t, q.Add(one("z")))
		}
	})
	run(t, q, "a")
	require.Equal(t, []task.Status{task.Completed, task.Completed, task.Completed, task.Pending, task.Blocked}, statuses(q))
	require.NoError(t, q.Fail("x", "broken", at))
	require.True(t, q.IsComplete())
	require.Equal(t, []string{
		"task:complete a completed", "task:ready b pending",
		"task:complete b completed", "task:ready c pending", "task:complete c completed",
		"task:failed x failed", "task:failed y failed", "all:complete  ",
		"task:ready z pending", "task:complete z completed", "all:complete  ",
	}, *log)
}

func TestHandlersReceiveEventsInTheSameOrder(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"), one("b", "a"), one("c", "b"))
	q.On(readyqueue.Completed, func(done task.Task) { // before those that only listen
		if done.ID == "a" {
			run(t, q, "b")
		}
	})
	log := record(q)
	run(t, q, "a")
	require.Equal(t, []string{
		"task:complete a completed", "task:ready b pending", "task:complete b completed", "task:ready c pending",
	}, *log)
}

func TestPanicInAHandlerLeavesTheQueueConsistent(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"), one("b", "a"), one("c"))
	cancel := q.On(readyqueue.Completed, func(task.Task) { panic("boom") })
	log := record(q)
	require.NoError(t, q.Start("a", at))
	require.PanicsWithValue(t, "boom", func() { _ = q.Complete("a", nil, at) })
	require.Equal(t, []task.Status{task.Completed, task.Pending, task.Pending}, statuses(q))
	cancel()
	run(t, q, "c")
	require.Equal(t, []string{"task:ready b pending", "task:complete c completed"}, *log)
}
