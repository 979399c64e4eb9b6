package cli

import (
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

const toolTeam = `
name: files
model: m
offline: script.yaml
inputs:
  pin: {text: "PIN 4711 of the vault", classification: secret}
agents:
  - {name: clerk, accepts: secret, systemPrompt: You file., tools: [file_write, file_read], allowUntrusted: [file_write, file_read]}
tasks:
  - {title: File, assignee: clerk, description: File it.}
  - {title: Keep, assignee: clerk, uses: [pin], description: Keep it.}
tools:
  file_write: {accepts: secret}
  file_read: {accepts: secret}
endpoints:
  https://api.openai.com/v1: {accepts: secret}
policy:
  rules:
    - {from: user, to: clerk, mode: full}
    - {from: clerk, to: "tool:file_write", mode: full}
    - {from: clerk, to: "tool:file_read", mode: full}
`

const toolScript = `
replies:
  - {task: File, toolCalls: [{name: file_write, arguments: {path: note.txt, content: Mail ann@example.com}}]}
  - {task: File, toolCalls: [{name: file_read, arguments: {path: note.txt}}]}
  - {task: File, toolCalls: [{name: file_read, arguments: {path: other.txt}}]}
  - {task: File, text: Filed.}
  - {task: Keep, toolCalls: [{name: file_write, arguments: {path: pin.txt, content: '{{ input "pin" }}'}}]}
  - {task: Keep, text: Kept.}
`

// The document of a task has the calls of its tools, as the prompts of the agent have them for the same viewer.
func TestShowHasArgumentsAndResultsOfTools(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": toolTeam, "script.yaml": toolScript})
	require.Equal(t, exit.StatusOK, offlineRun(t, call{dir: dir}).status)
	shown := object(t, call{dir: dir, args: []string{"show", "File", "-o", "json"}}.run(t).stdout)
	type made struct{ tool, agent, status, arguments, result, label any }
	var got []made
	for _, x := range shown["toolCalls"].([]any) {
		c := x.(map[string]any)
		got = append(got, made{c["tool"], c["agent"], c["status"], c["arguments"], c["result"], c["label"]})
	}
	require.Equal(t, []made{
		{"file_write", "clerk", "complete", `{"content":"Mail ann@example.com","path":"note.txt"}`, "Wrote 21 bytes to note.txt.", "internal"},
		{"file_read", "clerk", "complete", `{"path":"note.txt"}`, "1\tMail [REDACTED:email]\n", "internal"},
		{"file_read", "clerk", "failed", `{"path":"other.txt"}`, "other.txt: no such file or directory", "internal"},
	}, got)
	require.Equal(t, []any{map[string]any{"tool": "file_write", "calls": 1.0}, map[string]any{"tool": "file_read", "calls": 2.0}}, shown["calledTools"])

	secret := call{dir: dir, args: []string{"show", "Keep", "-o", "json"}}.run(t).stdout
	require.NotContains(t, secret, "4711")
	require.NotContains(t, secret, "pin.txt")
	require.NotContains(t, secret, "file_write", "nothing is said of the work on what the viewer may not see")
}
