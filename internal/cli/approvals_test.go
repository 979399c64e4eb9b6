package cli

import (
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/stretchr/testify/require"
)

const approvedSpec = `
name: pages
model: m
baseURL: http://127.0.0.1:1/v1
offline: script.yaml
tools: {file_write: {approve: editor}}
agents:
  - {name: writer, toolPreset: readwrite}
  - {name: editor, backend: {kind: person}}
tasks:
  - {title: Write, assignee: writer, description: Write the page., outputFiles: ["*.html"]}
`

const approvedScript = `
replies:
  - {task: Write, turn: 1, toolCalls: [{name: file_write, arguments: {path: index.html, content: hello}}]}
  - {task: Write, turn: 2, text: "{{ .Last }}"}
`

func TestAScriptApprovesCalls(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": approvedSpec, "script.yaml": approvedScript + "  - {task: approve file_write, text: '{\"decision\": \"yes\"}'}\n"})
	got := call{dir: dir, args: []string{"run", "--offline"}}.run(t)
	require.Zero(t, got.status, got.stderr)
	require.NotContains(t, got.stderr, "never used")
	require.Contains(t, call{dir: dir, args: []string{"artifacts"}}.run(t).stdout, "index.html")
	require.Contains(t, call{dir: dir, args: []string{"show", "Write"}}.run(t).stdout, "answered by editor")
	require.Contains(t, call{dir: dir, args: []string{"replay"}}.run(t).stderr, "equal to the byte")
}

// A run that nobody watches approves nothing by itself.
func TestOfflineWithoutAReplyRefusesCalls(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": approvedSpec, "script.yaml": approvedScript})
	got := call{dir: dir, args: []string{"run", "--offline"}}.run(t)
	require.Zero(t, got.status, got.stderr)
	require.Contains(t, call{dir: dir, args: []string{"explain", "Write"}}.run(t).stdout, "Call refused by editor")
	require.NotContains(t, call{dir: dir, args: []string{"artifacts"}}.run(t).stdout, "index.html")
}

func TestPlansShowApprovers(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": approvedSpec, "script.yaml": approvedScript})
	require.Contains(t, call{dir: dir, args: []string{"plan", "-o", "json"}}.run(t).stdout, "approval of tool:file_write in Write")
}
