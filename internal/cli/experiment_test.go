package cli

import (
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/history"
	"github.com/stretchr/testify/require"
)

// The answer is first, whole, and printed only once.
func TestAnswerIsShownFirst(t *testing.T) {
	t.Parallel()
	for _, n := range []int{30, history.MaxAnswerLines + 1} {
		dir := clitest.Folder(t, map[string]string{"team.yaml": one, "s.yaml": "replies: [{text: '" + strings.Repeat("a line\n\n", n) + "the last'}]"})
		got := offlineRun(t, call{dir: dir}, "--script", "s.yaml")
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		text := call{dir: dir, args: []string{"show"}}.run(t).stdout
		require.Equal(t, strings.TrimSuffix(got.stdout, "\n"), shownOf(t, dir).Output)
		answer, table := strings.Index(text, "# The answer"), strings.Index(text, "completed  ")
		require.Less(t, answer, table)
		require.Equal(t, n == 30, strings.Contains(text, "the last"), text)
		require.Equal(t, n != 30, strings.Contains(text, " has it as output\n"), text)
		require.Equal(t, n != 30, strings.Contains(text, "# Answer"), text)
	}
}
