package readyqueue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/task"
)

// TestPlacesCountAgainstTheLimit checks that work beside the tasks takes places of its agent alone, and that a task
// starts when one is given back.
func TestPlacesCountAgainstTheLimit(t *testing.T) {
	t.Parallel()
	g, err := graph.New([]task.Task{
		{ID: "a1", Spec: task.Spec{Title: "a1", Assignee: "a"}}, {ID: "a2", Spec: task.Spec{Title: "a2", Assignee: "a"}}, {ID: "b1", Spec: task.Spec{Title: "b1", Assignee: "b"}},
	})
	require.NoError(t, err)
	q := readyqueue.New(g)
	require.True(t, readyqueue.HasPlace(q, "a"), "there is no limit")
	readyqueue.Occupy(q, "a")
	readyqueue.Vacate(q, "a")
	q.Limit("a", 2)

	first, ok := q.Next()
	require.True(t, ok)
	require.Equal(t, 0, first)
	require.NoError(t, q.Start(first, time.Time{}))
	require.True(t, readyqueue.HasPlace(q, "a"))
	readyqueue.Occupy(q, "a")
	require.False(t, readyqueue.HasPlace(q, "a"))
	require.True(t, readyqueue.HasPlace(q, "b"))
	next, ok := q.Next()
	require.True(t, ok)
	require.Equal(t, 2, next, "the other task of a has no place")
	_, ok = q.Next()
	require.False(t, ok)

	readyqueue.Occupy(q, "a") // beyond the limit
	readyqueue.Vacate(q, "a")
	_, ok = q.Next()
	require.False(t, ok)
	readyqueue.Vacate(q, "a")
	next, ok = q.Next()
	require.True(t, ok)
	require.Equal(t, 1, next)
	require.False(t, readyqueue.HasPlace(q, "a"))
}
