package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/scripted"
)

// loweredSpec has a declassifier that a person must approve, for a task that needs the value.
const loweredSpec = `
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
  - {title: Score, assignee: scorer, uses: [claim], description: How high?, outputSchema: {type: object, properties: {score: {type: integer, minimum: 0, maximum: 9}}, required: [score]}}
  - {title: Write, assignee: writer, dependsOn: [Score], description: Write it.}
`

// What a person refused stays refused, so a failed run suggests a new one. What was decided is shown once.
func TestARefusedRunIsNotResumed(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": loweredSpec})
	at := func(args ...string) outcome { return call{dir: dir, args: args}.run(t) }
	got := at("run", "--save", "out")
	require.Equal(t, exit.StatusWaiting, got.status, got.stderr)
	require.Regexp(t, `runteam resume \w+ --save out --force\n`, got.stderr)
	runs, err := filepath.Glob(filepath.Join(dir, "out", "*"))
	require.NoError(t, err)
	require.Len(t, runs, 2)
	_, command, _ := strings.Cut(got.stderr, "  runteam resume ")
	run := strings.Fields(command)[0]
	require.Zero(t, at("answer", run, "Write", "--question", openQuestions(t, at)[0].ID, "--set", "decision=no", "--set", "reason=Not yet.").status)
	got = at("resume", run, "--save", "out", "--force")
	require.Equal(t, exit.StatusFailed, got.status, got.stderr)
	require.Contains(t, got.stderr, "Start a new run, with the flags of this one:\n  runteam run team.yaml\n")
	require.NotContains(t, got.stderr, "runteam resume")

	require.Regexp(t, `answered by \S+, \S+ \S+: no: Not yet\.\n`, at("show", run, "Write").stdout)
	explained := at("explain", run, "Write").stdout
	require.Equal(t, 1, strings.Count(explained, "Write · editor · attempt 1 · approval of score-out · confidential"), explained)
	require.Equal(t, 1, strings.Count(explained, "May exactly this be delivered"))
}

func TestARefusedPlanIsNotResumed(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": approvedPlan, "script.yaml": planScript})
	got := call{dir: dir, args: []string{"run", "--offline", "--script", "script.yaml"}}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, got.stderr)
	require.Contains(t, got.stderr, "Start a new run")
	require.NotContains(t, got.stderr, "runteam resume")
}

// A record of a suspended run has no answer that is given later, and says so.
func TestARecordNamesMissingAnswers(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": `
name: mail
model: m
offline: script.yaml
agents: [{name: writer}, {name: editor, backend: {kind: person}}]
tasks:
  - {title: Draft, assignee: writer, description: Draft it.}
  - {title: Write letter, assignee: editor, description: Write it., dependsOn: [Draft]}
`, "script.yaml": "replies: [{task: Draft, text: A draft.}]"})
	script, err := scripted.ReadFile("", filepath.Join(dir, "script.yaml"))
	require.NoError(t, err)
	server, err := scripted.Start(script, scripted.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	env := map[string]string{"OPENAI_BASE_URL": server.URL()}
	got := call{dir: dir, env: env, args: []string{"run", "--record", "rec.yaml"}}.run(t)
	require.Equal(t, exit.StatusWaiting, got.status, got.stderr)
	require.Contains(t, got.stderr, `rec.yaml lacks the answer to "Write letter": answers given after the run was suspended are not recorded`)
}
