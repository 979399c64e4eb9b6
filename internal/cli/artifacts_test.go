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

// edits is a team whose first task changes, adds and removes files of a folder; the second one
// gets the changes.
var edits = map[string]string{
	"team.yaml": `name: edits
model: m
offline: script.yaml
inputs: {repo: {dir: repo}}
agents: [{name: coder, toolPreset: full}, {name: reader, toolPreset: readonly}]
tasks:
  - {title: Fix it, key: fix, assignee: coder, description: d, workspace: {input: repo}, outputFiles: ["**"]}
  - {title: Read, assignee: reader, description: d, dependsOn: [{task: fix, files: ["**"]}]}
`,
	"script.yaml": `replies:
  - task: Fix it
    toolCalls:
      - {name: file_edit, arguments: {path: a.txt, old_string: two, new_string: three}}
      - {name: file_write, arguments: {path: sub/new.txt, content: "new\n"}}
  - {task: Fix it, text: fixed}
  - {task: Read, toolCalls: [{name: file_read, arguments: {path: a.txt}}]}
  - {task: Read, text: '{{ match "three" (toolResult "file_read") }}'}
`,
	"repo/a.txt": "mail of ann@example.org\ntwo\n",
	"repo/b.txt": "b\n",
}

func TestArtifactsAboveTheCallerAreWithheld(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for name, text := range edits {
		files[name] = strings.Replace(text, "{dir: repo}", "{dir: repo, classification: secret}", 1)
	}
	files["team.yaml"] = strings.NewReplacer("toolPreset: full", "toolPreset: readwrite, accepts: secret", "toolPreset: readonly", "toolPreset: readonly").Replace(files["team.yaml"]) +
		"endpoints: {\"https://api.openai.com/v1\": {accepts: secret}}\npolicy:\n  rules:\n    - {from: user, to: coder, mode: full}\n"
	for _, tool := range []string{"file_read", "grep", "glob", "file_write", "file_edit"} { // secrets need a rule for each pair
		files["team.yaml"] += "    - {from: coder, to: \"tool:" + tool + "\", mode: full}\n"
	}
	files["team.yaml"] = strings.Replace(files["team.yaml"], `dependsOn: [{task: fix, files: ["**"]}]`, "dependsOn: []", 1)
	files["script.yaml"] = strings.Replace(files["script.yaml"], "  - {task: Read, toolCalls: [{name: file_read, arguments: {path: a.txt}}]}\n", "", 1)
	files["script.yaml"] = strings.Replace(files["script.yaml"], `'{{ match "three" (toolResult "file_read") }}'`, "read", 1)
	dir := clitest.Folder(t, files)
	got := call{dir: dir, args: []string{"run", "--offline"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
	got = call{dir: dir, args: []string{"artifacts"}}.run(t)
	require.Contains(t, got.stdout, "[withheld: secret]")
	require.NotContains(t, got.stdout, "a.txt")
	got = call{dir: dir, args: []string{"artifacts", "fix", "--patch"}}.run(t)
	require.NotEqual(t, exit.StatusOK, got.status)
	require.NotContains(t, got.stdout+got.stderr, "three")
	got = call{dir: dir, args: []string{"artifacts", "--save", "out"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
	require.NoDirExists(t, filepath.Join(dir, "out", "fix"))
	stored, err := filepath.Glob(filepath.Join(dir, ".runteam", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, stored)
	for _, path := range stored {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NotContains(t, string(raw), "mail of")
	}
}
