package task

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStatuses(t *testing.T) {
	t.Parallel()
	for _, s := range []Status{Pending, Blocked, InProgress, Completed, Failed, Skipped} {
		require.True(t, s.valid(), s)
		require.Equal(t, s == Completed || s == Failed || s == Skipped, s.Terminal(), s)
	}
	for _, s := range []Status{"", "done"} {
		require.False(t, s.valid())
		require.False(t, s.Terminal())
	}
}
