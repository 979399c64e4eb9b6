package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// A run that works is steered by other processes, and its journal says who did.
func TestARunIsSteered(t *testing.T) {
	t.Parallel()
	server, dir := startCounting(t, "Second"), relayFolder(t)
	running := server.startBlocked(t, call{dir: dir, args: []string{"run", "--progress", "none"}, env: server.env()})
	send := func(args ...string) outcome { return call{dir: dir, args: args, stdin: "call her Ann"}.run(t) }
	runs := send("runs", "-o", "json").stdout
	_, id, _ := strings.Cut(runs, `"runId":"`)
	id = id[:8]

	got := send("pause", id, "--by", "ann", "--reason", "lunch")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, "run "+id+": paused by ann: lunch\nto continue: runteam resume "+id+"\n", got.stdout)
	require.Regexp(t, `(?m)^`+id[:1]+`\S* +relay +paused .* runteam resume `+id[:1]+`\S*$`, send("runs").stdout)
	require.Regexp(t, `^relay: run \S+: paused\nstarted \S+ \S+, took .* works on it\n`, send("show").stdout)
	require.Contains(t, send("show").stdout, "to resume: runteam resume "+id[:1])
	got = send("pause", id)
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Contains(t, got.stderr, "the run refuses the command: it is paused already, by ann")
	got = send("message", id, "solo", "--by", "bob", "--file", "-", "-o", "json")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	sent := object(t, got.stdout)
	require.Equal(t, []any{"message", "solo", "bob"}, []any{sent["command"], sent["agent"], sent["by"]})
	require.True(t, strings.HasPrefix(sent["runId"].(string), id))
	got = send("resume", "--by", "ann")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, "run "+id+": continued by ann\n", got.stdout)
	require.Regexp(t, `^relay: run \S+: running\n`, send("show").stdout)
	got = send("cancel", id, "Second", "--by", "ann", "-o", "json")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	j := stored(t, dir)
	require.Eventually(t, func() bool {
		found, err := j.Find(t.Context(), id)
		return err == nil && found.Holder == nil
	}, 20*time.Second, 20*time.Millisecond)
	_ = running.Wait() // startBlocked waits for it too

	got = send("show")
	require.Regexp(t, `(?m)^\S+ \S+ paused by ann: lunch
\S+ \S+ bob sent a message to solo
\S+ \S+ continued by ann
\S+ \S+ ann cancelled Second$`, got.stdout)
	require.NotContains(t, got.stdout, "call her Ann", "its text is a message")
	commands := object(t, send("show", "-o", "json").stdout)["commands"].([]any)
	require.Len(t, commands, 4)
	require.Equal(t, "lunch", commands[0].(map[string]any)["reason"])
	require.Equal(t, "Second", commands[3].(map[string]any)["title"])
	got = send("interrupt", id, "Second", "hurry")
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Contains(t, got.stderr, "run "+id+" is not running (error); to continue: runteam resume "+id)
	got = call{dir: dir, args: []string{"resume", "--reason", "why"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Contains(t, got.stderr, "no process works on run "+id)
}

// A run stays paused if its process is killed meanwhile, until it is resumed.
func TestAPausedRunOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	server, dir := startCounting(t, "Second"), relayFolder(t)
	running := server.startBlocked(t, call{dir: dir, args: []string{"run", "--progress", "none"}, env: server.env()})
	send := func(args ...string) outcome { return call{dir: dir, args: args, env: server.env()}.run(t) }
	_, id, _ := strings.Cut(send("runs", "-o", "json").stdout, `"runId":"`)
	id = id[:8]
	require.Equal(t, exit.StatusOK, send("pause", id).status)
	require.Contains(t, send("resume", id, "--offline").stderr, "run "+id+" is paused; to continue it: runteam resume "+id+", without other flags\n")
	require.NoError(t, running.Process.Kill())
	_ = running.Wait() // startBlocked waits for it too
	require.Regexp(t, `(?m)^\S+ +relay +paused +\S+ \S+ +- +2 of 4 completed.* runteam resume \S+$`, send("runs").stdout)
	require.Regexp(t, `^relay: run \S+: paused\nstarted \S+ \S+, not ended\n`, send("show").stdout)
	got := send("pause", id)
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Regexp(t, `is not running \(paused\); to continue: runteam resume \S+\n`, got.stderr)
	server.unblock()
	got = send("resume")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Regexp(t, `^relay: run \S+: ok\n`, send("show").stdout, "a new process begins without the pause")
}

// What is wrong with a command to a run is said before the run gets it.
func TestCommandsToARunThatAreRefused(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": "agents: [{name: a}]\ntasks: [{title: Read, assignee: a, description: d}]\n", "blank.md": " \n"})
	require.Equal(t, exit.StatusOK, call{dir: dir, args: []string{"run", "--offline"}}.run(t).status)
	for _, tt := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"pause"}, exit.StatusUsage, "runteam pause needs a RUN: write runteam pause RUN\n"},
		{[]string{"pause", "x", "y"}, exit.StatusUsage, "takes a RUN (quote a text of several words), not 2: x y"},
		{[]string{"cancel", ""}, exit.StatusUsage, "an argument of runteam cancel is empty: it takes a RUN and a TASK"},
		{[]string{"rerun", "x"}, exit.StatusUsage, "runteam rerun needs a RUN and a TASK: write runteam rerun RUN TASK\n"},
		{[]string{"message", "x", "a"}, exit.StatusUsage, "runteam message needs a RUN, an AGENT and a TEXT, or --file: write runteam message RUN AGENT TEXT"},
		{[]string{"message", "x", "a", " "}, exit.StatusUsage, "TEXT is empty: write what the agent is to know"},
		{[]string{"message", "x", "a", "--file", filepath.Join(dir, "blank.md")}, exit.StatusUsage, "blank.md: it has no text"},
		{[]string{"interrupt", "x", "Read", "hello", "--file", "-"}, exit.StatusUsage, "TEXT and --file contradict each other"},
		{[]string{"interrupt", "x", "Read", "--classification", "secret"}, exit.StatusUsage, "--classification is the label of a text"},
		{[]string{"message", "x", "a", "hello", "--classification", "top"}, exit.StatusUsage, `unknown label "top": write one of public, internal, confidential, secret`},
		{[]string{"message", "x", "a", "--file", "none.md"}, exit.StatusUsage, "--file none.md: no such file or directory"},
		{[]string{"interrupt", "Read", "hello"}, exit.StatusUsage, `no run "Read": it is a task of the newest run, and the RUN comes first: write `},
		{[]string{"policy", filepath.Join(dir, "team.yaml")}, exit.StatusUsage, "team.yaml is a file, and the RUN comes first"},
		{[]string{"pause", "f00d"}, exit.StatusUsage, `unknown run "f00d"`},
	} {
		got := call{dir: dir, args: tt.args}.run(t)
		require.Equal(t, tt.status, got.status, "%v: %+v", tt.args, got)
		require.Contains(t, got.stderr, tt.want, "%v", tt.args)
	}
	_, id, _ := strings.Cut(call{dir: dir, args: []string{"runs", "-o", "json"}}.run(t).stdout, `"runId":"`)
	got := call{dir: dir, args: []string{"pause", id[:8]}}.run(t)
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Contains(t, got.stderr, "run "+id[:8]+" is not running (ok); to run a task again: runteam resume "+id[:8]+" --fresh TASK\n")
}
