package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

func TestPlanAsText(t *testing.T) {
	t.Parallel()
	got := call{dir: harvestPath(t), args: []string{"plan"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Empty(t, got.stderr)
	clitest.RequireGolden(t, "testdata/plan.golden", got.stdout)
}

func TestPlanInJSON(t *testing.T) {
	t.Parallel()
	got := call{dir: harvestPath(t), args: []string{"plan", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	plan := object(t, got.stdout)
	require.Len(t, plan["tasks"], 4)
	require.Len(t, plan["agents"], 3)
	require.Equal(t, []any{}, plan["warnings"])
	last := plan["tasks"].([]any)[3].(map[string]any)
	require.Equal(t, "Write the letter", last["title"])
	require.Equal(t, "https://api.openai.com/v1", last["leavesTo"], "the check needs no key")
	require.Equal(t, "confidential", last["reads"].([]any)[0].(map[string]any)["label"])
	require.Equal(t, []any{last["id"]}, plan["output"])
}

func TestCheckNamesWarningsAtTheirPlaces(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": strings.Replace(one, "agents:", "inputs: {spare: {text: unused}}\nagents:", 1)})
	got := call{dir: dir, args: []string{"check"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, "team.yaml: ok: 1 task, 1 agent, 1 input; 1 warning\n", got.stdout)
	require.Regexp(t, `^team\.yaml:4:\d+: warning: .*\n$`, got.stderr)
	require.Contains(t, got.stderr, "spare")
	require.Empty(t, call{dir: dir, args: []string{"check", "--log-level", "error"}}.run(t).stderr)
	got = call{dir: dir, args: []string{"check", "-o", "json"}}.run(t)
	require.Empty(t, got.stderr)
	var c struct {
		OK       bool
		File     string
		Tasks    int
		Warnings []struct {
			File string
			Line int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &c))
	require.True(t, c.OK)
	require.Equal(t, "team.yaml", c.File)
	require.Equal(t, 1, c.Tasks)
	require.Len(t, c.Warnings, 1)
	require.Equal(t, 4, c.Warnings[0].Line)
	run := call{dir: dir, args: []string{"run", "--offline"}}.run(t)
	require.Equal(t, 1, strings.Count(run.stderr, "warning: "), "the warning is printed once: %s", run.stderr)
}

func TestRosterCanBeCheckedButNotRun(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": "name: roster\nmodel: m\nagents: [{name: solo}]\n"})
	got := call{dir: dir, args: []string{"check"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, `0 tasks, 1 agent, 0 inputs; to run it without tasks, give a goal: "runteam run --goal TEXT"`)
	for _, command := range []string{"run", "plan"} {
		got = call{dir: dir, args: []string{command}}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "the error needs no key: %+v", got)
		require.Contains(t, got.stderr, "neither tasks nor a goal, so there is nothing to "+command)
		require.Contains(t, got.stderr, "add --goal TEXT")
	}
}

// The plan says which strategy assigned a task.
func TestPlanNamesTheAssignees(t *testing.T) {
	t.Parallel()
	open := strings.Replace(one, "assignee: solo, ", "", 1)
	got := call{args: []string{"plan", "-"}, stdin: open}.run(t)
	require.Contains(t, got.stdout, "   solo (assigned by dependency-first) at internal", "%+v", got)
	got = call{args: []string{"plan", "-"}, stdin: open + "schedulingStrategy: least-busy\n"}.run(t)
	require.Contains(t, got.stdout, "   solo (assigned by least-busy) at internal", "%+v", got)
}

// The plan of a task includes messages and memory.
func TestPlanShowsMessagesAndMemory(t *testing.T) {
	t.Parallel()
	spec := strings.Replace(many(2), "title: Task 2,", "title: Task 2, dependsOn: [Task 1], memoryScope: all,", 1) +
		"  - {title: Task 3, assignee: solo, dependsOn: [Task 2], memoryScope: all, description: Go on.}\nmessages: [{from: user, to: solo, text: Hurry.}]\n"
	got := call{args: []string{"plan", "-"}, stdin: spec}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Regexp(t, `(?m)^   reads  message +message 1 +from user +internal  optional$`, got.stdout)
	require.Regexp(t, `(?m)^   reads  memory +a digest of the shared memory +from all agents +internal  optional$`, got.stdout)
}
