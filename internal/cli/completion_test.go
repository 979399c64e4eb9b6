package cli

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/progress"
	"github.com/runteam/runteam/internal/journal"
	"github.com/stretchr/testify/require"
)

// completions returns the completions that a shell gets for the last word.
func completions(t *testing.T, words ...string) []string {
	t.Helper()
	got := call{args: append([]string{"__complete"}, words...)}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	for i, line := range lines {
		lines[i], _, _ = strings.Cut(line, "\t")
	}
	return lines[:len(lines)-1] // the last says what else to offer
}

func TestCompletionsAreThoseOfTheCommand(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"text", "json", "dot", "mermaid"}, completions(t, "plan", "-o", ""))
	require.Equal(t, []string{"text", "json"}, completions(t, "run", "-o", ""))
	require.Equal(t, progress.Modes, completions(t, "run", "--progress", ""))
	require.Empty(t, completions(t, "init", "here", ""))
	require.Empty(t, completions(t, "run", "--goal", ""))
	for _, name := range []string{"--goal", "--coordinator", "--record", "--force", "--max-token-budget", "--team", "--events"} {
		require.Contains(t, completions(t, "run", "--"), name)
	}
	require.Contains(t, completions(t, "plan", "--"), "--save")
	require.Contains(t, completions(t, "run", "--"), "--save")
	require.Contains(t, completions(t, "resume", "--"), "--save")
	require.NotContains(t, completions(t, "resume", "--"), "--record")
	require.Contains(t, completions(t, "run", "--"), "--include-messages")
	require.Subset(t, completions(t, ""), []string{"init", "schema", "plan"})
	require.Equal(t, console.LogLevels, completions(t, "check", "--log-level", ""))
}

// Shells complete what commands accept
// from the journal, and nothing without a journal.
func TestCompletionsNameRunsAndTasks(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": "agents: [{name: a}]\ntasks:\n  - {title: Read all, assignee: a, description: d}\n  - {title: Tell, assignee: a, description: d, dependsOn: [Read all]}\n"})
	complete := func(words ...string) []string {
		got := call{dir: dir, bare: true, args: append([]string{"__complete"}, words...)}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		var all []string
		for line := range strings.Lines(got.stdout) {
			if word, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); !strings.HasPrefix(word, ":") {
				all = append(all, word)
			}
		}
		return all
	}
	require.Empty(t, complete("show", ""))
	got := call{dir: dir, args: []string{"run", "--offline", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	id := object(t, got.stdout)["runId"].(string)[:8]

	for _, words := range [][]string{{"resume", ""}, {"replay", ""}, {"audit", "verify", ""}, {"replay", "--diff", ""}, {"resume", "--journal", ".runteam/runs.db", id[:3]}} {
		require.Equal(t, []string{id}, complete(words...), "%v", words)
	}
	for _, words := range [][]string{{"show", id, ""}, {"explain", id[:4], ""}, {"resume", "--fresh", ""}, {"replay", id, "--without", ""}} {
		require.Equal(t, []string{"Read all", "Tell"}, complete(words...), "%v", words)
	}
	require.Equal(t, []string{id, "Read all", "Tell"}, complete("show", ""))
	require.Empty(t, complete("show", id, "Tell", ""))
	require.Empty(t, complete("resume", "--journal", "nowhere.db", ""))

	got = call{dir: dir, args: []string{"run", "--offline", "--goal", "Compare."}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, strings.Join(complete("resume", "--fresh", ""), "\n"), "Compare.", "a task that the coordinator planned")
}

// Runs and their tasks are completed from the journal that the flags name.
func TestCompletionOffersRunsAndTasks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTest(t, dir, journal.Options{})
	beginRun(t, j, "aaaa-1", "first", "Read \x1b[2J", "Score fraud").end("ok", completed("Score fraud"))
	beginRun(t, j, "aaaa-2", "second", "Sum up", "Score fraud", "Score again").end("")
	beginRun(t, j, "bbbb-3", "third", "Other").end("ok", completed("Other"))
	other := filepath.Join(t.TempDir(), "other.db")
	k, err := journal.Open(other, journal.Options{})
	require.NoError(t, err)
	beginRun(t, k, "cccc-4", "elsewhere", "Away").end("")
	require.NoError(t, k.Close())

	offered := func(words ...string) []string {
		t.Helper()
		got := call{dir: dir, args: append([]string{"__complete"}, words...)}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
		return lines[:len(lines)-1]
	}
	ids := func(words ...string) []string {
		t.Helper()
		out := []string{}
		for _, line := range offered(words...) {
			id, _, _ := strings.Cut(line, "\t")
			out = append(out, id)
		}
		return out
	}
	require.Regexp(t, `^aaaa-2\tsecond, interrupted, \d+d ago\naaaa-1\tfirst, ok, \d+d ago$`, strings.Join(offered("resume", "aa"), "\n"))
	require.Equal(t, []string{"bbbb-3", "aaaa-2", "aaaa-1"}, ids("replay", ""))
	require.Equal(t, []string{"bbbb-3", "aaaa-2", "aaaa-1", "Other"}, ids("show", ""))
	require.Equal(t, []string{"bbbb-3", "aaaa-2", "aaaa-1"}, ids("audit", "verify", ""))
	require.Equal(t, []string{"bbbb-3", "aaaa-2", "aaaa-1"}, ids("replay", "--diff", ""))
	require.Equal(t, []string{"Score fraud", "Score again"}, ids("show", "aaaa-2", "Sc"))
	require.Equal(t, []string{"Sum up", "Score fraud", "Score again"}, ids("explain", "aaaa-2", ""))
	require.NotContains(t, strings.Join(offered("explain", "aaaa-1", ""), ""), "\x1b")
	require.Len(t, ids("explain", "aaaa-1", ""), 2)
	require.Equal(t, []string{"Sum up"}, ids("resume", "aaaa-2", "--fresh", "Su"))
	require.Equal(t, []string{"Other"}, ids("run", "--fresh", ""))
	require.Equal(t, []string{"Score again"}, ids("replay", "aaaa-2", "--without", "Score a"))
	require.Empty(t, ids("resume", "aaaa-2", ""))
	require.Equal(t, []string{"note=run:"}, ids("run", "--input", "note=r"))
	require.Equal(t, []string{"note=run:aaaa-2/", "note=run:aaaa-1/"}, ids("run", "--input", "note=run:a"))
	require.Equal(t, []string{"note=run:aaaa-2/Sum up"}, ids("run", "--input", "note=run:aaaa-2/Su"))
	require.Equal(t, []string{"cccc-4"}, ids("resume", "--journal", other, ""))
}

// With a missing, broken or locked journal, completion offers nothing, prints nothing and
// ends soon.
func TestCompletionIsSilentWithoutAJournal(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "broken.db")
	require.NoError(t, os.WriteFile(broken, []byte("this is no database"), 0o600))
	locked := filepath.Join(t.TempDir(), "locked.db")
	j, err := journal.Open(locked, journal.Options{})
	require.NoError(t, err)
	beginRun(t, j, "locked-1", "x", "One").end("")
	require.NoError(t, j.Close())
	db, err := sql.Open("sqlite", locked)
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range []string{"pragma locking_mode = exclusive", "begin exclusive"} {
		_, err = db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	for _, path := range []string{locked, broken, filepath.Join(t.TempDir(), "none.db"), t.TempDir()} {
		for _, words := range [][]string{{"show", "--journal", path, ""}, {"explain", "--journal", path, "x", ""}, {"replay", "--journal", path, "--without", ""}, {"run", "--journal", path, "--input", "a=run:x"}} {
			complete, start := call.run, time.Now()
			if path == locked {
				complete = call.process // which has the time limit of a shell
			}
			got := complete(call{args: append([]string{"__complete"}, words...)}, t)
			require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			require.Equal(t, 1, strings.Count(got.stdout, "\n"), got.stdout)
			require.Regexp(t, `^Completion ended with directive: \w+`, got.stderr)
			require.Less(t, time.Since(start), 25*time.Second, "a writer waits 30 s for a locked file")
			if path == locked {
				break // one second is enough of waiting
			}
		}
	}
}

// No more than the newest runs are offered.
func TestCompletionIsBounded(t *testing.T) {
	t.Parallel()
	j := journal.InMemory(journal.Options{})
	t.Cleanup(func() { _ = j.Close() })
	for _, id := range []string{"a-1", "b-2", "a-3", "a-4"} {
		beginRun(t, j, id, "n", "One").end("")
	}
	list, err := j.Newest(t.Context(), "a", 2)
	require.NoError(t, err)
	require.Equal(t, []string{"a-4", "a-3"}, []string{list[0].Run, list[1].Run})
	require.Len(t, list, 2)
}
