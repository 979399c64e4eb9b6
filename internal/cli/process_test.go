package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/process"
	"github.com/stretchr/testify/require"
)

// processFiles are a spec with an agent that is a command, and its script.
func processFiles(backend string, keys ...string) map[string]string {
	return map[string]string{
		"script.yaml": "replies: [{task: Write, text: 'It is {{ dependency \"Count\" }}.'}]\n",
		"team.yaml": `offline: script.yaml
model: m
agents:
  - name: counter
    backend: {kind: process, ` + backend + `}
` + strings.Join(keys, "\n") + `
  - name: writer
tasks:
  - {title: Count, assignee: counter, description: Count.}
  - {title: Write, assignee: writer, description: Write., dependsOn: [Count]}
`,
	}
}

func requireConfinement(t testing.TB) {
	t.Helper()
	if !process.Confines() {
		t.Skip("this system cannot confine commands")
	}
}

// A command answers offline too, from the folder of the spec.
func TestCommandAnswersOffline(t *testing.T) {
	t.Parallel()
	files := processFiles("command: ./bin/count.sh")
	dir := clitest.Folder(t, files)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o700))
	program := filepath.Join(dir, "bin", "count.sh")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nwc -w | tr -d ' '\n"), 0o700))
	run := func(args ...string) outcome { return call{bare: true, dir: dir, args: args}.run(t) }

	first := run("run", "--offline", "--model", "other")
	require.Equal(t, exit.StatusOK, first.status, "%+v", first)
	require.Equal(t, "It is 4.\n", first.stdout)
	require.Contains(t, run("run", "--offline", "--model", "counter=other").stderr, "its backend is a command, which calls no model")

	reused := run("run", "--offline", "--reuse")
	require.Contains(t, reused.stderr, "2 of 2 tasks", "%+v", reused)
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho other\n"), 0o700))
	require.Equal(t, "It is other.\n", run("run", "--offline", "--reuse").stdout)

	require.NoError(t, os.Remove(program))
	missing := call{bare: true, dir: dir, args: []string{"run", "--offline"}}.process(t) // whose message has the path as it is written
	require.Equal(t, 2, missing.status, "%+v", missing)
	require.Contains(t, missing.stderr, `team.yaml:5:39: agent "counter": its Agent cannot work: command "bin/count.sh"`)
	require.Contains(t, missing.stderr, "no such file")
	again := run("replay") // the newest run, whose program is gone
	require.Equal(t, exit.StatusOK, again.status, "%+v", again)
}

// A confined command reads neither the journal, nor the spec, nor the environment.
func TestConfinedCommandReadsNoJournal(t *testing.T) {
	t.Parallel()
	requireConfinement(t)
	dir := clitest.Folder(t, processFiles(`command: sh, args: [-c, "cat \"${FOLDER}/team.yaml\" \"${FOLDER}/.runteam\"/* \"${FOLDER}/key\"; ls \"${FOLDER}\"; env; true"]`))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key"), []byte("canary"), 0o600))
	got := call{bare: true, dir: dir, env: map[string]string{"FOLDER": dir, "SECRET_KEY": "canary"}, args: []string{"run", "--offline", "--allow-env", "FOLDER=command:sh"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "PATH=")
	require.NotContains(t, got.stdout, "canary")
	require.NotContains(t, got.stdout, "agents:")
	require.NotContains(t, got.stdout, dir)
}

// A journal from elsewhere may name any program, so one that only the journal names does not run.
func TestCommandOfAStoredSpecDoesNotRun(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, processFiles("command: sh, args: [-c, exit 1]"))
	run := func(args ...string) outcome { return call{bare: true, dir: dir, args: args}.run(t) }
	require.Equal(t, 1, run("run", "--offline").status)
	require.NoError(t, os.Remove(filepath.Join(dir, "team.yaml")))
	got := run("resume")
	require.Equal(t, 3, got.status, "%+v", got)
	require.Contains(t, got.stderr, `its copy in the journal starts the program "sh": put the spec back`)
}

func TestVariablesOfCommandsNeedConsent(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, processFiles(`command: sh, args: [-c, 'echo "${TOKEN}"; echo $KEY | rev >/dev/null; echo $KEY'], env: {KEY: "${TOKEN}"}`))
	run := func(args ...string) outcome {
		return call{bare: true, dir: dir, env: map[string]string{"TOKEN": "canary-value"}, args: args}.run(t)
	}
	refused := run("check")
	require.Equal(t, 2, refused.status, "%+v", refused)
	require.Contains(t, refused.stderr, "TOKEN is not allowed to go to the program sh")
	require.Contains(t, refused.stderr, "--allow-env TOKEN=command:sh")
	require.NotContains(t, refused.stderr, "canary")

	allowed := run("run", "--offline", "--allow-env", "TOKEN=command:sh")
	require.Equal(t, exit.StatusOK, allowed.status, "%+v", allowed)
	require.Regexp(t, `^It is \$\{(TOKEN|KEY)\}\n\$\{(TOKEN|KEY)\}\.\n$`, allowed.stdout)
	require.Regexp(t, `TOKEN +to the program sh`, run("plan", "--allow-env", "TOKEN=command:sh").stdout)
}

func TestUnconfinedCommandsInThePlan(t *testing.T) {
	t.Parallel()
	requireConfinement(t)
	files := processFiles("command: sh, confine: false")
	dir := clitest.Folder(t, files)
	run := func(args ...string) outcome { return call{bare: true, dir: dir, args: args}.run(t) }

	plan := run("plan")
	require.Contains(t, plan.stdout, "counter at internal, can leave to the network")
	require.Contains(t, plan.stdout, "unconfined: agent counter reaches the network and every other unconfined command, as tool:machine")
	require.Equal(t, "unconfined", object(t, run("plan", "-o", "json").stdout)["agents"].([]any)[0].(map[string]any)["command"])

	for _, command := range []string{"run --offline", "plan", "check"} {
		strict := run(append(strings.Fields(command), "--strict-tools")...)
		require.Equal(t, 2, strict.status, "%+v", strict)
		require.Contains(t, strict.stderr, `team.yaml:5:52: agent "counter": its command is not confined`)
		require.Contains(t, strict.stderr, "remove confine: false")
	}
	dir = clitest.Folder(t, processFiles("command: sh"))
	plan = run("plan", "--strict-tools")
	require.Equal(t, exit.StatusOK, plan.status, "%+v", plan)
	require.Contains(t, plan.stdout, "counter at internal, stays in its workspace")
	require.NotContains(t, plan.stdout, "tool:machine")
}

func TestBackendsThatCannotWork(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ backend, key, want string }{
		{"command: sh", "    model: x", "model: not for a command, which calls no model"},
		{"command: sh", "    temperature: 0.5", "temperature: not for a command"},
		{"command: sh, input: file", "", `input: unknown word "file"`},
		{"command: sh, cwd: data", "", "backend.cwd: a confined command runs in its workspace"},
		{"args: [x]", "", "backend: command: it is missing"},
		{"command: sh, args: [5]", "", "args[0]: the number 5 where a text belongs"},
		{"command: no-such-program", "", `command "no-such-program": executable file not found in $PATH`},
		{"command: sh, input: argument", "    accepts: confidential", "the agent accepts confidential, and other users can read the arguments of a command"},
	} {
		dir := clitest.Folder(t, processFiles(tt.backend, tt.key))
		got := call{bare: true, dir: dir, args: []string{"check"}}.run(t)
		require.Equal(t, 2, got.status, "%s: %+v", tt.backend, got)
		require.Contains(t, got.stderr, tt.want)
	}
	files := processFiles("command: sh")
	files["team.yaml"] += "coordinator: {backend: {kind: process}}\n"
	got := call{bare: true, dir: clitest.Folder(t, files), args: []string{"check"}}.run(t)
	require.Contains(t, got.stderr, "backend: not supported: the coordinator is always a model")
}

// The summary on the screen shows an error as the events do; the result has what the caller may read.
func TestErrorOfACommandIsRedactedOnTheScreen(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, processFiles(`command: sh, args: [-c, "echo cannot reach 192.0.2.7 >&2; exit 3"]`))
	got := call{bare: true, dir: dir, args: []string{"run", "--offline", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	const shown = "the command exited with status 3; stderr: cannot reach [REDACTED:ip]\n"
	require.Contains(t, got.stderr, "failed    Count (counter): "+shown)
	require.Contains(t, got.stderr, "failed:  Count (counter): "+shown)
	require.NotContains(t, got.stderr, "192.0.2.7")
	require.Contains(t, got.stdout, "cannot reach 192.0.2.7")
}

// An error about an answer says what is wrong with it, and does not quote it.
func TestCommandWhoseAnswerDoesNotMatchItsSchema(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, processFiles(`command: sh, args: [-c, "echo '{\"total\": \"CANARY\"}'"]`, "    outputSchema: {type: object, properties: {total: {type: number}}}"))
	got := call{bare: true, dir: dir, args: []string{"run", "--offline"}}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Contains(t, got.stderr, `it does not match the schema: /total: found a string; expected type "number"`)
	require.NotContains(t, got.stderr, "CANARY")
}
