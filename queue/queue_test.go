package queue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/queue"
	"github.com/runteam/runteam/task"
)

var at = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// one returns a task that depends on others.
func one(id task.ID, assignee string, dependsOn ...string) task.Task {
	return task.Task{ID: id, Status: task.Pending, CreatedAt: at, UpdatedAt: at,
		Spec: task.Spec{Title: "T " + string(id), Assignee: assignee, DependsOn: task.On(dependsOn...)}}
}

func TestNextPrefersTheAgentThenUnassignedTasks(t *testing.T) {
	t.Parallel()
	q, err := queue.New(one("a", "x"), one("b", "y"), one("c", ""), one("d", "x", "a"))
	require.NoError(t, err)
	next := func(assignee string) task.ID { got, _ := q.Next(assignee); return got.ID }
	run := func(id task.ID) {
		require.NoError(t, q.Start(id, at))
		require.NoError(t, q.Complete(id, nil, at))
	}
	require.EqualValues(t, "a", next("x"))
	require.EqualValues(t, "b", next("y"))
	require.EqualValues(t, "c", next("")) // unassigned first
	require.Empty(t, next("z"))
	run("a")
	run("c")
	require.EqualValues(t, "d", next("x"))
	require.EqualValues(t, "b", next("")) // else the first pending one
	run("b")
	run("d")
	require.Empty(t, next(""))
	require.True(t, q.IsComplete())
}

func TestUnknownIDs(t *testing.T) {
	t.Parallel()
	var q queue.Queue
	for _, err := range []error{
		q.Start("x", at), q.Complete("x", nil, at), q.Fail("x", "", at), q.Skip("x", "", at),
	} {
		require.ErrorIs(t, err, task.ErrUnknown)
	}
	_, ok := q.Get("x")
	require.False(t, ok)
	_, ok = q.Result("x")
	require.False(t, ok)
	require.Empty(t, q.Reason("x"))
	require.Empty(t, q.List())
	require.True(t, q.IsComplete())
}

func TestTransitionsAndResults(t *testing.T) {
	t.Parallel()
	_, err := queue.New(one("a", "", "b"))
	require.ErrorIs(t, err, task.ErrUnknown)
	var q queue.Queue
	require.NoError(t, q.Add(one("b", "", "a")))
	require.Equal(t, map[task.Status]int{
		task.Pending: 0, task.Blocked: 1, task.InProgress: 0, task.Completed: 0, task.Failed: 0, task.Skipped: 0, task.NotNeeded: 0,
	}, q.Progress())
	require.NoError(t, q.Add(one("a", "")))
	require.ErrorIs(t, q.Complete("a", nil, at), queue.ErrTransition)
	e, err := envelope.New(envelope.Header{ID: "e", Producer: "worker", Task: "a", CreatedAt: at}, envelope.Text("x"))
	require.NoError(t, err)
	require.NoError(t, q.Start("a", at))
	require.NoError(t, q.Complete("a", e, at))
	got, ok := q.Result("a")
	require.True(t, ok)
	require.Same(t, e, got)
	require.NoError(t, q.Skip("b", "not needed", at))
	require.Equal(t, "not needed", q.Reason("b"))
	q.SkipRemaining("", at)
	require.Len(t, q.List(task.Completed, task.Skipped), 2)
}

// A queue returns a task by its ID, as it stands, and not by its title.
func TestGetReturnsATaskByItsID(t *testing.T) {
	t.Parallel()
	q, err := queue.New(one("a", "x"), one("b", "y", "a"))
	require.NoError(t, err)
	b, ok := q.Get("b")
	require.True(t, ok)
	require.Equal(t, "T b", b.Title)
	require.Equal(t, task.Blocked, b.Status)
	require.NoError(t, q.Start("a", at))
	a, ok := q.Get("a")
	require.True(t, ok)
	require.Equal(t, task.InProgress, a.Status)
	_, ok = q.Get("T a")
	require.False(t, ok)
}
