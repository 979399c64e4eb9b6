package task_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/task"
)

func TestCanBecomeIsExactlyTheTable(t *testing.T) {
	t.Parallel()
	const (
		p, b, i = task.Pending, task.Blocked, task.InProgress
		c, f, s = task.Completed, task.Failed, task.Skipped
	)
	legal := map[[2]task.Status]bool{
		{p, b}: true, {p, i}: true, {p, f}: true, {p, s}: true,
		{b, p}: true, {b, f}: true, {b, s}: true,
		{i, p}: true, {i, c}: true, {i, f}: true, {i, s}: true,
	}
	for _, from := range append(task.Statuses(), "", "done") {
		for _, to := range append(task.Statuses(), "", "done") {
			require.Equal(t, legal[[2]task.Status{from, to}], from.CanBecome(to), "%s → %s", from, to)
		}
		require.Equal(t, from == c || from == f || from == s, from.Terminal())
	}
}

func TestWordsAreChecked(t *testing.T) {
	t.Parallel()
	require.True(t, task.Both.Valid())
	require.False(t, task.Payload("all").Valid())
	require.True(t, task.ScopeAll.Valid())
	require.False(t, task.MemoryScope("team").Valid())
	require.True(t, task.Priority("").Valid())
	require.False(t, task.Priority("urgent").Valid())
	require.False(t, task.Status("").Valid())
	require.IsIncreasing(t, []int{task.Low.Rank(), task.Normal.Rank(), task.High.Rank(), task.Critical.Rank()})
}
