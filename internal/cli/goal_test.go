package cli

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// roster is a team file without tasks.
const roster = `
name: duo
model: test-model
agents:
  - {name: finder, systemPrompt: You find facts.}
  - {name: writer, systemPrompt: You write.}
`

// twoTasks is a plan as a coordinator answers it.
const twoTasks = `[{"title": "Find", "description": "Find the facts.", "assignee": "finder"},
 {"title": "Write", "description": "Write them down.", "assignee": "writer", "dependsOn": ["Find"]}]`

// goalScript answers the coordinator and the agents of the team.
const goalScript = `replies:
  - {coordinator: plan, text: '` + twoTasks + `'}
  - {task: Find, text: 'fact 4711'}
  - {task: Write, text: 'written: {{dependency "Find"}}'}
  - {coordinator: synthesis, text: 'The answer is {{.Last | match "written: (fact [0-9]+)"}}.'}
`

// goalFolder returns a folder with the roster and a script.
func goalFolder(t *testing.T, script string) string {
	t.Helper()
	return clitest.Folder(t, map[string]string{"team.yaml": roster, "script.yaml": script})
}

func TestInvalidGoals(t *testing.T) {
	t.Parallel()
	server := serveModel(t, func(w http.ResponseWriter, _ *http.Request, _ int) { reply(w, "no") })
	dir := goalFolder(t, goalScript)
	tests := []struct {
		name, args, stdin, want string
	}{
		{"1 MiB", "--goal -", strings.Repeat("x", 1<<20), "the goal has 1048576 bytes, at most 262144"},
		{"17 MiB", "--goal -", strings.Repeat("x", 17<<20), "more than 16 MiB"},
		{"not UTF-8", "--goal -", "a\xffb", "UTF-8"},
	}
	for _, tt := range tests {
		for _, command := range []string{"run", "plan"} {
			t.Run(command+" "+tt.name, func(t *testing.T) {
				t.Parallel()
				got := call{dir: dir, args: append([]string{command}, strings.FieldsFunc(tt.args, func(r rune) bool { return r == ' ' })...), stdin: tt.stdin, env: server.env()}.run(t)
				require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
				require.Empty(t, got.stdout)
				require.Contains(t, got.stderr, tt.want)
			})
		}
	}
	t.Cleanup(func() { require.Zero(t, server.calls.Load(), "no model was called") })
}

func TestSignalsInEachPhaseOfAGoal(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("signals are sent on Unix only")
	}
	tests := []struct {
		name   string
		stuck  string // a piece of the prompt that is never answered
		stdout string
		want   string
	}{
		{"plan", "# Goal", "", "no task was run"},
		{"tasks", "# Task: Write", "# Find\n\na fact\n", "1 of 2 tasks completed, 1 cancelled"},
		{"synthesis", "# Original Goal", "# Write\n\na fact\n", "2 of 2 tasks completed, no answer in "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			reached := make(chan struct{}, 1)
			server := serveModel(t, func(w http.ResponseWriter, r *http.Request, n int) {
				body, _ := io.ReadAll(r.Body)
				switch {
				case bytes.Contains(body, []byte(tt.stuck)):
					reached <- struct{}{}
					<-r.Context().Done()
				case n == 1:
					reply(w, twoTasks)
				default:
					reply(w, "a fact")
				}
			})
			record := filepath.Join(t.TempDir(), "record.yaml")
			cmd := call{dir: goalFolder(t, ""), args: []string{"run", "--goal", "Say.", "--record", record}, env: server.env()}.command(t)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			require.NoError(t, cmd.Start())
			<-reached
			require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
			require.Equal(t, exit.StatusSIGINT, statusAfter(t, cmd.Wait()), "%s", stderr.String())
			require.Equal(t, tt.stdout, stdout.String())
			require.Contains(t, stderr.String(), tt.want)
			require.Contains(t, stderr.String(), "interrupted: ending running tasks")
			require.NotContains(t, stderr.String(), "canceled", "only \"interrupted\" is used")
			require.NotContains(t, stderr.String(), "failed:  ")
			if tt.name == "plan" {
				require.NoFileExists(t, record)
				require.Contains(t, stderr.String(), "nothing was answered, so nothing was recorded\n")
				return
			}
			require.Contains(t, stderr.String(), "recorded: ")
			text, err := os.ReadFile(record)
			require.NoError(t, err, "answers are recorded")
			require.Contains(t, string(text), "Write them down")
			require.NotContains(t, stderr.String(), "to replay it", "the recording is incomplete")
		})
	}
}

func TestSignalWhileAPlanIsMade(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("signals are sent on Unix only")
	}
	reached := make(chan struct{}, 1)
	server := serveModel(t, func(_ http.ResponseWriter, r *http.Request, _ int) {
		reached <- struct{}{}
		<-r.Context().Done()
	})
	dir := goalFolder(t, "")
	cmd := call{dir: dir, args: []string{"plan", "--goal", "Say.", "--save", "plan.yaml"}, env: server.env()}.command(t)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Start())
	<-reached
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, exit.StatusSIGTERM, statusAfter(t, cmd.Wait()), "%s", stderr.String())
	require.Empty(t, stdout.String())
	require.Contains(t, stderr.String(), "terminated: there is no plan")
	require.NoFileExists(t, filepath.Join(dir, "plan.yaml"))
}

// Text above the caller's clearance is above the coordinator's too, and is in no output.
//
// Requirement: G47.
func TestSecretsOfAGoalAreWithheld(t *testing.T) {
	t.Parallel()
	spec := strings.Replace(secretive, "tasks:", "goal: Sum it up.\ntasks:", 1)
	dir := clitest.Folder(t, map[string]string{"team.yaml": spec, "script.yaml": "replies: [{task: Closed, text: 'canary-4711'}, {task: Open, text: open}, {coordinator: synthesis, text: '{{.Last}}'}]"})
	for _, form := range []string{"text", "json"} {
		got := call{dir: dir, args: []string{"run", "--offline", "--script", "script.yaml", "-o", form, "--log-level", "debug"}}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Contains(t, got.stdout, "[withheld: clearance; status completed]")
		require.NotContains(t, got.stdout+got.stderr, "canary-4711")
		require.Contains(t, got.stderr, "  all of it  ")
	}
}
