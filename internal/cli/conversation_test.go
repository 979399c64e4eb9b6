package cli

import (
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

const talkingTeam = `
name: talking
model: m
endpoints: {"https://api.openai.com/v1": {accepts: secret}}
policy: {rules: [{from: user, to: solo, mode: full}]}
output: Open
agents: [{name: solo, accepts: secret, systemPrompt: You answer.}, {name: other, accepts: secret}]
inputs: {key: {text: Under the canary mat., classification: secret}}
tasks:
  - {title: Open, assignee: solo, description: Say what is open.}
  - {title: Closed, assignee: solo, uses: [key], dependsOn: [Open], description: Say where the key is.}
  - {title: Refused, assignee: other, description: Say nothing.}
`

// --include-messages adds the conversation of each agent to agentResults, in the
// form of the original and without text that the caller may not see.
func TestIncludeMessages(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": talkingTeam, "script.yaml": "replies: [{task: Open, text: the door}, {task: Refused, status: 400}, {text: canary}]"})
	messages := func(got outcome, agent string) (list []string) {
		t.Helper()
		require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
		result := object(t, got.stdout)["agentResults"].(map[string]any)[agent].(map[string]any)
		all, _ := result["messages"].([]any)
		for _, one := range all {
			m := one.(map[string]any)
			block := m["content"].([]any)[0].(map[string]any)
			require.Equal(t, "text", block["type"])
			list = append(list, m["role"].(string)+": "+block["text"].(string))
		}
		return list
	}
	run := []string{"run", "--offline", "--script", "script.yaml", "-o", "json"}
	got := call{dir: dir, args: append(run, "--include-messages", "--trace", "t.jsonl")}.run(t)
	solo := messages(got, "solo")
	require.Len(t, solo, 4, "%q", solo)
	require.True(t, strings.HasPrefix(solo[0], "user: # Task: Open\n") && strings.Contains(solo[0], "Say what is open."), solo[0])
	require.Equal(t, "assistant: the door", solo[1])
	require.Contains(t, solo[2], "the door", "the result that it depends on")
	require.Contains(t, solo[2], "[withheld: secret]")
	require.Equal(t, "assistant: [withheld: secret]", solo[3])
	require.NotContains(t, got.stdout, "canary")
	other := messages(got, "other")
	require.Len(t, other, 1, "a task that failed has no answer")
	require.Contains(t, other[0], "Say nothing.")

	got = call{dir: dir, args: []string{"run", "--offline", "--include-messages"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Equal(t, "runteam: --include-messages adds to the JSON of the result: add -o json\n", got.stderr)
	require.Empty(t, messages(call{dir: dir, args: run}.run(t), "solo"))
	got = call{dir: dir, args: []string{"task", "--file", "team.yaml", "--include-messages", "--offline", "--script", "script.yaml"}}.run(t)
	require.Contains(t, got.stdout, `"messages":[{"role":"user","content":[{"type":"text","text":"# Task: Open`)
}
