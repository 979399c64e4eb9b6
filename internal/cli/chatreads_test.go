package cli

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
)

// payrollChat is a chat whose agent transfers each turn to one that reads more than it.
const payrollChat = `
inputs: {payroll: {text: '{"name": "Ada", "salary": 77123}'}}
agents:
  - {name: triage, model: m, systemPrompt: You triage}
  - {name: payroll, model: m, systemPrompt: You pay}
edges: [{from: triage, to: payroll, transfer: true}]
chat: {agent: triage, inputs: [payroll]}
policy: {rules: [{from: user, to: triage, block: [salary]}]}
`

const payrollReplies = `
replies:
  - {system: You triage, times: 1, toolCalls: [{name: transfer_to_payroll, arguments: {reason: x}}]}
  - {system: You pay, text: '{"salary": 77123, "shown": 1}'}
  - {system: You triage, text: ok}
`

const neverTriage = "input payroll/salary never derives into triage"

// What an earlier turn derives from counts in the assertions of a chat, before a model is called and in any spec
// that has one.
func TestAssertionsSeeThroughEarlierTurns(t *testing.T) {
	t.Parallel()
	asserting := payrollChat + "assert: [" + neverTriage + "]\n"
	dir := clitest.Folder(t, map[string]string{"team.yaml": asserting, "script.yaml": payrollReplies,
		"tasks.yaml": asserting + "tasks: [{title: Pay, assignee: payroll, description: Pay., uses: [payroll]}]\n",
		"alone.yaml": `
inputs: {payroll: {text: '{"salary": 77123}'}}
agents: [{name: triage, model: m}, {name: other, model: m}]
chat: {agent: triage, inputs: [payroll]}
assert: [input payroll never derives into other]
`})
	for name, args := range map[string][]string{
		"plan":  {"plan", "--chat"},
		"check": {"check"},
		"tasks": {"check", "tasks.yaml"},
		"chat":  {"chat", "--offline", "--script", "script.yaml", "--no-journal", "--message", "Hi."},
	} {
		got := call{dir: dir, args: args}.run(t)
		require.Equal(t, exit.StatusFailed, got.status, "%s: %+v", name, got)
		require.Contains(t, got.stdout+got.stderr, neverTriage, name)
		require.Contains(t, got.stdout+got.stderr, "turn 1", name)
	}
	got := call{dir: dir, args: []string{"check", "-"}, stdin: asserting}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	got = call{dir: dir, args: []string{"check", "alone.yaml"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "1 assertion")
}

// A rule for an agent and who made what another agent read holds for what that agent answered in an earlier
// turn, in one process and in the next one.
func TestRulesSeeThroughEarlierTurns(t *testing.T) {
	t.Parallel()
	for name, turns := range map[string][][]string{
		"one process":   {{"--message", "Hi.", "--message", "Again."}},
		"two processes": {{"--message", "Hi."}, {"--continue", "--message", "Again."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, map[string]string{"team.yaml": payrollChat, "script0.yaml": payrollReplies, "script1.yaml": "replies: [{text: ok}]\n"})
			for i, args := range turns {
				got := call{dir: dir, args: append([]string{"chat", "--offline", "--script", fmt.Sprintf("script%d.yaml", i), "--journal", "runs.db"}, args...)}.run(t)
				require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			}
			got := call{dir: dir, args: []string{"runs", "--journal", "runs.db", "-o", "json"}}.run(t)
			var runs []struct{ RunID string }
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &runs), "%+v", got)
			got = call{dir: dir, args: []string{"explain", runs[0].RunID, "Turn 2", "--journal", "runs.db"}}.run(t)
			require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			require.NotContains(t, got.stdout, "77123")
			require.Contains(t, got.stdout, "shown", "what no rule withholds is delivered")
			require.Contains(t, got.stdout, "answer 1 from triage > payroll > user")
		})
	}
}

// A coordinator plans each turn anew. What it was told in an earlier turn derives from what the tasks of that turn
// read, whatever it plans now.
func TestAssertionsSeeThroughAnEarlierPlan(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": `
inputs: {payroll: {text: Ada has 77123.}}
agents: [{name: clerk, model: m}, {name: other, model: m}]
coordinator: {model: m, mayGrant: [inputs]}
assert: [input payroll never derives into other]
`, "script0.yaml": `replies: [{coordinator: plan, text: '[{"title":"Look","description":"D","assignee":"clerk","uses":["payroll"]}]'}, {text: fine}]`,
		"script1.yaml": `replies: [{coordinator: plan, text: '[{"title":"Tell","description":"D","assignee":"other"}]'}, {text: fine}]`})
	send := func(script string, more ...string) (result struct {
		status int
		stderr string
	}) {
		got := call{dir: dir, args: append([]string{"chat", "--offline", "--script", script, "--journal", "runs.db", "--message", "Hi."}, more...)}.run(t)
		result.status, result.stderr = got.status, got.stderr
		return result
	}
	require.Equal(t, exit.StatusOK, send("script1.yaml").status, "other reads nothing of it yet")
	first := send("script0.yaml")
	require.Equal(t, exit.StatusOK, first.status, first.stderr)
	later := send("script1.yaml", "--continue")
	require.Equal(t, exit.StatusFailed, later.status, later.stderr)
	require.Contains(t, later.stderr, "input payroll never derives into other")
}
