package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/stretchr/testify/require"
)

// --timeout is not stored for the next command.
func TestTimeoutAppliesToOneCommand(t *testing.T) {
	t.Parallel()
	server, dir := startCounting(t), clitest.Folder(t, map[string]string{"team.yaml": one})
	server.delay = 2 * time.Second
	for _, args := range []string{"run --timeout 300ms", "resume --timeout 300ms"} {
		got := call{dir: dir, args: strings.Fields(args), env: server.env()}.run(t)
		require.NotEqual(t, exit.StatusOK, got.status, "%s: %+v", args, got)
		require.Contains(t, got.stderr, "raise --timeout")
	}
	got := call{dir: dir, args: []string{"resume"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
}

// keyedRelay is the relay with keys.
var keyedRelay = strings.NewReplacer("title: First,", "title: First, key: one,", "title: Second,", "title: Second, key: two,").Replace(relay)

func TestTasksAreNamedTheSameEverywhere(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"First", "  fIRST ", "one", " ONE ", "ID"} {
		server, dir := startCounting(t), clitest.Folder(t, map[string]string{"team.yaml": keyedRelay, "note.md": "the note"})
		got := call{dir: dir, args: []string{"run", "-o", "json"}, env: server.env()}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		if name == "ID" {
			name = strings.ToUpper(object(t, got.stdout)["tasks"].([]any)[0].(map[string]any)["id"].(string))
		}
		server.takeCalls()
		for range 2 {
			got = call{dir: dir, args: []string{"resume", "--fresh", name}, env: server.env()}.run(t)
			require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			require.Equal(t, map[string]int{"First": 1}, server.takeCalls(), name)
		}
		got = call{dir: dir, args: []string{"resume"}, env: server.env()}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Empty(t, server.takeCalls(), "%q has been run: %s", name, got.stderr)
	}
}

// --fresh also repeats a task whose result needs another key.
func TestFreshTaskWithAnEncryptedResult(t *testing.T) {
	t.Parallel()
	text := "model: m\nbaseURL: http://127.0.0.1:1/v1\nagents: [{name: solo, accepts: secret}]\n" +
		"tasks: [{title: Closed, key: shut, assignee: solo, classification: secret, description: Say.}, {title: Open, assignee: solo, description: Say.}]\n"
	dir := clitest.Folder(t, map[string]string{"team.yaml": text})
	got := offlineRun(t, call{dir: dir, env: map[string]string{journals.EnvJournalKey: journalTestKey}})
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	got = call{dir: dir, args: []string{"resume"}}.run(t)
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Contains(t, got.stderr, "the results of Closed are encrypted under the key ")
	got = call{dir: dir, args: []string{"resume", "--fresh", "Shut"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
}

func TestUnknownFreshTask(t *testing.T) {
	t.Parallel()
	server, dir := startCounting(t), relayFolder(t)
	for _, args := range []string{"run --fresh Frist", "run --reuse --fresh Frist", "run", "resume --fresh Frist"} {
		got := call{dir: dir, args: strings.Fields(args), env: server.env()}.run(t)
		if args == "run" {
			continue
		}
		require.Equal(t, exit.StatusUsage, got.status, "%s: %+v", args, got)
		require.Contains(t, got.stderr, `--fresh "Frist": unknown task: did you mean "First"?`)
		got = call{dir: dir, args: strings.Fields(strings.Replace(args, "Frist", "nothing-at-all", 1)), env: server.env()}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%s: %+v", args, got)
		require.Contains(t, got.stderr, `unknown task: write one of First, Second, Third, Aside`)
	}
	got := call{dir: dir, args: []string{"replay", "--without", "nothing-at-all"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Contains(t, got.stderr, `--without "nothing-at-all": the run has no such task; write one of First, Second, Third, Aside`)
	got = call{dir: dir, args: []string{"replay", "--without-input", "nothing-at-all"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Contains(t, got.stderr, `the run has no such input; write one of note`)
	got = call{dir: dir, args: []string{"run", "--fresh", "First"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Contains(t, got.stderr, "every task is run anyway")
}
