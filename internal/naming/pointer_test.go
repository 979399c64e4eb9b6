package naming_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/naming"
)

func TestTaskIndex(t *testing.T) {
	t.Parallel()
	for pointer, want := range map[string]int{
		"/tasks/0": 0, "/tasks/12/dependsOn/3": 12,
		"": -1, "7": -1, "/tasks": -1, "/tasks/": -1, "/tasks/-1": -1, "/tasks/x/1": -1, "/agents/2/name": -1, "/2/tasks/1": -1,
		"/tasks/99999999999999999999": -1,
	} {
		require.Equal(t, want, naming.TaskIndex(pointer), pointer)
	}
}
