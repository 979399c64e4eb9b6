package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/scripted"
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

func TestAScriptApprovesAPlan(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reply  string
		status int
		want   string
	}{
		{`  - {task: Approve the plan, text: '{"decision": "yes"}'}`, exit.StatusOK, "Find (writer)"},
		{"", exit.StatusFailed, "the plan was refused 4 times by editor"},
	} {
		dir := clitest.Folder(t, map[string]string{"team.yaml": approvedPlan, "script.yaml": planScript + tt.reply})
		got := call{dir: dir, args: []string{"run", "--offline", "--script", "script.yaml"}}.run(t)
		require.Equal(t, tt.status, got.status, got.stderr)
		require.Contains(t, got.stderr, tt.want)
		if tt.status == exit.StatusOK {
			require.Contains(t, call{dir: dir, args: []string{"replay"}}.run(t).stderr, "equal to the byte")
		}
		shown := call{dir: dir, args: []string{"plan", "--offline", "--script", "script.yaml"}}.run(t).stdout
		require.Contains(t, shown, "plans approved by editor")
		require.Regexp(t, `approval of the plan +internal +W = W W`, shown)
	}
}

// Away from a terminal, a plan is answered like any question, by the name of the coordinator.
func TestAPlanIsAnsweredInAPipe(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": approvedPlan, "script.yaml": planScript})
	script, err := scripted.ReadFile("", filepath.Join(dir, "script.yaml"))
	require.NoError(t, err)
	server, err := scripted.Start(script, scripted.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	at := func(args ...string) outcome {
		return call{dir: dir, args: args, env: map[string]string{"OPENAI_BASE_URL": server.URL()}}.run(t)
	}
	got := at("run", "-o", "json")
	require.Equal(t, exit.StatusWaiting, got.status, got.stderr)
	var doc struct {
		RunID, Status string
		Coordinator   []struct{ Step, WaitingFor string }
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &doc))
	require.Equal(t, []any{"suspended", "approval", "editor"}, []any{doc.Status, doc.Coordinator[1].Step, doc.Coordinator[1].WaitingFor})
	require.Contains(t, got.stderr, "no task was run, the plan waits for a person")
	require.Regexp(t, "answer "+doc.RunID[:8]+` coordinator --question [0-9a-f]{8} --set decision=yes\n`, got.stderr)
	require.Contains(t, got.stderr, "# Approve the plan, which waits for editor:\n")
	require.Contains(t, at("questions").stdout, "approval of the plan for editor, asked ")
	require.Contains(t, at("questions").stdout, `"description": "Find the offers."`)
	require.Contains(t, at("show", doc.RunID, "coordinator/approval").stdout, "waiting for the answer of editor")

	question := func() string { return openQuestions(t, at)[0].ID[:6] }
	got = at("answer", doc.RunID, "coordinator", "--question", question(), "--set", "decision=no", "--set", "reason=Look for them.")
	require.Zero(t, got.status, got.stderr)
	require.Equal(t, exit.StatusWaiting, at("resume", doc.RunID).status)
	got = at("answer", doc.RunID, "coordinator", "--question", question(), "--set", "decision=edit", "--set", `plan=[{"title": "Take", "description": "Take one.", "assignee": "wrter"}]`)
	require.Zero(t, got.status, got.stderr)
	require.Equal(t, exit.StatusWaiting, at("resume", doc.RunID).status)
	for _, shown := range []string{at("questions").stdout, openQuestions(t, at)[0].Prompt} {
		require.Contains(t, shown, "The plan that you wrote cannot be run")
		require.Contains(t, shown, `unknown agent "wrter": did you mean "writer"?`)
	}
	got = at("answer", doc.RunID, "coordinator", "--question", question(), "--set", "decision=edit", "--set", `plan=[{"title": "Take", "description": "Take one.", "assignee": "writer"}]`, "--by", "ann", "--reason", "as discussed")
	require.Zero(t, got.status, got.stderr)
	got = at("resume", doc.RunID)
	require.Zero(t, got.status, got.stderr)
	require.Contains(t, got.stderr, "Take (writer)")
	shown := at("show", doc.RunID, "coordinator/approval").stdout
	require.Regexp(t, `approval of plan answered by \S+, \S+ \S+: no: Look for them\.\napproval of plan answered by \S+, \S+ \S+: edit\napproval of plan answered by ann, \S+ \S+: edit: as discussed\n`, shown)
}

// A reply of a script for a declassifier is one that is used.
func TestAScriptApprovesADeclassifier(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": `
name: letters
model: m
inputs: {claim: {text: A claim., classification: confidential}}
policy:
  default: full
  declassify: [{name: score-out, from: scorer, to: writer, paths: [/score], lowerTo: internal, reason: a number, approve: editor}]
agents:
  - {name: scorer, accepts: confidential}
  - {name: writer}
  - {name: editor, backend: {kind: person}, accepts: confidential}
tasks:
  - {title: Score, assignee: scorer, uses: [claim], description: How high?, outputSchema: {type: object, properties: {score: {enum: [7]}}, required: [score]}}
  - {title: Write, assignee: writer, dependsOn: [Score], description: Write it.}
`, "script.yaml": `
replies:
  - {task: Score, text: '{"score": 7}'}
  - {task: Approve score-out, text: '{"decision": "yes"}'}
  - {task: Write, text: 'It is {{dependency "Score"}}.'}
`})
	got := call{dir: dir, args: []string{"run", "--offline", "--script", "script.yaml"}}.run(t)
	require.Zero(t, got.status, got.stderr)
	require.NotContains(t, got.stderr, "never used")
	require.Contains(t, got.stdout, `"score":7`)
	require.Contains(t, call{dir: dir, args: []string{"plan"}}.run(t).stdout, "approval of score-out in Write")
}

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
