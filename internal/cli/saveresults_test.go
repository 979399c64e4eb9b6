package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

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
