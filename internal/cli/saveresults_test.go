package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
)

// savable is a team with a text, a structured result, a secret and a task that fails.
var savable = map[string]string{
	"team.yaml": `name: savable
model: m
offline: script.yaml
agents: [{name: solo, accepts: secret}]
endpoints: {"https://api.openai.com/v1": {accepts: secret}}
tasks:
  - {title: ../../Escape the folder, assignee: solo, description: d}
  - {title: Score, key: score, value: {points: 7}}
  - {title: Plan, assignee: solo, classification: secret, description: d}
  - {title: 名前, value: text}
  - {title: Broken, assignee: solo, description: d, outputSchema: {type: object}}
`,
	"script.yaml": "replies:\n  - {task: ../../Escape the folder, text: a text}\n  - {task: Plan, text: the secret}\n  - {task: Broken, text: none}\n",
}

// filesIn returns the names and texts of the files in a folder.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	out := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		out[e.Name()] = string(text)
	}
	return out
}

func TestResultsOfARunAreSaved(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, savable)
	got := call{dir: dir, args: strings.Fields("run --offline --save out/results -o json")}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, got.stderr)
	require.Contains(t, got.stderr, "saved 4 files to out/results; withheld: Plan (secret)\n")
	files := filesIn(t, filepath.Join(dir, "out/results"))
	require.Equal(t, got.stdout, files["result.json"])
	delete(files, "result.json")
	for name, text := range files {
		if strings.HasPrefix(name, "04-") {
			require.Equal(t, "text", text)
			delete(files, name)
		}
	}
	require.Equal(t, map[string]string{"01-Escape-the-folder.md": "a text", "02-score.json": `{"points":7}`}, files)

	again := call{dir: dir, args: strings.Fields("run --offline --save out/results")}.run(t)
	require.Equal(t, exit.StatusUsage, again.status)
	require.Contains(t, again.stderr, "--save out/results: result.json exists: name another folder, or add --force to replace it")
	require.Empty(t, again.stdout, "nothing was run")
	again = call{dir: dir, args: strings.Fields("run --offline --save out/results --force --progress none")}.run(t)
	require.Equal(t, exit.StatusFailed, again.status)
	require.Contains(t, again.stdout, "a text")
	require.Contains(t, again.stderr, "saved 4 files")
}

func TestResultsAreSavedInAFolder(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": one, "taken/01-Answer.md": "mine", "file": ""})
	for save, want := range map[string]string{
		"":      "--save is empty: name a folder",
		"file":  "--save file: it is a file: name a folder",
		"taken": "--save taken: 01-Answer.md exists: name another folder, or add --force to replace it",
	} {
		got := call{dir: dir, args: []string{"run", "--offline", "--save", save}}.run(t)
		require.Equal(t, exit.StatusUsage, got.status)
		require.Contains(t, got.stderr, want)
		require.Empty(t, got.stdout)
	}
	got := call{dir: dir, args: []string{"run", "--offline", "--force"}}.run(t)
	require.Contains(t, got.stderr, "--force needs --record, --save, --trace or --events")

	got = call{dir: dir, args: []string{"run", "--save", "new"}}.run(t)
	require.Equal(t, exit.StatusNoRun, got.status, "there is no key")
	require.NoDirExists(t, filepath.Join(dir, "new"))
}

// TestResultsAreNotSavedThroughLinks checks that a link out of the folder is replaced, and that
// its target stays.
func TestResultsAreNotSavedThroughLinks(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": one, "out/x": "", "mine": "mine"})
	require.NoError(t, os.Symlink("../mine", filepath.Join(dir, "out", "01-Answer.md")))
	got := call{dir: dir, args: strings.Fields("run --offline --save out --force")}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
	mine, err := os.ReadFile(filepath.Join(dir, "mine"))
	require.NoError(t, err)
	require.Equal(t, "mine", string(mine))
	require.Contains(t, filesIn(t, filepath.Join(dir, "out"))["01-Answer.md"], "OFFLINE")
}

// A resumed run saves all results, also those of the process before.
func TestResultsOfAResumedRunAreSaved(t *testing.T) {
	t.Parallel()
	dir, run := suspendedRun(t)
	at := func(args ...string) outcome { return call{dir: dir, args: args}.run(t) }
	require.Zero(t, at("answer", run, "Review", "Fine.").status)
	got := at("resume", "--save", "out")
	require.Equal(t, exit.StatusWaiting, got.status, got.stderr)
	files := filesIn(t, filepath.Join(dir, "out"))
	require.Contains(t, files["01-d.md"], "Write the letter.")
	require.Equal(t, "Fine.", files["03-Review.md"])
	require.Contains(t, files["result.json"], `"suspended"`)
	require.Len(t, files, 3)

	require.Zero(t, at("answer", run, "Decide", "--set", "choice=send").status)
	got = at("resume", "--save", "out")
	require.Equal(t, exit.StatusUsage, got.status)
	require.Contains(t, got.stderr, "out: result.json exists: name another folder, or add --force to replace it")
	require.Zero(t, at("resume", "--save", "out", "--force").status)
	require.Equal(t, `{"choice":"send"}`, filesIn(t, filepath.Join(dir, "out"))["02-ok.json"])
}
