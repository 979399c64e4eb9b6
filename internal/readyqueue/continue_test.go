package readyqueue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/task"
)

func TestContinueTakesASlotAgain(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"), one("b")).Queue
	q.Limit("", 1)
	now := time.Now()
	i, ok := q.Next()
	require.True(t, ok)
	require.Error(t, readyqueue.Continue(q, i, now), "it has not started")
	require.NoError(t, q.Start(i, now))
	require.Error(t, readyqueue.Continue(q, i, now), "it runs")
	require.NoError(t, q.Retry(i, now))
	next, ok := q.Next()
	require.True(t, ok, "its slot is free")
	require.NoError(t, q.Start(next, now))
	require.NoError(t, readyqueue.Continue(q, i, now))
	require.NoError(t, q.Complete(i, nil, now))
	require.Equal(t, task.Completed, q.Status(i))
	require.NoError(t, q.Complete(next, nil, now))
	require.True(t, q.IsComplete())
}
