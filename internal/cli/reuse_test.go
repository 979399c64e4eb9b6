package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

func TestReuseCallsModelsOnlyForChanges(t *testing.T) {
	t.Parallel()
	server, dir := startCounting(t), relayFolder(t)
	run := func(args string) outcome {
		t.Helper()
		got := call{dir: dir, args: append([]string{"run"}, strings.Fields(args)...), env: server.env()}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		return got
	}
	first := run("-o json")
	id := object(t, first.stdout)["runId"].(string)
	require.Len(t, server.takeCalls(), 4)
	require.Len(t, func() map[string]int { run(""); return server.takeCalls() }(), 4, "without --reuse each call is made again")

	got := run("--reuse -o json --no-journal=false")
	require.Empty(t, server.takeCalls())
	require.Equal(t, stableResult(t, first.stdout), stableResult(t, got.stdout))
	require.Contains(t, got.stderr, "reused:  4 tasks reused, 40 tokens saved\n")
	require.Regexp(t, `cached    First \(solo\), reused from [0-9a-f]{8}\n`, got.stderr)
	require.NotContains(t, got.stderr, object(t, got.stdout)["runId"].(string)[:8]+"\ndone")

	edit(t, filepath.Join(dir, "team.yaml"), "Say two.", "Say 2.")
	got = run("--reuse -o json")
	require.Equal(t, map[string]int{"Second": 1, "Third": 1}, server.takeCalls())
	require.Contains(t, got.stderr, "reused:  2 tasks reused, 20 tokens saved\n")

	run("--reuse --fresh third")
	require.Equal(t, map[string]int{"Third": 1}, server.takeCalls())

	edit(t, filepath.Join(dir, "team.yaml"), "name: relay\n", "name: relay\nreuse: true\n")
	run("")
	require.Empty(t, server.takeCalls())
	run("--fresh Aside")
	require.Equal(t, map[string]int{"Aside": 1}, server.takeCalls())
	run("--reuse=false --no-journal")
	require.Len(t, server.takeCalls(), 4)
	refused := call{dir: dir, args: []string{"run", "--no-journal"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusUsage, refused.status, "%+v", refused)
	require.Contains(t, refused.stderr, "leave out --no-journal, or add --reuse=false")

	run("--reuse --model another")
	require.Len(t, server.takeCalls(), 4, "answers of another model are not reused")
	require.NotEmpty(t, id)
}

// Answers of a script are not reused for another script.
func TestReuseAndScripts(t *testing.T) {
	t.Parallel()
	server := startCounting(t)
	dir := clitest.Folder(t, map[string]string{"team.yaml": one, "s.yaml": "replies: [{text: from the script}]"})
	run := func(args string) outcome {
		t.Helper()
		got := call{dir: dir, args: append([]string{"run", "--reuse"}, strings.Fields(args)...), env: server.env()}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		return got
	}
	require.NotContains(t, run("--offline").stderr, "reused")
	require.Contains(t, run("--offline").stderr, "reused:  1 task reused")
	require.Equal(t, "from the script\n", run("--offline --script s.yaml").stdout)
	require.Contains(t, run("--offline --script s.yaml").stderr, "reused:  1 task reused")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "s.yaml"), []byte("replies: [{text: from another}]"), 0o600))
	require.Equal(t, "from another\n", run("--offline --script s.yaml").stdout)
	require.NotContains(t, run("").stdout, "from")
	require.Equal(t, map[string]int{"Answer": 1}, server.takeCalls())
}

func TestReuseInAnotherJournal(t *testing.T) {
	t.Parallel()
	server, dir := startCounting(t), relayFolder(t)
	for i, want := range []int{4, 0} {
		got := call{bare: true, dir: dir, args: []string{"run", "--reuse", "--journal", "kept here.db"}, env: server.env()}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Len(t, server.takeCalls(), want, i)
		require.Contains(t, got.stderr, " --journal \"kept here.db\"\n")
	}
	require.NoDirExists(t, filepath.Join(dir, ".runteam"))
	got := call{bare: true, dir: dir, args: []string{"resume", "--journal", "kept here.db"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
}
