package cli

import (
	"net/http"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

func TestInputFromStandardInput(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"team.yaml":   "inputs: {note: }\nagents: [{name: solo}]\ntasks: [{title: Answer, assignee: solo, uses: [note], description: Say.}]\n",
		"script.yaml": `replies: [{text: '{{ input "note" }}'}]`,
	})
	got := call{dir: dir, args: []string{"run", "--offline", "--script", "script.yaml", "--input", "note=-"}, stdin: "from a pipe"}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, "from a pipe\n", got.stdout)
	got = call{dir: dir, args: []string{"run", "--offline", "--input", "note=-"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Contains(t, got.stderr, "it is empty")
}

func TestCheckWarnsOfAgentsWithoutAModel(t *testing.T) {
	t.Parallel()
	const two = "agents:\n  - {name: solo, model: m}\n  - {name: duo}\ntasks: [{title: Answer, assignee: solo, description: Say.}]\n"
	got := call{args: []string{"check", "-"}, stdin: two}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, "-:3:5: warning: agent \"duo\" has no model; write model: in the spec, or give --model; --offline needs none\n", got.stderr)
	got = call{args: []string{"check", "-"}, stdin: strings.Replace(two, ", model: m", "", 1)}.run(t)
	require.Contains(t, got.stderr, `-:2:5: warning: agents "solo", "duo" have no model;`)
	got = call{args: []string{"check", "-", "--model", "m"}, stdin: two}.run(t)
	require.Empty(t, got.stderr)
	got = call{args: []string{"check", "-"}, stdin: "agents: [{name: solo, model: m}]\ngoal: Know.\ncoordinator: {instructions: Be brief.}\n"}.run(t)
	require.Equal(t, "-:3:14: warning: the coordinator has no model; write model: in the spec, or give --model; --offline needs none\n", got.stderr)
	got = call{args: []string{"check", "-"}, stdin: "agents: [{name: roster}]\n"}.run(t)
	require.Empty(t, got.stderr, "a roster may get its models elsewhere")
}

// An error of the environment does not name the agent that met it first.
func TestEnvironmentErrorsNameNoAgent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, env, want string
		status          int
	}{
		{"no scheme", "localhost:11434/v1", `OPENAI_BASE_URL: base URL "localhost:11434/v1"`, exit.StatusUsage},
		{"unreadable", "http://[::1", `it is "http://[::1"`, exit.StatusUsage},
		{"unset", "", "set OPENAI_API_KEY, or set OPENAI_BASE_URL", exit.StatusNoRun},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := call{args: []string{"run", "-"}, stdin: one, env: map[string]string{"OPENAI_BASE_URL": tt.env}}.run(t)
			require.Equal(t, tt.status, got.status, "%+v", got)
			require.Contains(t, got.stderr, tt.want)
			require.NotContains(t, got.stderr, "solo")
		})
	}
	got := call{args: []string{"run", "-"}, stdin: one, env: map[string]string{"OPENAI_BASE_URL": "http://me:fake-pass@[::1"}}.run(t)
	require.NotContains(t, got.stderr, "fake-pass")
}

func TestSkippedTasksNameTheCause(t *testing.T) {
	t.Parallel()
	server := serveModel(t, func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() })
	got := call{args: []string{"run", "-", "--timeout", "100ms"}, stdin: failing, env: server.env()}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Contains(t, got.stderr, "skipped   Further left (solo): timed out\n")
	require.NotContains(t, got.stderr, "aborted")
}

func TestUnusedRepliesAreAWarning(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": one, "script.yaml": "replies:\n  - {task: Anwser, text: no}\n  - {task: ' answer', text: done}\n  - {task: Quite another, text: no}\n"})
	got := call{dir: dir, args: []string{"run", "--offline", "--script", "script.yaml"}}.run(t)
	require.Equal(t, "done\n", got.stdout, "%+v", got)
	require.Contains(t, got.stderr, `script.yaml:2:12: warning: there is no task "Anwser", so this reply is never used; did you mean "Answer"?`)
	require.Contains(t, got.stderr, `script.yaml:4:12: warning: there is no task "Quite another", so this reply is never used; write the title`)
	require.Equal(t, 2, strings.Count(got.stderr, "warning"))
}

func TestRepeatedModelCallsAreProgress(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": one, "script.yaml": "replies:\n  - {status: 500, times: 1}\n  - {text: done}\n"})
	got := call{dir: dir, args: []string{"run", "--offline", "--script", "script.yaml"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Regexp(t, `(?m)^ +\d\.\ds  retry     Answer \(solo\): .*\(500\).*; retrying the call in \d\.\ds$`, got.stderr)
	require.NotContains(t, got.stderr, "trying again")
}
