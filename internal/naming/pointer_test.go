package naming_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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

func TestTokensOfPointers(t *testing.T) {
	t.Parallel()
	for name, token := range map[string]string{"": "", "a": "a", "a/b": "a~1b", "~": "~0", "~1": "~01", "/~/": "~1~0~1", "~0": "~00"} {
		require.Equal(t, token, naming.Escape(name))
		require.Equal(t, name, naming.Unescape(token))
	}
	require.Equal(t, "~2~", naming.Unescape("~2~"), "it checks nothing")
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.String().Draw(t, "name")
		require.Equal(t, name, naming.Unescape(naming.Escape(name)))
		require.Equal(t, "/"+naming.Escape(name), naming.Pointer(name))
	})
}
