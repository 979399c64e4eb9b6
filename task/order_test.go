package task_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

func TestNewNeedsNoGraph(t *testing.T) {
	t.Parallel()
	got, err := task.New(spec("Write", "Not there yet", string(task.NewID("Score"))), at)
	require.NoError(t, err)
	require.Equal(t, task.NewID("write"), got.ID)
	require.Equal(t, task.Pending, got.Status)
	require.Equal(t, got.CreatedAt, got.UpdatedAt)
	require.Equal(t, []task.Ref{
		{Task: string(task.NewID("not there yet")), As: task.Output}, {Task: string(task.NewID("score")), As: task.Output},
	}, got.DependsOn)
}

func TestNewReportsAllProblems(t *testing.T) {
	t.Parallel()
	s := spec("Write", "write", "a", "A", "")
	s.Description = ""
	s.DependsOn = append(s.DependsOn, task.Ref{Task: "b", As: "x"})
	_, err := task.New(s, at)
	require.EqualError(t, err, `task "Write": description: it is empty: say what the agent must do
task "Write": dependsOn[0]: it depends on itself: remove it
task "Write": dependsOn[2]: "A" is named before: remove it
task "Write": dependsOn[3]: it names no task: write the title or the id of a task
task "Write": dependsOn[4]: as: unknown word "x": write one of output, structured, both`)
	_, err = task.New(spec("a\nb"), at)
	require.ErrorIs(t, err, naming.ErrTitle)
}

func TestReady(t *testing.T) {
	t.Parallel()
	known := map[task.ID]task.Task{
		"done": {Status: task.Completed}, "failed": {Status: task.Failed}, "skipped": {Status: task.Skipped}, "runs": {Status: task.InProgress},
	}
	get := func(id task.ID) (task.Task, bool) { one, ok := known[id]; return one, ok }
	one := func(status task.Status, id task.ID, optional bool) task.Task {
		return task.Task{Status: status, Spec: task.Spec{DependsOn: []task.Ref{{Task: "done"}, {Task: string(id), Optional: optional}}}}
	}
	require.True(t, task.Ready(one(task.Pending, "done", false), get))
	require.False(t, task.Ready(one(task.Pending, "failed", false), get))
	require.False(t, task.Ready(one(task.Pending, "runs", false), get))
	require.False(t, task.Ready(one(task.Pending, "missing", false), get))
	require.False(t, task.Ready(one(task.Blocked, "done", false), get))
	require.True(t, task.Ready(one(task.Pending, "failed", true), get))
	require.True(t, task.Ready(one(task.Pending, "skipped", true), get))
	require.False(t, task.Ready(one(task.Pending, "runs", true), get))
	require.False(t, task.Ready(one(task.Pending, "missing", true), get))
}
