package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/stretchr/testify/require"
)

// types answers each thing that the terminal asks, in order.
func (p *pty) types(t *testing.T, dialog ...string) {
	t.Helper()
	for i := 0; i < len(dialog); i += 2 {
		require.Eventually(t, func() bool { return strings.HasSuffix(strings.TrimRight(p.text(), "\n "), dialog[i]) }, 20*time.Second, 5*time.Millisecond, "%q in\n%s", dialog[i], p.text())
		_, err := p.master.WriteString(dialog[i+1] + "\n")
		require.NoError(t, err)
	}
}

const oneQuestion = `
agents:
  - {name: writer, backend: {kind: process, command: cat}}
  - {name: editor, backend: {kind: person}}
tasks:
  - title: Decide
    assignee: editor
    description: May it be sent?
    outputSchema: {type: object, properties: {choice: {enum: [send, stop]}, note: {type: string}}, required: [choice]}
  - {title: Other, assignee: writer, description: Goes on meanwhile.}
  - {title: Send, assignee: writer, dependsOn: [Decide], description: Send it.}
`

func TestAPersonIsAskedOnTheTerminal(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": oneQuestion})
	p := atTerminal(t, 100, 40, call{dir: dir, args: []string{"run", "--max-concurrency", "1"}, env: map[string]string{"TERM": "xterm"}})
	p.types(t, "choice (send, stop):", "/prompt", "  │ # Task: Decide\n  │\n  │ May it be sent?\nchoice (send, stop):", "burn", `choice: "burn" is not one of send, stop`+"\nchoice (send, stop):", "send", "note (text, may be empty):", "")
	status, lines, raw := p.end(t)
	require.Equal(t, exit.StatusOK, status, "%q", raw)
	text := strings.Join(lines, "\n")
	require.Contains(t, text, "── a question for editor: Decide ──\n  │ May it be sent?\n──\n/later leaves the question open, /prompt shows it as an agent would see it.")
	require.Contains(t, text, `{"choice":"send"}`)
	require.Equal(t, 1, countPrefix(lines, "completed Decide"), "the table is drawn again below the dialog:\n%s", text)
	require.Equal(t, 1, countPrefix(lines, "completed Other"))
}

func TestAQuestionIsLeftOpenOnTheTerminal(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": oneQuestion})
	p := atTerminal(t, 100, 40, call{dir: dir, args: []string{"run"}, env: map[string]string{"TERM": "xterm"}})
	p.types(t, "choice (send, stop):", "/later")
	status, lines, raw := p.end(t)
	require.Equal(t, exit.StatusWaiting, status, "%q", raw)
	require.Contains(t, strings.Join(lines, "\n"), "runteam answer")

	p = atTerminal(t, 100, 40, call{dir: dir, args: []string{"resume", "--no-input"}, env: map[string]string{"TERM": "xterm"}})
	status, lines, raw = p.end(t)
	require.Equal(t, exit.StatusWaiting, status, "%q", raw)
	require.NotContains(t, strings.Join(lines, "\n"), "a question for")

	p = atTerminal(t, 100, 40, call{dir: dir, args: []string{"resume"}, env: map[string]string{"TERM": "xterm"}})
	p.types(t, "choice (send, stop):", "\x03")
	status, lines, raw = p.end(t)
	require.Equal(t, exit.StatusSIGINT, status, "%q", raw)
	require.Contains(t, call{dir: dir, args: []string{"questions"}}.run(t).stdout, `"Decide" for editor`, "an interruption leaves the question open:\n%s", strings.Join(lines, "\n"))
}

// The terminal asks nothing that its user cannot answer, and says who can.
func TestTheTerminalAsksItsUserOnly(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": strings.Replace(oneQuestion, "{kind: person}", "{kind: person, users: [Ann@example.org, bob@example.org]}", 1)})
	p := atTerminal(t, 200, 40, call{dir: dir, args: []string{"run"}, env: map[string]string{"TERM": "xterm"}})
	status, lines, raw := p.end(t)
	require.Equal(t, exit.StatusWaiting, status, "%q", raw)
	text := strings.Join(lines, "\n")
	require.Contains(t, text, "questions to editor stay open, since only ann@example.org or bob@example.org can answer them, and you are ")
	require.Contains(t, text, " --by NAME --set choice=send")
	p = atTerminal(t, 200, 40, call{dir: dir, args: []string{"run", "--no-journal"}, env: map[string]string{"TERM": "xterm"}})
	status, lines, _ = p.end(t)
	require.Equal(t, exit.StatusUsage, status)
	require.Contains(t, strings.Join(lines, "\n"), `task "Decide" is for the person "editor", who cannot answer`)
}

// What the user may not see is not on the screen, although the person may see it.
func TestTheTerminalShowsWhatTheUserMaySee(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": `
agents: [{name: editor, backend: {kind: person}, accepts: secret}, {name: writer, backend: {kind: process, command: cat}}]
inputs: {plan: {text: canary-words, classification: secret}}
policy: {rules: [{from: user, to: editor, mode: full}]}
tasks: [{title: Decide, assignee: editor, uses: [plan], description: Well?}, {title: Tell, assignee: writer, description: Done.}]
`})
	p := atTerminal(t, 100, 40, call{dir: dir, args: []string{"run"}, env: map[string]string{"TERM": "xterm"}})
	p.types(t, ">", "/later")
	status, _, raw := p.end(t)
	require.Equal(t, exit.StatusWaiting, status, "%q", raw)
	require.NotContains(t, raw, "canary-words")
	require.Contains(t, raw, "[withheld: secret]")
	got := call{dir: dir, args: []string{"questions"}}.run(t)
	require.Contains(t, got.stdout, "[withheld: secret]")
	require.NotContains(t, got.stdout, "canary-words")
	got = call{dir: dir, args: []string{"answer", strings.Fields(got.stdout)[2][:8], "Decide", "x"}}.run(t)
	require.Equal(t, 3, got.status, "%+v", got)
	require.Contains(t, got.stderr, "key")
}

func TestTheTerminalApprovesNothingThatItDoesNotShow(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": unseenApproval})
	p := atTerminal(t, 100, 40, call{dir: dir, args: []string{"run"}, env: map[string]string{"TERM": "xterm"}})
	p.types(t, "decision (no):", "yes", "decision (no):", "/later")
	status, _, raw := p.end(t)
	require.Equal(t, exit.StatusWaiting, status, "%q", raw)
	require.Contains(t, raw, "you cannot approve it")
}

// A reason is asked for where something is refused or changed, and a plan that cannot be run comes
// back with what is wrong with it.
func TestAPlanIsApprovedOnTheTerminal(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": approvedPlan, "script.yaml": planScript})
	script, err := scripted.ReadFile("", filepath.Join(dir, "script.yaml"))
	require.NoError(t, err)
	server, err := scripted.Start(script, scripted.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	p := atTerminal(t, 100, 120, call{dir: dir, args: []string{"run"}, env: map[string]string{"TERM": "xterm", "OPENAI_BASE_URL": server.URL()}})
	p.types(t, "decision (no, yes, edit):", "no", "reason (text, may be empty):", "Look for them.",
		"decision (no, yes, edit):", "edit", "or @FILE):", `[{"title": "A", "description": "B", "assignee": "wrter"}]`, "reason (text, may be empty):", "",
		"decision (no, yes, edit):", "yes")
	status, lines, raw := p.end(t)
	require.Equal(t, exit.StatusOK, status, "%q", raw)
	text := strings.Join(lines, "\n")
	require.Equal(t, 2, strings.Count(text, "reason (text, may be empty):"), text)
	_, last, _ := strings.Cut(text, "The plan that you wrote cannot be run")
	require.Contains(t, last, "what is wrong with the plan that you wrote, from runteam, internal:\n  │ - task 1")
	require.Contains(t, last, `unknown agent "wrter": did you mean "writer"?`)
}

// unseenApproval has a declassifier of which the user who answers for the editor may not see the value.
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
