package task_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/task"
)

func TestStatuses(t *testing.T) {
	t.Parallel()
	for _, s := range []task.Status{task.Pending, task.Blocked, task.InProgress, task.Completed, task.Failed, task.Skipped} {
		require.True(t, s.Valid(), s)
		require.Equal(t, s == task.Completed || s == task.Failed || s == task.Skipped, s.Terminal(), s)
	}
	for _, s := range []task.Status{"", "done"} {
		require.False(t, s.Valid())
		require.False(t, s.Terminal())
	}
}
