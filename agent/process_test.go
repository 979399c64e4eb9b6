//go:build unix

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// shell returns an agent that runs a script, unconfined.
func shell(script string, more ...func(*agent.Process)) *agent.Process {
	a := &agent.Process{Command: "sh", Args: []string{"-c", script}, Confine: new(false)}
	for _, set := range more {
		set(a)
	}
	return a
}

// confined returns an agent that runs a script, confined.
func confined(t testing.TB, script string) *agent.Process {
	t.Helper()
	a := &agent.Process{Command: "sh", Args: []string{"-c", script}}
	if a.Unconfined() {
		t.Skip("this system cannot confine commands")
	}
	return a
}

func TestAnswerOfAProcess(t *testing.T) {
	t.Parallel()
	env := func(a *agent.Process) { a.Env = map[string]string{"TOKEN": "canary-value", "MODE": "on"} }
	for name, tt := range map[string]struct {
		agent  *agent.Process
		schema string
		want   string
	}{
		"input":              {shell("cat"), "", "You are terse.\n\n# Task: Score it\n\nFrom 0 to 10."},
		"argument":           {shell(`printf %s "$0"`, func(a *agent.Process) { a.Input = agent.InputArgument }), "", "You are terse.\n\n# Task: Score it\n\nFrom 0 to 10."},
		"none":               {shell("cat; echo done", func(a *agent.Process) { a.Input = agent.InputNone }), "", "done"},
		"whitespace":         {shell(`printf '\n\n a b \n\n'`), "", "a b"},
		"input left unread":  {shell("echo done"), "", "done"},
		"invalid UTF-8":      {shell(`printf 'a\377b'`), "", "a\uFFFDb"},
		"environment":        {shell(`echo $MODE; env | grep -c . >/dev/null && echo ${HOME:+home}`, env), "", "on\nhome"},
		"secret":             {shell(`echo key $TOKEN`, env), "", "key ${TOKEN}"},
		"structured":         {shell(`echo 'The score:'; echo '{"score": 7}'`), scoreSchema, `{"score": 7}`},
		"secret with escape": {shell(`echo '{"score": 7, "why": "\u0063anary-value"}'`, env), `{"type":"object"}`, `{"score":7,"why":"${TOKEN}"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reply, err := tt.agent.Run(t.Context(), promptOf(t, "You are terse.", tt.schema))
			require.NoError(t, err)
			require.Equal(t, tt.want, reply.Text)
			require.NotContains(t, reply.JSON.Canonical(), "canary")
		})
	}
}

func TestProcessGetsNoVariableThatItWasNotGiven(t *testing.T) {
	t.Setenv("RUNTEAM_TEST_KEY", "canary-value")
	reply, err := shell("env").Run(t.Context(), promptOf(t, "", ""))
	require.NoError(t, err)
	require.NotContains(t, reply.Text, "canary")
}

func TestProcessThatFails(t *testing.T) {
	t.Parallel()
	small := func(a *agent.Process) { a.MaxOutput = 1000 }
	soon := func(a *agent.Process) { a.Timeout = 100 * time.Millisecond }
	again := func(a *agent.Process) { a.Repeatable = true }
	secret := func(a *agent.Process) { a.Env = map[string]string{"TOKEN": "canary-value"} }
	for name, tt := range map[string]struct {
		agent  *agent.Process
		schema string
		code   string
		want   string
	}{
		"status":         {shell("echo one >&2; echo two >&2; exit 3"), "", "", "the command exited with status 3; stderr: one two"},
		"long error":     {shell("head -c 100000 /dev/zero | tr '\\0' x >&2; echo end >&2; exit 1"), "", "", "xxxend"},
		"secret":         {shell("echo $TOKEN >&2; exit 1", secret), "", "", "stderr: ${TOKEN}"},
		"signal":         {shell("kill -9 $$"), "", "", "a signal ended the command"},
		"flood":          {shell("yes | head -c 100000000", small), "", "ANSWER_TRUNCATED", "wrote more than 1000 bytes"},
		"time":           {shell("sleep 60", soon), "", "EFFECTS_UNCERTAIN", "more than 100ms"},
		"repeatable":     {shell("sleep 60", soon, again), "", "TIMEOUT", "more than 100ms"},
		"schema":         {shell("echo 1"), scoreSchema, "OUTPUT_SCHEMA_INVALID", ""},
		"ignores TERM":   {shell("trap '' TERM; while :; do sleep 0.05; done", soon, again), "", "TIMEOUT", ""},
		"children":       {shell("(trap '' TERM; while :; do sleep 0.05; done) & wait", soon, again), "", "TIMEOUT", ""},
		"flood on error": {shell("yes | head -c 10000000 >&2; exit 1"), "", "", "exited with status 1; stderr: y y"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reply, err := tt.agent.Run(t.Context(), promptOf(t, "", tt.schema))
			require.ErrorContains(t, err, tt.want)
			if tt.code != "" {
				require.ErrorIs(t, err, agent.Condition(tt.code))
			}
			require.NotContains(t, err.Error(), "canary")
			require.Equal(t, name == "flood", reply.Truncated)
		})
	}
}

func TestConfinedProcess(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(outside, []byte("canary"), 0o600))
	for name, script := range map[string]string{
		"file":        "cat " + outside + " 2>&1",
		"own folder":  "cat " + filepath.Join(must(os.Getwd()), "process_test.go"),
		"environment": "cat /proc/self/environ",
		"home":        "ls /root /home",
		"network":     "bash -c 'exec 3<>/dev/tcp/127.0.0.1/80'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reply, err := confined(t, script).Run(t.Context(), promptOf(t, "", ""))
			require.ErrorContains(t, err, "exited with status")
			require.NotContains(t, reply.Text+err.Error(), "canary")
		})
	}
	reply, err := confined(t, `cd && pwd && echo text > file && cat file && echo $TMPDIR`).Run(t.Context(), promptOf(t, "", ""))
	require.NoError(t, err)
	lines := strings.Split(reply.Text, "\n")
	require.Equal(t, lines[0], lines[2])
	require.Equal(t, "text", lines[1])
	require.NoDirExists(t, lines[0])

	a := confined(t, "while :; do echo flood; done")
	a.MaxOutput = 10
	reply, err = a.Run(t.Context(), promptOf(t, "", ""))
	require.ErrorIs(t, err, agent.Condition("ANSWER_TRUNCATED"))
	require.Equal(t, "flood\nfloo", reply.Text)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A program in a folder of its own can be confined: it may read itself, and nothing beside it.
func TestConfinedProgramOutsideTheSystemsFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "count.sh")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nwc -w\ncat "+filepath.Join(dir, "other")+" 2>/dev/null\nexit 0\n"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other"), []byte("canary"), 0o600))
	a := confined(t, "")
	a.Command, a.Args = program, nil
	reply, err := a.Run(t.Context(), promptOf(t, "", ""))
	require.NoError(t, err)
	require.Equal(t, "8", reply.Text)
}

func TestPromptAsAnArgument(t *testing.T) {
	t.Parallel()
	k, err := gate.Negotiate(gate.Request{Session: "s", Task: "t", Classification: label.Confidential}, &gate.Capabilities{Agent: "writer", Accepts: label.Confidential, Produces: label.Confidential})
	require.NoError(t, err)
	p, _, err := prompt.Build(brief.Brief{Contract: k, Task: &task.Task{ID: "t", Spec: task.Spec{Title: "Score it", Description: "From 0 to 10."}}})
	require.NoError(t, err)
	argument := func(a *agent.Process) { a.Input = agent.InputArgument }
	_, err = shell("echo ran", argument).Run(t.Context(), p)
	require.ErrorContains(t, err, "the prompt is confidential, and other users can read the arguments of a command; set input to stdin")
	reply, err := shell("echo ran").Run(t.Context(), p)
	require.NoError(t, err)
	require.Equal(t, "ran", reply.Text)

	_, err = shell("echo ran", argument).Run(t.Context(), promptOf(t, strings.Repeat("x", 200_000), ""))
	require.ErrorContains(t, err, "cannot be an argument")
}

func TestProcessThatCannotRun(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]*agent.Process{
		"the command is empty":                                                                     {},
		`"no-such-program": executable file not`:                                                   {Command: "no-such-program"},
		`"./no/such": no such file or directory; correct the path`:                                 {Command: "./no/such"},
		`"sh -c": executable file not found in $PATH; write what follows the program as arguments`: {Command: "sh -c"},
		`"./process.go": permission denied; make it executable`:                                    {Command: "./process.go"},
		`command "${KEY}"`:                          {Command: "no-such-program", Secrets: map[string]string{"KEY": "no-such-program"}},
		`unknown input "file"; use stdin, argument`: {Command: "sh", Input: "file"},
		"must not be negative":                      {Command: "sh", Timeout: -1},
		`the environment variable "A=B" is invalid`: {Command: "sh", Env: map[string]string{"A=B": ""}},
	} {
		require.ErrorContains(t, a.Check(), want)
		_, err := a.Run(t.Context(), promptOf(t, "", ""))
		require.ErrorContains(t, err, want)
	}
	var none *agent.Process
	require.Error(t, none.Check())
	a := confined(t, "")
	a.Dir = t.TempDir()
	require.ErrorContains(t, a.Check(), "a confined command runs in its workspace")
}

func TestProcessEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for _, a := range []*agent.Process{shell("sleep 60"), {Command: "sleep", Args: []string{"60"}}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(50*time.Millisecond, func() { cancel(errors.New("enough")) })
		began := time.Now()
		_, err := a.Run(ctx, promptOf(t, "", ""))
		require.EqualError(t, err, "enough")
		require.Less(t, time.Since(began), 30*time.Second)
	}
}

func TestVersionOfAProcess(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "program")
	write := func(text string) string {
		require.NoError(t, os.WriteFile(program, []byte(text), 0o700))
		return (&agent.Process{Command: program}).Version()
	}
	first := write("#!/bin/sh\necho 1\n")
	require.NotEqual(t, first, write("#!/bin/sh\necho 2\n"))
	require.Equal(t, first, write("#!/bin/sh\necho 1\n"))

	of := func(set func(*agent.Process)) string { return shell("true", set).Version() }
	same := of(func(*agent.Process) {})
	require.Equal(t, same, of(func(a *agent.Process) { a.Input = agent.InputStdin }))
	require.Equal(t, of(func(a *agent.Process) { a.Env = map[string]string{"A": "1"} }), of(func(a *agent.Process) { a.Env = map[string]string{"A": "2"} }))
	for _, set := range []func(*agent.Process){
		func(a *agent.Process) { a.Args = append(a.Args, "x") },
		func(a *agent.Process) { a.Input = agent.InputNone },
		func(a *agent.Process) { a.Env = map[string]string{"A": "1"} },
	} {
		require.NotEqual(t, same, of(set))
	}
}

func TestProcessIsPrintedWithoutSecrets(t *testing.T) {
	t.Parallel()
	a := &agent.Process{Command: "/bin/canary-value", Args: []string{"canary-value"}, Env: map[string]string{"KEY": "canary-value"}}
	for _, form := range []string{"%v", "%+v", "%#v", "%s"} {
		require.Equal(t, `command "/bin/${KEY}"`, fmt.Sprintf(form, a))
	}
}
