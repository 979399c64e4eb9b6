package readyqueue_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/task"
)

func TestAddToARunningQueue(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"), one("b", "a"))
	run(t, q, "a")
	var ready []task.ID
	q.On(readyqueue.Ready, func(t task.Task) { ready = append(ready, t.ID) })
	require.NoError(t, q.Add(one("c", "a")))       // done already
	require.NoError(t, q.Add(one("d", "a", "b")))  // b is not
	require.NoError(t, q.Add(one("e", "f", "b?"))) // f is not there
	require.NoError(t, q.Add(one("f", "later?")))  // nor is this
	require.Equal(t, []task.ID{"c"}, ready)
	require.Equal(t, []task.Status{task.Completed, task.Pending, task.Pending, task.Blocked, task.Blocked, task.Blocked}, statuses(q))
	require.NoError(t, q.Fail("b", "x", at))
	require.Equal(t, []task.Status{task.Completed, task.Failed, task.Pending, task.Failed, task.Blocked, task.Blocked}, statuses(q))
	require.NoError(t, q.Add(one("later")))
	run(t, q, "later", "f", "e", "c")
	require.True(t, q.IsComplete())
	require.Equal(t, []task.ID{"c", "later", "f", "e"}, ready)
}

func TestAddEndsWithADependencyThatHasEnded(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"), one("b", "a"), one("s"))
	require.NoError(t, q.Fail("a", "x", at))
	require.NoError(t, q.Skip("s", "x", at))
	require.NoError(t, q.Add(one("waits", "late")))
	require.NoError(t, q.Add(one("late", "b")))
	require.NoError(t, q.Add(one("skips", "s")))
	require.NoError(t, q.Add(one("runs", "a?", "s?")))
	require.Equal(t, []task.Status{
		task.Failed, task.Failed, task.Skipped, task.Failed, task.Failed, task.Skipped, task.Pending,
	}, statuses(q))
	require.Equal(t, `Cancelled: dependency "b" failed.`, q.Reason("late"))
	require.Equal(t, `Cancelled: dependency "late" failed.`, q.Reason("waits"))
	root, _ := q.Root("waits")
	require.EqualValues(t, "a", root)
}

func TestAddRefuses(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"))
	require.NoError(t, q.Add(one("x", "y")))
	require.NoError(t, q.Add(one("z", "x")))
	before := q.List()
	done := one("d")
	done.Status = task.Completed
	tests := []struct {
		name string
		give task.Task
		is   error
	}{
		{"no id", one(""), task.ErrInvalid},
		{"an id of the graph", one("a"), task.ErrDuplicate},
		{"an id added before", one("x"), task.ErrDuplicate},
		{"itself", one("n", "n"), task.ErrSelf},
		{"twice", one("n", "a", "a"), task.ErrDuplicate},
		{"a terminal task", done, task.ErrInvalid},
		{"a cycle", one("y", "a", "z"), task.ErrCycle},
	}
	for _, tt := range tests {
		require.ErrorIs(t, q.Add(tt.give), tt.is, tt.name)
		require.Equal(t, before, q.List())
	}
	cycle, ok := errors.AsType[*task.CycleError](q.Add(one("y", "z")))
	require.True(t, ok)
	require.Equal(t, []task.ID{"y", "z", "x"}, cycle.Path)
}

func TestAddRanksAgain(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"), one("b"), one("c", "b"))
	i, _ := q.Queue.Next()
	require.Equal(t, 1, i)
	require.NoError(t, q.Requeue("b", at))
	require.NoError(t, q.Add(one("d", "a")))
	require.NoError(t, q.Add(one("e", "d"))) // now a has the longest path
	require.Equal(t, []int{0, 1}, drain(q))
}

// TestAlternativesThatAreAddedLater checks that a task waits for alternatives that do not exist yet,
// and does not end with the first of them; a task that its condition reads, too, is mandatory.
func TestAlternativesThatAreAddedLater(t *testing.T) {
	t.Parallel()
	joined := one("c", "a", "b")
	setOneOf(joined.DependsOn)
	reader := one("d", "a?", "a")
	reader.Reads = 1
	q := newQueue(t)
	for _, one := range []task.Task{joined, reader, one("a"), one("b")} {
		require.NoError(t, q.Add(one))
	}
	require.Equal(t, []task.Status{task.Blocked, task.Blocked, task.Pending, task.Pending}, statuses(q))
	require.NoError(t, q.Omit(q.at("a"), "x", at))
	require.Equal(t, []task.Status{task.Blocked, task.NotNeeded, task.NotNeeded, task.Pending}, statuses(q))
	require.NoError(t, q.Omit(q.at("b"), "x", at))
	require.Equal(t, task.Pending, q.Status(0), "the caller chooses")
	require.ErrorIs(t, q.Follow(0, 0, at), readyqueue.ErrTransition)
	require.NoError(t, q.Follow(0, 2, at))
	require.Equal(t, `Not needed: none of "T a", "T b" completed.`, q.Reason("c"))
	require.True(t, q.IsComplete())
}
