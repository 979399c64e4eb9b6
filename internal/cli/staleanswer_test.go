package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/scripted"
)

// An askedQuestion is a question that runteam questions lists.
type askedQuestion struct {
	ID, RunID, Prompt, Tool, Call, Approval, AnswerCommand string
	Schema                                                 map[string]any
}

// openQuestions returns what runteam questions lists.
func openQuestions(t *testing.T, at func(args ...string) outcome) (list []askedQuestion) {
	t.Helper()
	got := at("questions", "-o", "json")
	require.Zero(t, got.status, got.stderr)
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &list))
	return list
}

// command returns the arguments of the command that answers.
func (q *askedQuestion) command() []string { return strings.Fields(q.AnswerCommand)[1:] }

// waitingPlan runs a team whose plan waits for a person.
func waitingPlan(t *testing.T) (dir string, at func(args ...string) outcome, q askedQuestion) {
	t.Helper()
	dir = clitest.Folder(t, map[string]string{"team.yaml": approvedPlan, "script.yaml": planScript})
	script, err := scripted.ReadFile("", filepath.Join(dir, "script.yaml"))
	require.NoError(t, err)
	server, err := scripted.Start(script, scripted.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	at = func(args ...string) outcome {
		return call{dir: dir, args: args, env: map[string]string{"OPENAI_BASE_URL": server.URL()}}.run(t)
	}
	require.Equal(t, exit.StatusWaiting, at("run").status)
	return dir, at, openQuestions(t, at)[0]
}

// The command that was printed for one plan approves no other, which its sender has not seen.
func TestAnAnswerToAnEarlierPlanApprovesNoOther(t *testing.T) {
	t.Parallel()
	_, at, seen := waitingPlan(t)
	require.Contains(t, seen.Prompt, "Find the offers.")
	require.Equal(t, "plan", seen.Approval)
	require.Len(t, seen.ID, 64)
	require.Contains(t, seen.Schema["properties"], "decision")

	got := at("answer", seen.RunID, "coordinator", "--set", "decision=yes")
	require.Equal(t, exit.StatusUsage, got.status)
	require.Contains(t, got.stderr, "an approval is for one question: copy its command, with --question, from runteam questions "+seen.RunID[:8])

	// The reason is for the coordinator, too.
	got = at("answer", seen.RunID, "approve the plan", "--question", seen.ID, "--set", "decision=no", "--reason", "Look for them.", "--by", "ann")
	require.Zero(t, got.status, got.stderr)
	require.Equal(t, exit.StatusWaiting, at("resume", seen.RunID).status) // plans again, and asks about that
	require.Contains(t, openQuestions(t, at)[0].Prompt, "Look for them.")

	got = at(append(seen.command(), "--by", "bob")...)
	require.Equal(t, exit.StatusUsage, got.status, "bob has not seen the second plan")
	require.Contains(t, got.stderr, "the question has changed; see runteam questions "+seen.RunID[:8])
	now := openQuestions(t, at)
	require.Len(t, now, 1, "it is still open")
	require.Zero(t, at(now[0].command()...).status)
}

func TestAnswersAboutAPlanThatTheRunWouldDrop(t *testing.T) {
	t.Parallel()
	dir, at, q := waitingPlan(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plan.json"), []byte(`[{"title": "Take", "description": "Take one.", "assignee": "writer"}]`), 0o600))
	file := "plan=@" + filepath.Join(dir, "plan.json")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--set", "decision=edit"}, "plan is missing: decision=edit needs --set plan=@plan.json"},
		{[]string{"--set", "decision=yes", "--set", file}, "plan is only for decision=edit"},
		{[]string{`{"decision": "edit"}`}, "plan is missing"},
		{[]string{`{"decision": "no", "plan": [{}]}`}, "plan is only for decision=edit"},
		{[]string{"--set", "decision=edit", "--set", `plan={"title": "Take"}`}, "plan must be a JSON list of tasks"},
		{[]string{"--set", "decision=edit", "--set", "plan=@missing.json"}, "missing.json"},
		{[]string{"yes"}, "this question has fields: write --set decision=yes (or no, edit)"},
	} {
		got := at(append([]string{"answer", q.RunID, "coordinator/approval", "--question", q.ID}, tt.args...)...)
		require.Equal(t, exit.StatusUsage, got.status, "%v: %s", tt.args, got.stderr)
		require.Contains(t, got.stderr, tt.want)
	}
	got := at("answer", q.RunID, "coordinator", "--question", q.ID, "--set", "decision=edit", "--set", file)
	require.Zero(t, got.status, got.stderr)
	got = at("resume", q.RunID)
	require.Zero(t, got.status, got.stderr)
	require.Contains(t, got.stderr, "Take (writer)")
}

// A command that is typed twice approves one value.
func TestAnAnswerAboutOneValueIsNotTakenForTheNext(t *testing.T) {
	t.Parallel()
	const scored = `assignee: scorer, uses: [claim], outputSchema: {type: object, properties: {score: {type: integer, minimum: 0, maximum: 9}}, required: [score]}}`
	dir := clitest.Folder(t, map[string]string{"team.yaml": `
name: letters
inputs: {claim: {text: A claim., classification: confidential}}
policy:
  default: full
  declassify: [{name: score-out, from: scorer, to: writer, paths: [/score], lowerTo: internal, reason: a number, approve: editor}]
agents:
  - {name: scorer, backend: {kind: process, command: echo, args: ['{"score": 7}'], input: none}, accepts: confidential}
  - {name: writer, backend: {kind: process, command: cat}}
  - {name: editor, backend: {kind: person}, accepts: confidential}
tasks:
  - {title: A, description: a, ` + scored + `
  - {title: B, description: b, ` + scored + `
  - {title: Write, assignee: writer, dependsOn: [A, B], description: Write it.}
`})
	at := func(args ...string) outcome { return call{dir: dir, args: args}.run(t) }
	got := at("run")
	require.Equal(t, exit.StatusWaiting, got.status)
	require.Contains(t, got.stderr, `# Approve score-out for "Write", which waits for editor:`)
	require.Contains(t, at("questions").stdout, `approval of score-out in "Write" for editor, asked `)
	first := openQuestions(t, at)
	require.Len(t, first, 1)
	require.Equal(t, "score-out", first[0].Approval)
	require.Zero(t, at(first[0].command()...).status)
	require.Equal(t, exit.StatusWaiting, at("resume", first[0].RunID).status) // asks about the other value
	got = at(first[0].command()...)
	require.Equal(t, exit.StatusUsage, got.status, "the second value was never shown")
	require.Contains(t, got.stderr, "the question has changed")
	require.Zero(t, at(openQuestions(t, at)[0].command()...).status)
	require.Zero(t, at("resume", first[0].RunID).status)
}
