package cli

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

func TestPlanOfAGoal(t *testing.T) {
	t.Parallel()
	dir := goalFolder(t, goalScript)
	args := strings.Fields("plan --offline --script script.yaml --goal Know")
	got := call{dir: dir, args: args}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	clitest.RequireGolden(t, "testdata/goal.golden", got.stdout)
	require.Regexp(t, `^runteam: asking the coordinator \(offline\) for a plan: one model call, and one more if the first plan cannot be run
runteam: planned 2 tasks in \d\.\ds; [\d,]+ tokens in, [\d,]+ out
$`, got.stderr)

	plan := object(t, call{dir: dir, args: append(args, "-o", "json")}.run(t).stdout)
	require.Equal(t, true, plan["goal"])
	require.Equal(t, "Know", plan["goalText"])
	require.Len(t, plan["tasks"], 2)
	require.Contains(t, plan["coordinator"], "accepts")
	for _, form := range []string{"dot", "mermaid"} {
		clitest.RequireGolden(t, "testdata/goal."+form+".golden", call{dir: dir, args: append(args, "-o", form)}.run(t).stdout)
	}
}

func TestPlanOfAGoalCallsOnlyTheCoordinator(t *testing.T) {
	t.Parallel()
	server := serveModel(t, func(w http.ResponseWriter, _ *http.Request, _ int) { reply(w, twoTasks) })
	dir := goalFolder(t, "")
	got := call{dir: dir, args: []string{"plan", "--goal", "Know."}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stderr, "asking the coordinator (test-model at "+server.URL+"/v1) for a plan")
	require.EqualValues(t, 1, server.calls.Load())

	spec := clitest.Folder(t, map[string]string{"team.yaml": roster + "goal: Know.\ncoordinator: {model: planner}\n"})
	got = call{dir: spec, args: []string{"plan"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "the goal of a spec is planned too: %+v", got)
	require.Contains(t, got.stderr, "asking the coordinator (planner at ")
	require.EqualValues(t, 2, server.calls.Load())

	got = call{dir: spec, args: []string{"check"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, "team.yaml: ok: a goal, 2 agents, 0 inputs\n", got.stdout)
	require.Equal(t, true, object(t, call{dir: spec, args: []string{"check", "-o", "json"}}.run(t).stdout)["goal"])
	long := call{dir: dir, args: []string{"check", "--goal", "-"}, stdin: strings.Repeat("x", 300_000)}.run(t)
	require.Equal(t, exit.StatusUsage, long.status)
	require.Contains(t, long.stderr, "the goal has 300000 bytes")
	require.EqualValues(t, 2, server.calls.Load(), "check calls no model")
}

// A plan prints its goal like the output of a run: for people in one line, without deceptive
// characters, and redacted.
//
// Requirement: G47.
func TestGoalOfAPlanIsGated(t *testing.T) {
	t.Parallel()
	dir := goalFolder(t, goalScript)
	args := strings.Fields("plan --offline --script script.yaml --goal")
	hostile := "Know\x1b[2J this:\n\n\tall \u202eof it " + strings.Repeat("and more ", 50)
	got := call{dir: dir, args: append(args, hostile)}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Regexp(t, `(?m)^goal: Know\\x1b\[2J this: all \\u202eof it and more .{100,160}…$`, got.stdout)
	got = call{dir: dir, args: append(args, hostile, "-o", "json")}.run(t)
	require.Equal(t, strings.TrimSpace(hostile), object(t, got.stdout)["goalText"])

	token := "sk-" + strings.Repeat("aB3dE6gH", 5)
	given := clitest.Folder(t, map[string]string{"team.yaml": roster + "goal: Say what " + token + " is.\ntasks: [{title: Find, assignee: finder, description: Find.}]\n"})
	ran := object(t, call{dir: given, args: []string{"run", "--offline", "-o", "json"}}.run(t).stdout)
	require.Contains(t, ran["goal"], "REDACTED")
	for _, form := range []string{"text", "json", "dot", "mermaid"} {
		got := call{dir: given, args: []string{"plan", "-o", form}}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.NotContains(t, got.stdout+got.stderr, token)
		switch form {
		case "text":
			require.Contains(t, got.stdout, "\ngoal: "+ran["goal"].(string)+"\n")
		case "json":
			require.Equal(t, ran["goal"], object(t, got.stdout)["goalText"], "as a run prints it")
		}
	}
}

// If one agent alone works on a goal, its answer is the answer of the run.
func TestPlanOfAGoalOfOneStep(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": strings.Replace(roster, "systemPrompt: You write.", "systemPrompt: You translate into French.", 1) + "mode: auto\n"})
	got := call{dir: dir, args: []string{"plan", "--offline", "--goal", "Translate good morning into French"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "nothing was run\ngoal: Translate good morning into French\n")
	require.Contains(t, got.stdout, "\nanswer: Translate good morning into French\n")
	require.NotContains(t, got.stdout, "coordinator")
}

func TestLimitsOfPlanning(t *testing.T) {
	t.Parallel()
	server := serveModel(t, func(w http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() })
	dir := goalFolder(t, goalScript)
	got := call{dir: dir, args: []string{"plan", "--goal", "Know.", "--timeout", "50ms"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Empty(t, got.stdout)
	require.Contains(t, got.stderr, "there is no plan: raise --timeout, or timeoutMs of the spec")
	require.NotContains(t, got.stderr, "of the coordinator")

	args := strings.Fields("plan --offline --script script.yaml --goal Know --max-token-budget")
	got = call{dir: dir, args: append(args, "10")}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Contains(t, got.stderr, "there is no plan, so nothing was run: raise --max-token-budget")
	got = call{dir: dir, args: append(args, "1000000")}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
}

// A saved plan runs without another call for a plan.
func TestSavedPlanRunsWithoutPlanning(t *testing.T) {
	t.Parallel()
	var plans atomic.Int32 // a handler may return after its client
	server := serveModel(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		body, _ := io.ReadAll(r.Body)
		switch text := string(body); {
		case strings.Contains(text, "# Original Goal"):
			reply(w, "the answer")
		case strings.Contains(text, "# Goal"):
			plans.Add(1)
			reply(w, twoTasks)
		default:
			reply(w, "a fact")
		}
	})
	dir := goalFolder(t, "")
	env := server.env()
	args := []string{"plan", "--goal", "Know.", "--save", "planned.yaml"}
	got := call{dir: dir, args: args, env: env}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stderr, "runteam: saved as planned.yaml. Next: runteam run planned.yaml\n")
	got = call{dir: dir, args: []string{"plan", "planned.yaml"}, env: env}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.NotContains(t, got.stderr, "asking")
	require.Contains(t, got.stdout, "coordinator: accepts")
	got = call{dir: dir, args: []string{"run", "planned.yaml", "--progress", "none"}, env: env}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, "the answer\n", got.stdout)
	require.EqualValues(t, 1, plans.Load())

	got = call{dir: dir, args: args, env: env}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Contains(t, got.stderr, "--save planned.yaml: it exists: add --force")
	require.EqualValues(t, 1, plans.Load(), "before any task ran")
	got = call{dir: dir, args: append(args, "--force"), env: env}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.EqualValues(t, 2, plans.Load())
}

func TestPlansThatCannotBeSaved(t *testing.T) {
	t.Parallel()
	server := serveModel(t, func(w http.ResponseWriter, _ *http.Request, _ int) { reply(w, twoTasks) })
	dir := clitest.Folder(t, map[string]string{"team.yaml": strings.Replace(roster, "You write.", "{file: p.md}", 1), "p.md": "You write.", "sub/x": ""})
	for args, want := range map[string]string{
		"--save team.yaml":         "it exists: add --force",
		"--save team.yaml --force": "the command reads this file",
		"--save none/f.yaml":       "the folder none does not exist",
		"--save sub/f.yaml":        "cannot be named from",
		"--save=":                  "--save is empty",
	} {
		got := call{dir: dir, args: append([]string{"plan", "--goal", "Know."}, strings.Fields(args)...), env: server.env()}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
		require.Empty(t, got.stdout)
		require.Contains(t, got.stderr, want)
	}
	require.Zero(t, server.calls.Load(), "no model was called for a plan that cannot be saved")
	require.Equal(t, []string{"p.md", "sub", "team.yaml"}, clitest.Listing(t, dir))
}

// A warning names the keys that a saved spec omits.
func TestSavedPlanOmitsKeys(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": roster + "baseURL: http://127.0.0.1:1/v1\napiKey: fake-key-0123\n"})
	got := call{dir: dir, args: []string{"plan", "--goal", "Know.", "--offline", "--save", "f.yaml"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stderr, "Next: runteam run f.yaml --offline\n")
	require.Contains(t, got.stderr, "apiKey: not saved")
	text, err := os.ReadFile(filepath.Join(dir, "f.yaml"))
	require.NoError(t, err)
	require.NotContains(t, string(text), "fake-key-0123")
}

func TestCoordinatorFilesAreLocated(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": roster, "coord.yaml": "model: m\ninstructons: Be brief.\n"})
	for _, command := range []string{"run", "plan", "check"} {
		got := call{dir: dir, args: []string{command, "--goal", "Know.", "--coordinator", "coord.yaml"}}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
		require.Regexp(t, `^coord\.yaml:2:1: .*instructons`, got.stderr)
		require.Contains(t, got.stderr, "instructions")
	}
}
