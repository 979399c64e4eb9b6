package cli

import (
	"maps"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

var folderTask = map[string]string{
	"team.yaml": `
name: folder
offline: script.yaml
inputs: {repo: {dir: src}}
agents: [{name: a, toolPreset: readwrite}]
tasks: [{title: Work, assignee: a, uses: [repo], outputFiles: ["**/*.md"], description: Work.}]
`,
	"script.yaml": `
replies:
  - {task: Work, toolCalls: [{name: file_edit, arguments: {path: repo/README.md, old_string: Hello, new_string: Hullo}}]}
  - {task: Work, text: done}
`,
	"src/README.md": "Hello\nwrite to ann@claims.example\n",
}

// The redacted lines of a file are restored wherever a task has the folder.
func TestPatchOfAFolderThatIsNotTheWorkspaceItself(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, folderTask)
	run := func(args ...string) outcome {
		got := call{dir: dir, args: args}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		return got
	}
	run("run", "--offline")
	got := run("artifacts", "Work", "--patch")
	require.Equal(t, `--- a/README.md
+++ b/README.md
@@ -1,2 +1,2 @@
-Hello
+Hullo
 write to ann@claims.example
`, got.stdout)
	require.Empty(t, got.stderr)
	refused := call{dir: dir, args: []string{"artifacts", "--patch", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusUsage, refused.status)
	require.Contains(t, refused.stdout, "leave -o json out")
}

func TestTaskWithoutOutputFilesIsWarnedAbout(t *testing.T) {
	t.Parallel()
	files := maps.Clone(folderTask)
	files["team.yaml"] = strings.Replace(files["team.yaml"], "*.md", "*.txt", 1)
	dir := clitest.Folder(t, files)
	got := call{dir: dir, args: []string{"run", "--offline"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stderr, `task "Work" has changed no file that matches its output files (**/*.txt)`)

	files["team.yaml"] = strings.Replace(files["team.yaml"], "readwrite", "readonly", 1)
	got = call{dir: clitest.Folder(t, files), args: []string{"check"}}.run(t)
	require.Contains(t, got.stderr, `agent "a" has no tool that writes files, so there are no output files`)
}

// Each turn of a conversation is shown with its own call, and only the first prompt lists what
// was not granted.
func TestTurnsAreShownWithTheirOwnCalls(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, folderTask)
	require.Equal(t, exit.StatusOK, call{dir: dir, args: []string{"run", "--offline"}}.run(t).status)
	got := call{dir: dir, args: []string{"show", "Work"}}.run(t)
	require.Regexp(t, `(?s)attempt 1 · .*finish reason tool_calls.*attempt 1 turn 2 · .*finish reason stop`, got.stdout)
	got = call{dir: dir, args: []string{"explain", "Work"}}.run(t)
	require.Contains(t, got.stdout, "attempt 1 turn 2")
	require.NotContains(t, got.stdout, "not sent")
}
