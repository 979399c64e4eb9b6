package cli

import (
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/history"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/stretchr/testify/require"
)

// An experiment does not become the newest run that commands use.
func TestExperimentIsNotTheNewestRun(t *testing.T) {
	t.Parallel()
	server, dir := startCounting(t), relayFolder(t)
	in := call{dir: dir}
	call := func(args ...string) outcome { t.Helper(); return call{dir: dir, args: args, env: server.env()}.run(t) }
	got := call("run", "-o", "json")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	id := object(t, got.stdout)["runId"].(string)
	got = call("replay", "--without", "First", "--without-input", "note", "-o", "json")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	other := object(t, got.stdout)["runId"].(string)

	list := listRuns(t, in)
	require.Len(t, list, 2)
	require.Equal(t, other, list[0].Run)
	require.Equal(t, &journals.Experiment{Of: id, Without: []string{"First"}, WithoutInputs: []string{"note"}}, list[0].Experiment)
	require.Nil(t, list[1].Experiment)
	text := call("runs").stdout
	require.Contains(t, text, "experiment of "+id[:8]+" without task First and input note\n")

	require.Equal(t, id, shownOf(t, dir).Run)
	require.Equal(t, id, shownOf(t, dir, id).Run)
	r := shownOf(t, dir, other)
	require.Equal(t, []any{other, id}, []any{r.Run, r.Of})
	require.Contains(t, call("explain").stdout, id)
	require.Contains(t, call("resume").stderr, "Run "+id[:8])
	require.Equal(t, id, object(t, call("replay", "-o", "json").stdout)["runId"])
	require.Equal(t, id, object(t, call("audit", "verify", "-o", "json").stdout)["run"])

	got = call("resume", other)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
}

// TASK alone means a task of the newest run.
func TestTaskWithoutRun(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": relay, "note.md": "the note"})
	require.Equal(t, exit.StatusOK, offlineRun(t, call{dir: dir}).status)
	for _, name := range []string{"First", " FIRST"} {
		got := call{dir: dir, args: []string{"show", name}}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Contains(t, got.stdout, "attempt 1 · solo")
		require.NotContains(t, got.stdout, "Second")
		got = call{dir: dir, args: []string{"explain", name}}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Contains(t, got.stdout, "Say one.")
		require.NotContains(t, got.stdout, "Say two.")
	}
	for _, command := range []string{"show", "explain"} {
		got := call{dir: dir, args: []string{command, "Frist"}}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
		require.Contains(t, got.stderr, `run or task "Frist"; did you mean the task "First"?`)
	}
	require.Equal(t, exit.StatusUsage, call{dir: dir, args: []string{"show", "First", "--usage"}}.run(t).status)
}

// The answer is first, whole, and printed only once.
func TestAnswerIsShownFirst(t *testing.T) {
	t.Parallel()
	for _, n := range []int{30, history.MaxAnswerLines + 1} {
		dir := clitest.Folder(t, map[string]string{"team.yaml": one, "s.yaml": "replies: [{text: '" + strings.Repeat("a line\n\n", n) + "the last'}]"})
		got := offlineRun(t, call{dir: dir}, "--script", "s.yaml")
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		text := call{dir: dir, args: []string{"show"}}.run(t).stdout
		require.Equal(t, strings.TrimSuffix(got.stdout, "\n"), shownOf(t, dir).Output)
		answer, table := strings.Index(text, "# The answer"), strings.Index(text, "completed  ")
		require.Less(t, answer, table)
		require.Equal(t, n == 30, strings.Contains(text, "the last"), text)
		require.Equal(t, n != 30, strings.Contains(text, " has it as output\n"), text)
		require.Equal(t, n != 30, strings.Contains(text, "# Answer"), text)
	}
}

// A run that failed can be resumed, and the newest one shows the command.
func TestRunsNameTheResumeCommand(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": one, "s.yaml": "replies: [{status: 400}]"})
	for _, args := range []string{"", "--script s.yaml", "--script s.yaml", "--max-token-budget 1", ""} {
		offlineRun(t, call{dir: dir}, strings.Fields(args)...)
	}
	list := listRuns(t, call{dir: dir})
	require.Equal(t, []string{"ok", "budget_exhausted", "error", "error", "ok"}, []string{list[0].Status, list[1].Status, list[2].Status, list[3].Status, list[4].Status})
	text := call{dir: dir, args: []string{"runs"}}.run(t).stdout
	require.Equal(t, 1, strings.Count(text, "runteam resume "), text)
	require.Contains(t, text, "runteam resume "+list[1].Run[:8])
	require.Contains(t, call{dir: dir, args: []string{"show", list[3].Run}}.run(t).stdout, "to resume: runteam resume "+list[3].Run[:8]+"\n")
}
