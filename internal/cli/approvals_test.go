package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
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

const approvedPlan = `
name: report
model: m
goal: Research the market, compare the offers and then write a report.
coordinator: {approve: editor}
agents:
  - {name: writer, systemPrompt: You write.}
  - {name: editor, backend: {kind: person}}
`

const planScript = `
replies:
  - {coordinator: plan, text: '[{"title": "Find", "description": "Find the offers."}]'}
  - {coordinator: repair, text: '[{"title": "Look", "description": "Look for them."}]'}
`

const unseenApproval = `
name: letters
inputs: {claim: {text: A claim., classification: confidential}}
policy:
  default: full
  rules: [{from: scorer, to: user, mode: minimal}]
  declassify: [{name: score-out, from: scorer, to: writer, paths: [/score], lowerTo: internal, reason: a number, approve: editor}]
agents:
  - {name: scorer, backend: {kind: process, command: echo, args: ['{"score": 7}'], input: none}, accepts: confidential}
  - {name: writer, backend: {kind: process, command: cat}}
  - {name: editor, backend: {kind: person}, accepts: confidential}
tasks:
  - {title: Score, assignee: scorer, uses: [claim], description: How high?, outputSchema: {type: object, properties: {score: {type: integer, minimum: 0, maximum: 9}}, required: [score]}}
  - {title: Write, assignee: writer, dependsOn: [Score], description: Write it.}
`

// The editor may see the score, and whoever answers for the editor may not.
func TestAValueThatIsNotShownIsNotApproved(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": unseenApproval})
	at := func(args ...string) outcome { return call{dir: dir, args: args}.run(t) }
	const warned = `team.yaml:7:123: warning: "score-out": "editor" can only refuse what it lowers: the question shows what the user of the run may see, and rule scorer→user (team.yaml:6) withholds or redacts a part of it; change the rules`
	require.Contains(t, at("check").stderr, warned)
	require.Equal(t, exit.StatusWaiting, at("run").status)
	var seen []struct{ ID, RunID, Prompt, AnswerCommand string }
	require.NoError(t, json.Unmarshal([]byte(at("questions", "-o", "json").stdout), &seen))
	require.Contains(t, seen[0].Prompt, "[withheld: confidential]")
	require.NotContains(t, seen[0].Prompt, `"score"`)
	require.Contains(t, seen[0].AnswerCommand, "decision=no")
	for _, form := range [][]string{{"--set", "decision=yes"}, {`{"decision":"yes"}`}} {
		got := at(append([]string{"answer", seen[0].RunID, "Write", "--question", seen[0].ID}, form...)...)
		require.Equal(t, exit.StatusUsage, got.status)
		require.Contains(t, got.stderr, "part of the question is withheld from you, so you cannot approve it")
	}
	require.Zero(t, at("answer", seen[0].RunID, "Write", "--question", seen[0].ID, "--set", "decision=no").status)
}

// Calls of a tool are shown with arguments that a rule for the user can withhold, or a label.
func TestCallsThatCanOnlyBeRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ rules, input, want string }{
		"a rule": {rules: `{from: "*", to: user, redact: {patterns: [{name: ticket, regexp: "T-[0-9]+"}]}}`,
			want: `12:5: warning: task "Write": "editor" can only refuse calls of tool "file_write": the question shows what the user of the run may see, and rule *→user (team.yaml:4) withholds or redacts a part of it`},
		"a label": {rules: "{from: user, to: writer, mode: full}, {from: writer, to: editor, mode: full}, {from: writer, to: tool:file_write, mode: full}", input: ", classification: secret",
			want: `and it is at least secret, and the user may see confidential; remove approve, or keep from it what the user may not see`},
		"neither": {rules: "{from: writer, to: editor, mode: full}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, map[string]string{"team.yaml": `model: m
endpoints: {"https://api.openai.com/v1": {accepts: secret}}
policy:
  rules: [` + tt.rules + `]
inputs: {claim: {text: A claim.` + tt.input + `}}
tools:
  file_write: {approve: editor}
agents:
  - {name: writer, tools: [file_write], accepts: secret}
  - {name: editor, backend: {kind: person}, accepts: secret}
tasks:
  - {title: Write, assignee: writer, uses: [claim], description: Write it.}
  - {title: Write again, assignee: writer, uses: [claim], description: Write it.}
  - {title: End, assignee: editor, description: The end.}
`})
			got := call{dir: dir, args: []string{"check"}}.run(t)
			require.Zero(t, got.status, got.stderr)
			require.Contains(t, got.stderr, tt.want)
			require.Equal(t, tt.want != "", strings.Count(got.stderr, "can only refuse") == 1, got.stderr)
		})
	}
}
