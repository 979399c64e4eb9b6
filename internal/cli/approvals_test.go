package cli

import (
	"os"
	"path/filepath"
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

// TestDocumentedScriptApprovesCallsOfAServer runs the script of the reference that approves one call of an MCP
// server and refuses another.
func TestDocumentedScriptApprovesCallsOfAServer(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/scripts.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## Approvals\n")
	require.True(t, found)
	_, script, _ := strings.Cut(section, "```yaml\n")
	script, _, _ = strings.Cut(script, "```")
	dir := clitest.Folder(t, map[string]string{"script.yaml": script, "team.yaml": `
name: offers
model: m
tools: {search: {mcp: {command: ` + toolServer(t) + `, confine: false, reason: a test}, allow: [web_search], effect: none, approve: editor}}
agents:
  - {name: finder, tools: [search]}
  - {name: editor, backend: {kind: person}}
tasks: [{title: Find offers, assignee: finder, description: Find offers.}]
`})
	got := call{dir: dir, args: []string{"run", "--offline", "--script", "script.yaml", "--no-journal"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Regexp(t, `^\W*found .*heat pumps`, got.stdout)
	require.Contains(t, got.stdout, "not your business")
	require.NotContains(t, got.stdout, "found salaries")
	require.NotContains(t, got.stderr, "never used")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(strings.ReplaceAll(script, "Approve search__", "Approve search/")), 0o600))
	got = call{dir: dir, args: []string{"run", "--offline", "--script", "script.yaml", "--no-journal"}}.run(t)
	require.Contains(t, got.stderr, "never used", "the name is that which models see")
	require.NotContains(t, got.stdout, "found")
}
