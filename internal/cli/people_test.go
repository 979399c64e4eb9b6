package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// approvalSpec has tasks of a person between those of commands.
const approvalSpec = `
name: approval
agents:
  - {name: writer, backend: {kind: process, command: cat}}
  - {name: editor, backend: {kind: person}, accepts: confidential}
tasks:
  - {title: Draft, key: d, assignee: writer, description: Write the letter.}
  - title: Decide
    key: ok
    assignee: editor
    dependsOn: [Draft]
    description: May this letter be sent?
    outputSchema:
      type: object
      properties: {choice: {enum: [send, stop]}, urgent: {type: boolean}, pages: {type: integer}, note: {type: string}}
      required: [choice]
  - {title: Review, assignee: editor, dependsOn: [Draft], description: Say what is wrong.}
  - {title: Send, assignee: writer, dependsOn: [Decide, Review], description: Send it.}
`

// suspendedRun runs the spec away from a terminal, and returns its folder and the ID of the run.
func suspendedRun(t *testing.T) (dir, run string) {
	t.Helper()
	dir = clitest.Folder(t, map[string]string{"team.yaml": approvalSpec})
	got := call{dir: dir, args: []string{"run", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusWaiting, got.status, got.stderr)
	var doc struct {
		RunID  string
		Status string
		Tasks  []struct{ Title, Status, WaitingFor string }
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &doc))
	require.Equal(t, "suspended", doc.Status)
	require.Equal(t, "in_progress", doc.Tasks[1].Status)
	require.Equal(t, "editor", doc.Tasks[1].WaitingFor)
	require.Equal(t, "blocked", doc.Tasks[3].Status)
	require.Contains(t, got.stderr, "1 of 4 tasks completed, 2 waiting for a person")
	require.Regexp(t, "runteam answer "+doc.RunID[:8]+` Decide --question [0-9a-f]{8} --set choice=send\n`, got.stderr)
	require.Regexp(t, "runteam answer "+doc.RunID[:8]+` Review --question [0-9a-f]{8} '…'\n`, got.stderr)
	require.Contains(t, got.stderr, "runteam resume "+doc.RunID[:8]+"\n")
	return dir, doc.RunID
}

func TestASuspendedRunIsAnsweredAndResumed(t *testing.T) {
	t.Parallel()
	dir, run := suspendedRun(t)
	at := func(args ...string) outcome { return call{dir: dir, args: args}.run(t) }

	got := at("questions", "-o", "json")
	require.Zero(t, got.status, got.stderr)
	var open []struct {
		RunID, Title, Agent, Prompt, AnswerCommand string
		Fields                                     []struct {
			Name, Kind string
			Choices    []string
			Required   bool
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &open))
	require.Len(t, open, 2)
	i := 0
	if open[0].Title != "Decide" {
		i = 1
	}
	decide := open[i]
	require.Equal(t, "editor", decide.Agent)
	require.Contains(t, decide.Prompt, "Write the letter.")
	require.Len(t, decide.Fields, 4)
	require.Equal(t, []string{"send", "stop"}, decide.Fields[0].Choices)
	require.True(t, decide.Fields[0].Required)
	require.Contains(t, at("questions", run[:6]).stdout, `"Review" for editor`)
	require.Contains(t, at("show").stdout, "to answer: runteam questions "+run[:8]+"\n")
	require.Contains(t, at("show", "Decide").stdout, "waiting for the answer of editor\n")
	require.Contains(t, at("runs").stdout, "suspended")
	require.Contains(t, at("replay").stderr, "equal to the byte")

	got = at("answer", run, "ok", "--set", "choice=send", "--set", "urgent=no", "--set", "pages=2", "--by", "ann", "--reason", "as discussed")
	require.Zero(t, got.status, got.stderr)
	require.Contains(t, got.stdout, `answered "Decide" as ann; 1 open question left in this run`)
	require.NotContains(t, at("show", "Decide").stdout, "as discussed", "the reason may quote what the user may not see")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "review.md"), []byte("Nothing is wrong."), 0o600))
	got = at("answer", run, "Review", "--file", "review.md", "-o", "json")
	require.Zero(t, got.status, got.stderr)
	require.Contains(t, got.stdout, `"openQuestions":0`)
	require.Equal(t, "no open questions\n", at("questions").stdout)
	require.Contains(t, at("show").stdout, "to resume: runteam resume "+run[:8]+"\n", "nothing is left to answer")
	require.Regexp(t, run[:8]+`.* runteam resume `+run[:8], at("runs").stdout)
	require.Contains(t, at("pause", run).stderr, "to continue: runteam resume "+run[:8])

	got = at("resume", run)
	require.Zero(t, got.status, got.stderr)
	require.Contains(t, got.stdout, `{"choice":"send","pages":2,"urgent":false}`)
	require.Contains(t, got.stdout, "Nothing is wrong.")
	require.Contains(t, got.stderr, "resumed: 1 task completed before\n", "what people answered completes now")
	got = at("show", "Decide")
	require.Regexp(t, `answered by ann, \S+ \S+: as discussed\n`, got.stdout)
	require.Contains(t, at("replay").stderr, "replayed 4 of 4 prompts, equal to the byte")
}

func TestAnswersThatAreRefused(t *testing.T) {
	t.Parallel()
	dir, run := suspendedRun(t)
	tests := []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{run, "Decide", "--set", "choice=burn"}, 2, `--set choice: "burn" is not one of send, stop`},
		{[]string{run, "Decide", "--set", "chioce=send"}, 2, "--set chioce: there is no such field; did you mean choice?"},
		{[]string{run, "Decide", "--set", "urgent=yes"}, 2, "choice is missing: write --set choice=send"},
		{[]string{run, "Decide", "--set", "choice=send", "--set", "pages=many"}, 2, `pages: "many" is not a number`},
		{[]string{run, "Decide", "--set", "choice=send", "--set", "pages=1.5"}, 2, "pages"},
		{[]string{run, "Decide", "--set", "choice"}, 2, "FIELD=VALUE"},
		{[]string{run, "Decide", `{"choice": "burn"}`}, 2, "choice"},
		{[]string{run, "Decide", "send it"}, 2, "this question has fields: write --set choice=send (or stop)"},
		{[]string{run, "Review", "--set", "a=b"}, 2, "--set is for an answer with fields"},
		{[]string{run, "Review", " "}, 2, "the answer is empty"},
		{[]string{run, "Review", "--file", "missing.md"}, 2, "--file missing.md"},
		{[]string{run, "Review"}, 2, "write the answer as TEXT"},
		{[]string{run}, 2, "needs a RUN and a TASK"},
		{[]string{run, "Draft", "x"}, 2, `task "Draft" has asked no person`},
		{[]string{run, "Nothing", "x"}, 2, `unknown task "Nothing"; those that wait for an answer: `},
		{[]string{run, "Decied", "x"}, 2, `unknown task "Decied"; did you mean Decide?`},
		{[]string{run, "Review", "--question", "abc", "x"}, 2, "write at least 6 characters"},
		{[]string{run, "Review", "--question", "abcdef", "x"}, 2, `task "Review": the question has changed; see runteam questions `},
		{[]string{run, "Review", "--question", "Review", "x"}, 2, `--question "Review": it is not the ID of a question; copy it from runteam questions `},
		{[]string{"nosuchrun", "Review", "x"}, 2, "unknown run"},
	}
	for _, tt := range tests {
		got := call{dir: dir, args: append([]string{"answer"}, tt.args...)}.run(t)
		require.Equal(t, tt.status, got.status, "%v: %s", tt.args, got.stderr)
		require.Contains(t, got.stderr, tt.want)
	}
	got := call{dir: dir, args: []string{"questions"}}.run(t)
	require.Equal(t, 2, strings.Count(got.stdout, "runteam answer "), "both are still open")

	require.Zero(t, call{dir: dir, args: []string{"answer", run, "Review", "Fine.", "--by", "ann"}}.run(t).status)
	got = call{dir: dir, args: []string{"answer", run, "Review", "Bad."}}.run(t)
	require.Equal(t, 2, got.status)
	require.Contains(t, got.stderr, "it was answered already by ann at ")
}

func TestASpecThatChangesWhileARunIsSuspendedAsksAnew(t *testing.T) {
	t.Parallel()
	dir, run := suspendedRun(t)
	at := func(args ...string) outcome { return call{dir: dir, args: args}.run(t) }
	require.Zero(t, at("answer", run, "Decide", "--set", "choice=send", "--by", "ann").status)
	require.Zero(t, at("answer", run, "Review", "Fine.").status)
	changed := strings.Replace(approvalSpec, "May this letter be sent?", "May it be sent to everyone?", 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "team.yaml"), []byte(changed), 0o600))
	got := at("resume", run)
	require.Equal(t, exit.StatusWaiting, got.status, got.stderr)
	require.Contains(t, got.stderr, `task "Decide": the question has changed since ann answered it, so it is asked again`)
	require.Contains(t, at("questions").stdout, "May it be sent to everyone?")
	require.NotContains(t, at("questions").stdout, `"Review"`)
}

func TestAPersonWhoCannotAnswerIsAnErrorBeforeTheRun(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": approvalSpec, "script.yaml": "replies:\n  - {task: Decide, text: '{\"choice\": \"stop\"}'}\n  - {task: Review, text: Fine.}\n"})
	got := call{dir: dir, args: []string{"run", "--no-journal"}}.run(t)
	require.Equal(t, 2, got.status)
	require.Contains(t, got.stderr, `task "Decide" is for the person "editor", who cannot answer: run it on a terminal, or without --no-journal`)

	got = call{dir: dir, args: []string{"run", "--no-journal", "--offline", "--script", "script.yaml"}}.run(t)
	require.Zero(t, got.status, got.stderr)
	require.Contains(t, got.stdout, `{"choice": "stop"}`, "a script answers for people")
}

func TestPlansShowPeopleAsReaders(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": approvalSpec})
	got := call{dir: dir, args: []string{"plan"}}.run(t)
	require.Zero(t, got.status, got.stderr)
	require.Contains(t, got.stdout, "editor at internal, read by a person\n")
	require.Contains(t, got.stdout, "editor, confidential")
	require.Contains(t, call{dir: dir, args: []string{"plan", "-o", "json"}}.run(t).stdout, `"person":true`)
}
