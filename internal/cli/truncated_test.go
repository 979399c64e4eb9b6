package cli

import (
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// run, show, explain and replay report that the answer of a task is truncated.
func TestTruncatedAnswersInTheCommand(t *testing.T) {
	t.Parallel()
	const script = `replies:
  - {task: Draft, body: '{"choices":[{"message":{"content":"Half a draft"},"finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":40}}'}
  - {task: Edit, text: Edited}
`
	const rest = `description: Write it., assignee: writer}
  - {title: Edit, assignee: writer, description: Edit it., dependsOn: [Draft]}
`
	files := map[string]string{
		"script.yaml": script,
		"refuse.yaml": "offline: script.yaml\nagents: [{name: writer, maxTokens: 40}]\ntasks:\n  - {title: Draft, " + rest,
		"accept.yaml": "offline: script.yaml\nagents: [{name: writer, maxTokens: 40}]\ntasks:\n  - {title: Draft, acceptTruncated: true, " + rest,
	}
	dir := clitest.Folder(t, files)
	run := func(args ...string) outcome { return call{bare: true, dir: dir, args: args}.run(t) }

	got := run("run", "refuse.yaml", "--offline", "-o", "json")
	require.Equal(t, 1, got.status, "%+v", got)
	failed := object(t, got.stdout)["errors"].([]any)[0].(map[string]any)
	require.Equal(t, "ANSWER_TRUNCATED", failed["code"])
	require.Contains(t, failed["message"], "maxTokens 40 of the agent")
	require.Contains(t, run("show").stdout, "maxTokens 40 of the agent")

	got = run("run", "accept.yaml", "--offline", "-o", "json")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	draft := object(t, got.stdout)["tasks"].([]any)[0].(map[string]any)
	require.Equal(t, "Half a draft", draft["result"])
	require.Equal(t, true, draft["truncated"])
	require.Regexp(t, `Draft +writer .* truncated`, run("show").stdout)
	require.Equal(t, true, object(t, run("show", "-o", "json").stdout)["tasks"].([]any)[0].(map[string]any)["truncated"])
	require.Contains(t, run("explain", object(t, got.stdout)["runId"].(string), "Edit").stdout, "truncated answer")
	again := run("replay", "-o", "json")
	require.Equal(t, exit.StatusOK, again.status, "%+v", again)
	require.Equal(t, draft, object(t, again.stdout)["tasks"].([]any)[0])
}
