package cli

import (
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

func TestBudgetOfARun(t *testing.T) {
	t.Parallel()
	wide := clitest.Folder(t, map[string]string{"team.yaml": many(3), "script.yaml": "replies: [{text: long, usage: {input: 2000, output: 1}}]"})
	got := call{dir: wide, args: []string{"run", "--offline", "--script", "script.yaml", "--max-concurrency", "1", "--max-token-budget", "2010"}}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Equal(t, "long\n", got.stdout)
	require.Contains(t, got.stderr, "failed    Task 2 (solo): the token budget is spent\n")
	require.Contains(t, got.stderr, "failed:  Task 2 (solo): token budget exceeded: a call of \"solo\"")
	require.Contains(t, got.stderr, "skipped   Task 3 (solo): the token budget is spent")
	require.Contains(t, got.stderr, "1 of 3 tasks completed, 1 failed, 1 skipped")
	usage := call{dir: wide, args: []string{"show", "--usage", "-o", "json"}}.run(t)
	require.Contains(t, usage.stdout, `"budget":{"tokens":2010}`)
}
