package record_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

func TestPartsOfASession(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		session       string
		task          task.ID
		attempt, turn int
		child         string
		inner         bool
	}{
		{session: "r/a/1", task: "a", attempt: 1},
		{session: "r/a/12/turn/3", task: "a", attempt: 12, inner: true},
		{session: "r/coordinator/plan/2", task: "coordinator/plan", attempt: 2},
		{session: "r/coordinator/plan/2/turn/1", task: "coordinator/plan", attempt: 2, inner: true},
		{session: "r/a/1/child/call_1_1", task: "a", attempt: 1, turn: 1, child: "/child/call_1_1", inner: true},
		{session: "r/a/1/child/call_1_1/turn/2", task: "a", attempt: 1, child: "/child/call_1_1", inner: true},
		{session: "r/a/1/child/call_1_1/child/call_2_1/turn/4", task: "a", attempt: 1, child: "/child/call_1_1/child/call_2_1", inner: true},
		{session: "r/a/turn/2/call_2_1-2", task: "a", turn: 2, inner: true},
		{session: "r/a/child/call_1_1/call_10_3", task: "a", turn: 10, child: "/child/call_1_1", inner: true},
		{session: "r/a/one", task: "a"},
		{session: "r"},
		{session: ""},
	} {
		require.Equal(t, tt.task, record.TaskOf(tt.session), tt.session)
		require.Equal(t, tt.attempt, record.AttemptOf(tt.session), tt.session)
		require.Equal(t, tt.turn, record.TurnOf(tt.session), tt.session)
		require.Equal(t, tt.child, record.ChildOf(tt.session), tt.session)
		require.Equal(t, tt.inner, record.IsInner(tt.session), tt.session)
	}
	require.True(t, record.IsStep("coordinator/plan"))
	require.False(t, record.IsStep("coordinator"))
}
