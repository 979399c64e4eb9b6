package cli

import (
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// run, show and replay print rejected answers, and the reasoning of models before their answers.
func TestShowRejectedAnswersAndReasoning(t *testing.T) {
	t.Parallel()
	const schema = "outputSchema: {type: object, properties: {verdict: {type: string, const: approve}, note: {type: string}}, required: [verdict, note]}"
	dir := clitest.Folder(t, map[string]string{
		"script.yaml": `replies:
  - {task: Judge, times: 1, text: "<think>I doubt\nit.\x1b</think>{\"verdict\": \"reject\"}"}
  - {task: Judge, text: "{\"verdict\": \"reject\", \"note\": \"no\"}"}
  - {task: Plain, text: "<think>Just a thought.</think>\n\nA result."}
`,
		"team.yaml": "offline: script.yaml\nagents: [{name: judge}]\ntasks:\n  - {title: Judge, description: Judge it., " + schema + "}\n  - {title: Plain, description: Say it.}\n",
	})
	run := func(args ...string) outcome { return call{bare: true, dir: dir, args: args}.run(t) }
	got := run("run", "team.yaml", "--offline", "-o", "json")
	require.Equal(t, 1, got.status, "%+v", got)
	require.Contains(t, got.stderr, `"runteam show RUN TASK" prints the answer`)
	judged := object(t, got.stdout)["tasks"].([]any)[0].(map[string]any)
	require.Equal(t, "GUARD_FAILED", judged["error"].(map[string]any)["code"])
	rejected := judged["rejected"].([]any)
	require.Len(t, rejected, 2)
	require.Equal(t, `{"verdict": "reject"}`, rejected[0].(map[string]any)["text"])
	require.Equal(t, `"note" is missing; found {"verdict":"reject"}`, rejected[0].(map[string]any)["problem"])
	require.Equal(t, `/verdict: found "reject"; expected const "approve"`, rejected[1].(map[string]any)["problem"])
	require.Equal(t, judged, object(t, run("replay", "-o", "json").stdout)["tasks"].([]any)[0])

	plainly := run("show", "Judge")
	require.Equal(t, exit.StatusOK, plainly.status, "%+v", plainly)
	require.Contains(t, plainly.stdout, "         rejected answer:\n           │ {\"verdict\": \"reject\"}\n         what is wrong with it: \"note\" is missing; found {")
	require.Contains(t, plainly.stdout, "           │ {\"verdict\": \"reject\", \"note\": \"no\"}\n         what is wrong with it: /verdict: found \"reject\"; expected const \"approve\"\n")
	require.NotContains(t, plainly.stdout, "I doubt")
	require.Contains(t, run("show", "Judge", "--reasoning").stdout, "         reasoning:\n           │ I doubt\n           │ it."+`\x1b`+"\n")
	require.Contains(t, run("show", "Plain", "--reasoning").stdout, "Just a thought.")
	exchange := func(args ...string) map[string]any {
		return object(t, run(args...).stdout)["exchanges"].([]any)[0].(map[string]any)
	}
	require.Equal(t, "Just a thought.", exchange("show", "Plain", "--reasoning", "-o", "json")["reasoning"])
	require.NotContains(t, exchange("show", "Plain", "-o", "json"), "reasoning")
	require.Equal(t, `{"verdict": "reject"}`, exchange("show", "Judge", "-o", "json")["rejected"].(map[string]any)["text"])
	for _, args := range []string{"show", "show -o json", "explain", "explain --contains doubt", "explain Plain -o json", "replay -o json", "runs -o json"} {
		out := run(strings.Fields(args)...)
		require.NotContains(t, out.stdout+out.stderr, "I doubt", args)
		require.NotContains(t, out.stdout+out.stderr, "a thought", args)
	}
	for _, args := range []string{"show --reasoning", "show --usage --reasoning"} {
		require.Equal(t, exit.StatusUsage, run(strings.Fields(args)...).status, args)
	}
	require.Contains(t, run("show", "--reasoning").stderr, "--reasoning needs a task: write runteam show RUN TASK --reasoning")
}
