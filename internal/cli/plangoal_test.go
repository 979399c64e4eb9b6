package cli

import (
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// A plan prints its goal like the output of a run: for people in one line, without deceptive
// characters, and redacted.
//
// Requirement: G47.
func TestGoalOfAPlanIsGated(t *testing.T) {
	t.Parallel()
	dir := goalFolder(t, goalScript)
	args := strings.Fields("plan --offline --script script.yaml --goal")
	hostile := "Know\x1b[2J this:\n\n\tall \u202eof it " + strings.Repeat("and more ", 50)
	got := call{dir: dir, args: append(args, hostile)}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Regexp(t, `(?m)^goal: Know\\x1b\[2J this: all \\u202eof it and more .{100,160}…$`, got.stdout)
	got = call{dir: dir, args: append(args, hostile, "-o", "json")}.run(t)
	require.Equal(t, strings.TrimSpace(hostile), object(t, got.stdout)["goalText"])

	token := "sk-" + strings.Repeat("aB3dE6gH", 5)
	given := clitest.Folder(t, map[string]string{"team.yaml": roster + "goal: Say what " + token + " is.\ntasks: [{title: Find, assignee: finder, description: Find.}]\n"})
	ran := object(t, call{dir: given, args: []string{"run", "--offline", "-o", "json"}}.run(t).stdout)
	require.Contains(t, ran["goal"], "REDACTED")
	for _, form := range []string{"text", "json", "dot", "mermaid"} {
		got := call{dir: given, args: []string{"plan", "-o", form}}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.NotContains(t, got.stdout+got.stderr, token)
		switch form {
		case "text":
			require.Contains(t, got.stdout, "\ngoal: "+ran["goal"].(string)+"\n")
		case "json":
			require.Equal(t, ran["goal"], object(t, got.stdout)["goalText"], "as a run prints it")
		}
	}
}
