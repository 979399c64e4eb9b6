package cli

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/history"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// shownOf returns a run as show prints it, in JSON.
func shownOf(t *testing.T, dir string, args ...string) (r history.RunDocument) {
	t.Helper()
	got := call{dir: dir, args: append([]string{"show", "-o", "json"}, args...)}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &r), got.stdout)
	return r
}

// A task that was removed from the spec is not pending.
func TestRemovedTask(t *testing.T) {
	t.Parallel()
	server, dir := startCounting(t), relayFolder(t)
	call := func(args ...string) outcome { t.Helper(); return call{dir: dir, args: args, env: server.env()}.run(t) }
	first := call("run")
	require.Equal(t, exit.StatusOK, first.status, "%+v", first)
	second := call("run", "-o", "json")
	other := object(t, second.stdout)["runId"].(string)
	edit(t, filepath.Join(dir, "team.yaml"), "title: Third", "title: Last")
	got := call("resume", other)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)

	r := shownOf(t, dir, other)
	var titles []string
	for _, s := range r.Tasks[:4] {
		titles = append(titles, s.Title)
		require.Equal(t, task.Completed, s.Status)
	}
	require.Equal(t, []string{"First", "Second", "Last", "Aside"}, titles)
	require.Len(t, r.Tasks, 5)
	require.Equal(t, "Third", r.Tasks[4].Title)
	require.Equal(t, journals.Removed, r.Tasks[4].Status)
	require.Positive(t, r.Tasks[4].Usage.InputTokens, "the tokens of the removed task count")
	text := call("show", other)
	require.Regexp(t, `removed +Third +solo .* no longer in the spec\n`, text.stdout)
	require.NotContains(t, text.stdout, "pending")

	diff := call("replay", shortIDIn(t, first.stderr), "--diff", other)
	require.Regexp(t, `Third +completed → removed`, diff.stdout)
	require.NotContains(t, diff.stdout, "pending")
	again := call("replay", other)
	require.Equal(t, exit.StatusOK, again.status, "%+v", again)
	require.Contains(t, again.stderr, "replayed 4 of 4 prompts, equal to the byte")
	require.Equal(t, exit.StatusUsage, call("replay", other, "--without", "Third").status)
	without := call("replay", other, "--without", "Aside")
	require.Equal(t, exit.StatusOK, without.status, "%+v", without)
	require.NotContains(t, without.stdout, "Third")

	edit(t, filepath.Join(dir, "team.yaml"), "  - {title: Aside, assignee: solo, description: Say aside.}\n", "")
	require.Equal(t, exit.StatusOK, call("resume", other).status)
	require.Equal(t, []task.Status{journals.Removed, journals.Removed}, []task.Status{shownOf(t, dir, other).Tasks[3].Status, shownOf(t, dir, other).Tasks[4].Status})
}
