package journal

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// The tasks column keeps the statuses and the outcomes. A row of an earlier
// version has only the statuses.
func TestTasksColumnKeepsOutcomes(t *testing.T) {
	t.Parallel()
	end := &record.RunEnd{Tasks: []record.TaskEnd{
		{Status: task.Completed, Attempts: 1}, {Status: task.Failed, Attempts: 2}, {Status: task.Failed, Root: "b"},
		{Status: task.Skipped, Attempts: 1}, {Status: task.Skipped}, {Status: task.Skipped, Root: "d"},
		{Status: task.Blocked}, // when a budget is spent, a task may wait for a person
	}}
	statuses := Counts{task.Completed: 1, task.Failed: 2, task.Skipped: 3, task.Blocked: 1}
	n, o, err := parseTaskCounts(taskCounts(end, false))
	require.NoError(t, err)
	require.Equal(t, statuses, n)
	require.Equal(t, record.Outcomes{Completed: 1, Failed: 1, Cancelled: 1, NotRun: 3}, o)

	n, o, err = parseTaskCounts(`{"completed":1,"failed":2,"skipped":3}`)
	require.NoError(t, err)
	delete(statuses, task.Blocked)
	require.Equal(t, statuses, n)
	require.Equal(t, record.Outcomes{Completed: 1, Failed: 2, NotRun: 3}, o)
}
