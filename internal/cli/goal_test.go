package cli

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/console"
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

func TestGoalIsPlannedRunAndAnswered(t *testing.T) {
	t.Parallel()
	dir := goalFolder(t, goalScript)
	args := []string{"run", "--offline", "--script", "script.yaml", "--goal"}
	got := call{dir: dir, args: append(args, "Say what is so.")}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, "The answer is fact 4711.\n", got.stdout)
	require.Equal(t, `start     plan (coordinator)
completed plan (coordinator)
planned   2 tasks
          Find (finder)
          Write (writer) after Find
start     Find (finder)
completed Find (finder)
start     Write (writer)
completed Write (writer)
start     synthesis (coordinator)
completed synthesis (coordinator)
2 of 2 tasks completed

Nothing was withheld from the agents.
Sent 8.0 KB of context; sharing everything would have sent 8.0 KB.

Run ID is saved in .runteam. Next:
  # What was in this prompt, and where did each byte come from?
  runteam explain Write
  # See each task and its result:
  runteam show ID
`, regexp.MustCompile(`\b[0-9a-f]{8}\b`).ReplaceAllString(withoutTimes(got.stderr), "ID"))

	got = call{dir: dir, args: append(args, "-"), stdin: "Say what is so.\n"}.run(t)
	require.Equal(t, "The answer is fact 4711.\n", got.stdout, "%+v", got)

	got = call{dir: dir, args: append(args, "Say what is so.", "-o", "json")}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	result := object(t, got.stdout)
	require.Equal(t, "run", result["command"])
	require.Equal(t, "Say what is so.", result["goal"])
	require.Equal(t, "The answer is fact 4711.", result["output"])
	require.Len(t, result["tasks"], 2)
}

// withoutTimes removes the times and tokens from plain progress.
func withoutTimes(text string) string {
	text = regexp.MustCompile(`(?m)^( *\d\.\d+s|       )  (\x20{10})?`).ReplaceAllString(text, "$2")
	text = regexp.MustCompile(`(?m) in \d\.\ds([,;] .* tokens in, .* out)?( \(scripted\))?$`).ReplaceAllString(text, "")
	return strings.ReplaceAll(text, "runteam: ", "")
}

// The files and flags of the original, which always print JSON.
func TestGoalInTheFormOfTheOriginal(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"team.json":   `{"name":"duo","agents":[{"name":"finder","model":"m"},{"name":"writer","model":"m"}],"sharedMemory":true}`,
		"orch.json":   `{"maxConcurrency":1,"defaultModel":"m"}`,
		"coord.json":  `{"instructions":"Plan few tasks."}`,
		"script.yaml": goalScript,
	})
	got := call{dir: dir, args: strings.Fields("run --team team.json --orchestrator orch.json --coordinator coord.json --offline --script script.yaml --pretty --goal Know"), env: map[string]string{console.EnvOutput: "text"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	result := object(t, got.stdout)
	require.Equal(t, "run", result["command"])
	require.Equal(t, "duo", result["name"])
	require.Equal(t, "The answer is fact 4711.", result["output"])
	require.Contains(t, got.stdout, "\n  \"command\"")

	got = call{dir: dir, args: []string{"run", "--team", "team.json"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	fault := object(t, got.stdout)["error"].(map[string]any)
	require.Equal(t, "usage", fault["kind"])
	require.Contains(t, fault["message"], "--goal is missing")
	require.Contains(t, fault["message"], "runteam task --file F --team F")
	got = call{dir: dir, args: []string{"run", "--team", "team.json", "--goal", "x", "-o", "text"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Contains(t, got.stdout, "runteam run --team always prints JSON")
}

func TestInvalidGoals(t *testing.T) {
	t.Parallel()
	server := serveModel(t, func(w http.ResponseWriter, _ *http.Request, _ int) { reply(w, "no") })
	dir := goalFolder(t, goalScript)
	tests := []struct {
		name, args, stdin, want string
	}{
		{"empty", "--goal=", "", "--goal is empty"},
		{"blank", "--goal=\u00a0", "", "--goal is empty"},
		{"empty standard input", "--goal -", "\n\n", "--goal - is empty"},
		{"1 MiB", "--goal -", strings.Repeat("x", 1<<20), "the goal has 1048576 bytes, at most 262144"},
		{"17 MiB", "--goal -", strings.Repeat("x", 17<<20), "more than 16 MiB"},
		{"not UTF-8", "--goal -", "a\xffb", "UTF-8"},
		{"two readers of standard input", "- --goal -", roster, "standard input can be read only once: leave it to one of SPEC and --goal"},
		{"none", "", "", "it has neither tasks nor a goal, so there is nothing to"},
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

func TestPlansThatCannotBeRun(t *testing.T) {
	t.Parallel()
	dir := goalFolder(t, "replies:\n  - {coordinator: plan, text: 'I would rather not.'}\n  - {coordinator: repair, text: '[{\"title\": \"A\", \"description\": \"b\", \"assignee\": \"nobody\"}]'}\n")
	got := call{dir: dir, args: []string{"run", "--offline", "--script", "script.yaml", "--goal", "Say."}}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Empty(t, got.stdout)
	require.Contains(t, got.stderr, "completed repair (coordinator)")
	require.Contains(t, got.stderr, "no task was run in ")
	require.Contains(t, got.stderr, "failed:  repair (coordinator): ")
	require.Contains(t, got.stderr, "nobody")
	require.Contains(t, got.stderr, "nothing was run: say more in the goal")
	got = call{dir: dir, args: []string{"run", "--offline", "--script", "script.yaml", "--goal", "Say.", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	errs := object(t, got.stdout)["errors"].([]any)
	require.Len(t, errs, 1)
	require.Equal(t, "COORDINATOR_PLAN_INVALID", errs[0].(map[string]any)["code"])

	got = call{dir: dir, args: []string{"plan", "--offline", "--script", "script.yaml", "--goal", "Say.", "--save", "plan.yaml"}}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Empty(t, got.stdout)
	require.Contains(t, got.stderr, "nobody")
	require.Contains(t, got.stderr, "nothing was run: say more in the goal")
	require.NoFileExists(t, filepath.Join(dir, "plan.yaml"))
	got = call{dir: dir, args: []string{"plan", "--offline", "--script", "script.yaml", "--goal", "Say.", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Equal(t, "runtime", object(t, got.stdout)["error"].(map[string]any)["kind"])
}

// Results are printed even if the coordinator could not answer.
func TestSynthesisThatFailsLeavesTheResults(t *testing.T) {
	t.Parallel()
	dir := goalFolder(t, strings.Replace(goalScript, "text: 'The answer", "status: 400, body: 'The answer", 1))
	got := call{dir: dir, args: []string{"run", "--offline", "--script", "script.yaml", "--goal", "Say."}}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Equal(t, "# Write\n\nwritten: fact 4711\n", got.stdout)
	require.Contains(t, got.stderr, "2 of 2 tasks completed, no answer in ")
	require.Contains(t, got.stderr, "failed:  synthesis (coordinator): ")
	require.Contains(t, got.stderr, "the tasks ran, and their results are printed")
}

// The same for a spec with tasks and a goal.
func TestSynthesisOfGivenTasksThatFailsLeavesTheResults(t *testing.T) {
	t.Parallel()
	dir := goalFolder(t, strings.Replace(goalScript, "text: 'The answer", "status: 400, body: 'The answer", 1))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "team.yaml"), []byte(roster+`goal: Say.
tasks:
  - {title: Find, assignee: finder, description: Find.}
  - {title: Write, assignee: writer, dependsOn: [Find], description: Write.}
  - {title: Other, assignee: writer, description: Write more.}
`), 0o600))
	got := call{dir: dir, args: []string{"run", "--offline", "--script", "script.yaml"}}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Contains(t, got.stdout, "# Write\n\nwritten: fact 4711\n\n# Other\n\nOFFLINE")
	require.NotContains(t, got.stdout, "# Find", "what was used")
	require.Contains(t, got.stderr, "3 of 3 tasks completed, no answer in ")
	require.Contains(t, got.stderr, "the tasks ran, and their results are printed")
}

// The coordinator answers from the completed results; the run still fails.
func TestSynthesisOfATeamThatFailed(t *testing.T) {
	t.Parallel()
	dir := goalFolder(t, strings.Replace(goalScript, "{task: Write, text: 'written: {{dependency \"Find\"}}'}", "{task: Write, status: 400}", 1))
	got := call{dir: dir, args: []string{"run", "--offline", "--script", "script.yaml", "--goal", "Say."}}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Equal(t, "The answer is (not in the prompt).\n", got.stdout)
	require.Contains(t, got.stderr, "failed:  Write (writer): ")
}

func TestEndpointsOfACoordinatorThatFail(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		handle func(w http.ResponseWriter, r *http.Request, n int)
		status int
		want   []string
	}{
		{"a refused key", func(w http.ResponseWriter, _ *http.Request, _ int) { refuseWith(w, 401, "invalid_api_key", "bad key") }, exit.StatusFailed, []string{"requires a key, and none was sent (401)", "OPENAI_API_KEY", "there is no plan, so nothing was run"}},
		{"an unknown model", func(w http.ResponseWriter, _ *http.Request, _ int) {
			refuseWith(w, 404, "model_not_found", "no such model")
		}, exit.StatusNoRun, []string{`model "test-model"`, "--model"}},
		{"too many calls", func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Retry-After", "600")
			refuseWith(w, 429, "", "slow down")
		}, exit.StatusFailed, []string{"retry after 10m0s", "there is no plan, so nothing was run: wait and run again"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := serveModel(t, tt.handle)
			for _, command := range []string{"run", "plan"} {
				got := call{dir: goalFolder(t, ""), args: []string{command, "--goal", "Say."}, env: server.env()}.run(t)
				require.Equal(t, tt.status, got.status, "%+v", got)
				require.Empty(t, got.stdout)
				for _, want := range tt.want {
					require.Contains(t, got.stderr, want, command)
				}
			}
		})
	}
	for _, command := range []string{"run", "plan"} {
		got := call{dir: goalFolder(t, ""), args: []string{command, "--goal", "Say."}}.run(t)
		require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
		require.Contains(t, got.stderr, "OPENAI_API_KEY")
	}
	down := serveModel(t, nil)
	down.Close()
	got := call{dir: goalFolder(t, ""), args: []string{"plan", "--goal", "Say."}, env: down.env()}.run(t)
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Contains(t, got.stderr, "connection refused")
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

func TestBudgetOfAGoal(t *testing.T) {
	t.Parallel()
	dir := goalFolder(t, goalScript)
	args := []string{"run", "--offline", "--script", "script.yaml", "--goal", "Say.", "--max-token-budget"}
	got := call{dir: dir, args: append(args, "1000000")}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	got = call{dir: dir, args: append(args, "10")}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "the error does not name an endpoint: %+v", got)
	require.Regexp(t, `(?m)^ +0\.\ds  budget    plan \(coordinator\): token budget exceeded: `, got.stderr)
	require.Contains(t, got.stderr, "raise --max-token-budget")
	got = call{dir: dir, args: append(args, "10", "-o", "json")}.run(t)
	require.Equal(t, "budget_exhausted", object(t, got.stdout)["status"])
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
