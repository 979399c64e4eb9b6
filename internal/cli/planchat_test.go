package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// The plan of a chat says who reads earlier turns, with labels that a turn can reach.
func TestPlanOfAChat(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": `
inputs: {rules: {text: Be fair., classification: confidential}, other: {text: Unused.}}
agents:
  - {name: helper, model: m, accepts: confidential}
  - {name: low, model: m, accepts: internal}
chat: {agent: helper, inputs: [rules]}
`})
	got := call{dir: dir, args: []string{"plan", "--chat", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	var d struct {
		Tasks []struct {
			Title, Assignee, Label string
			Reads                  []struct{ Kind, Name, From, Label string }
		}
		Flow struct {
			Sources []struct{ Name, Label string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &d), got.stdout)
	require.Len(t, d.Tasks, 1)
	require.Equal(t, "helper", d.Tasks[0].Assignee)
	require.Equal(t, "confidential", d.Tasks[0].Label)
	require.Equal(t, []struct{ Kind, Name, From, Label string }{
		{"input", "rules", "user", "confidential"}, {"conversation", "turn 1", "user", "internal"}, {"conversation", "answer 1", "helper", "confidential"},
	}, d.Tasks[0].Reads, "an answer has at least the label of what the agent read")
	require.Contains(t, got.stdout, `earlier turns of helper, confidential`)

	plain := clitest.Folder(t, map[string]string{"team.yaml": "agents: [{name: low, model: m}]\n"})
	got = call{dir: plain, args: []string{"plan", "--chat", "--agent", "low", "--from", "earlier turns of low, internal", "--label", "public"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "public in, so the answer is public: %+v", got)
	require.Contains(t, got.stderr, "earlier turns of low, public")
	got = call{dir: plain, args: []string{"plan", "--chat", "--agent", "low", "--label", "public"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "answer 1", "%+v", got)

	for want, args := range map[string][]string{
		"--agent is for a chat: add --chat": {"plan", "--agent", "low"},
		"--label is for a chat: add --chat": {"plan", "--label", "public"},
		"a chat has none":                   {"plan", "--chat", "--save", "x.yaml"},
		`--label "pubic": did you mean`:     {"plan", "--chat", "--label", "pubic"},
		"add --goal TEXT":                   {"plan", "--chat", "--agent", "coordinator"},
		"helper answers in this chat":       {"plan", "--chat", "--goal", "X"},
		"unknown agent \"lo\"":              {"plan", "--chat", "--agent", "lo"},
		"add --chat for a turn of its chat": {"plan"},
		"write runteam chat for its chat":   {"run"},
	} {
		got := call{dir: dir, args: args}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%v %+v", args, got)
		require.Contains(t, got.stderr, want)
	}
}

// A coordinator reads earlier turns, and the tasks that it plans are labeled as what it read.
func TestPlanOfAChatWithACoordinator(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": `
inputs: {rules: {text: Be fair., classification: confidential}}
agents:
  - {name: helper, model: m, accepts: confidential}
  - {name: low, model: m, accepts: internal}
coordinator: {model: m, mayGrant: [inputs]}
`, "high.yaml": `replies: [{coordinator: plan, text: '[{"title":"T","description":"D","assignee":"helper","uses":["rules"]}]'}]`,
		"low.yaml": `replies: [{coordinator: plan, text: '[{"title":"T","description":"D","assignee":"helper","uses":["rules"]},{"title":"U","description":"D","assignee":"low"}]'}]`})
	got := call{dir: dir, args: []string{"plan", "--chat", "--goal", "Help.", "--offline", "--script", "high.yaml"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "of coordinator, confidential  confidential  d · W d W")
	require.Contains(t, got.stdout, "goal: Help.")

	got = call{dir: dir, args: []string{"plan", "--chat", "--goal", "Help.", "--offline", "--script", "low.yaml"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "after a confidential answer, low cannot get a task: %+v", got)
	require.Contains(t, got.stderr, `"low"`)
	got = call{dir: dir, args: []string{"plan", "--goal", "Help.", "--offline", "--script", "low.yaml"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
}

// A plan that is saved keeps who answers in a chat.
func TestSavedPlanKeepsTheChat(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": "agents: [{name: helper, model: m}]\ninputs: {rules: {text: Be fair.}}\nchat: {agent: helper, inputs: [rules]}\ngoal: Help.\n",
		"script.yaml": `replies: [{coordinator: plan, text: '[{"title":"T","description":"D","assignee":"helper"}]'}, {text: hello}]`})
	got := call{dir: dir, args: []string{"plan", "--save", "saved.yaml", "--offline", "--script", "script.yaml"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	text, err := os.ReadFile(filepath.Join(dir, "saved.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(text), "chat:")
	got = call{dir: dir, args: []string{"chat", "saved.yaml", "--offline", "--script", "script.yaml", "--message", "Hi."}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, "hello\n", got.stdout)
}
