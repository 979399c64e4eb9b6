package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/stretchr/testify/require"
)

// earlierFiles returns what a folder has that an earlier version wrote, by where it belongs in a folder of a team.
func earlierFiles(t *testing.T, from string) map[string]string {
	t.Helper()
	files := map[string]string{}
	list, err := os.ReadDir(from)
	require.NoError(t, err)
	for _, entry := range list {
		text, err := os.ReadFile(filepath.Join(from, entry.Name()))
		require.NoError(t, err)
		name, zipped := strings.CutSuffix(entry.Name(), ".gz")
		if zipped {
			in, err := gzip.NewReader(bytes.NewReader(text))
			require.NoError(t, err)
			text, err = io.ReadAll(in)
			require.NoError(t, err)
		}
		if strings.HasPrefix(name, "runs.db") {
			name = ".runteam/" + name
		}
		files[name] = string(text)
	}
	return files
}

// The command lists, shows, explains and verifies a journal and a trace that an earlier version
// wrote, and resumes a run whose process was killed.
func TestFilesOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	files := earlierFiles(t, "../journal/testdata/earlier")
	dir := clitest.Folder(t, files)
	require.NoError(t, os.Chmod(filepath.Join(dir, ".runteam"), 0o700))
	run := func(args string) outcome {
		got := call{bare: true, dir: dir, args: strings.Fields(args)}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%s: %+v", args, got)
		return got
	}
	var runs []struct{ RunID, Name, Status string }
	require.NoError(t, json.Unmarshal([]byte(run("runs -o json").stdout), &runs))
	require.Len(t, runs, 4)
	killed, failed, first := runs[0].RunID, runs[2].RunID, runs[3].RunID
	require.Equal(t, "interrupted", runs[0].Status)
	require.Contains(t, run("show "+failed+" Judge").stdout, `{"verdict": "reject", "note": "no"}`)
	require.Contains(t, run("show "+first+" Report").stdout, "Report: The repair costs 4,711 EUR.")
	require.Contains(t, run("explain --contains 4,711 "+first).stdout, "input claim of user")
	require.Contains(t, run("explain --contains 4,711 run.trace").stdout, "input claim of user")
	require.Contains(t, run("audit verify run.trace --key-file audit.key --head "+strings.TrimSpace(files["run.anchor"])).stdout, "verified: ")
	require.Contains(t, run("audit verify "+first+" --key-file audit.key").stdout, "consistent, not anchored: ")

	got := run("resume " + killed + " --offline --script held.yaml --journal-key journal.key --audit-key audit.key -o json")
	require.Equal(t, true, object(t, got.stdout)["success"])
	var shown struct {
		Tasks []struct {
			Title    string
			Attempts int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(run("show "+killed+" -o json --journal-key journal.key").stdout), &shown))
	attempts := map[string]int{}
	for _, of := range shown.Tasks {
		attempts[of.Title] = of.Attempts
	}
	require.Equal(t, map[string]int{"Read the claim": 1, "Score the claim": 1, "Wait": 2, "Report": 1}, attempts, "completed tasks did not run again")
}

// shownTasks returns what show says of each task of a run.
func shownTasks(t *testing.T, dir, run string) (lines []string) {
	t.Helper()
	var doc struct {
		Tasks []struct {
			Title, Status string
			Attempts      int
			Error         struct{ Message string }
		}
	}
	got := call{bare: true, dir: dir, args: []string{"show", run, "-o", "json"}}.run(t)
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &doc), "%+v", got)
	for _, of := range doc.Tasks {
		lines = append(lines, strings.TrimSpace(fmt.Sprint(of.Title, " ", of.Status, " ", of.Attempts, " ", of.Error.Message)))
	}
	return lines
}

// In files before version 9, the end of a run says how its tasks ended. They are shown as that version showed them, also
// once this version has added an answer to the file.
func TestTasksInAJournalOfVersion8(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, earlierFiles(t, "../journal/testdata/version8"))
	require.NoError(t, os.Chmod(filepath.Join(dir, ".runteam"), 0o700))
	shown := func(run string) []string { return shownTasks(t, dir, run) }
	failed := []string{"Fails failed 2 the command exited with status 1", `Follows failed 0 because "Fails" failed`}
	waiting := append([]string{
		"Draft#1 completed 1", "Decide#1 in_progress 0", "Draft#2 blocked 0", "Decide#2 blocked 0", "Draft#3 blocked 0", "Decide#3 blocked 0", "Letter blocked 0",
		"Plan completed 1", "Send[1] blocked 0", "Send[2] blocked 0", "Send[3] blocked 0", "Send[4] blocked 0", "Send[5] blocked 0",
	}, failed...)
	require.Equal(t, waiting, shown("0aa9e671"))
	ended := []string{"Draft#1 completed 1", "Decide#1 completed 1", "Letter completed 0", "Plan completed 1", "Send[1] completed 1", "Send[2] completed 1"}
	require.Equal(t, append(ended, "Fails failed 4 the command exited with status 1", failed[1]), shown("5b394f31"))

	require.Equal(t, exit.StatusOK, call{bare: true, dir: dir, args: []string{"answer", "0aa9e671", "Decide#1", "--set", "choice=send"}}.run(t).status)
	require.Equal(t, waiting, shown("0aa9e671"), "the answer is for the next process")
}

// Files before version 10 have all events of a run, but for decisions. None of them is derived once more.
func TestEventsInAJournalOfVersion8(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, earlierFiles(t, "../journal/testdata/version8"))
	require.NoError(t, os.Chmod(filepath.Join(dir, ".runteam"), 0o700))
	stored := map[event.Type]int{}
	for _, e := range storedEvents(t, filepath.Join(dir, journals.FolderName, journals.FileName)) {
		stored[e.Type]++
	}
	require.Equal(t, map[event.Type]int{
		event.RunStart: 4, event.TaskReady: 12, event.TaskStart: 10, event.AgentStart: 18, event.AgentComplete: 16, event.TaskRetry: 2, event.TaskWaiting: 1,
		event.TaskComplete: 8, event.TaskNotNeeded: 7, event.Error: 4, event.AllComplete: 1, event.RunComplete: 4, event.Handed: 22,
	}, stored)
}

// In files of version 9, the head and the info of a run list its tasks, and only they have the keys, the lines and the
// loops. A process that resumes such a run lists them where it begins.
func TestTasksInAJournalOfVersion9(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, earlierFiles(t, "../journal/testdata/version9"))
	require.NoError(t, os.Chmod(filepath.Join(dir, ".runteam"), 0o700))
	run := func(args ...string) string {
		got := call{bare: true, dir: dir, args: args}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%s: %+v", args, got)
		return got.stdout
	}
	const waiting, resumed = "1e6a715f", "b79d5baa"
	failed := []string{"Fails failed 2 the command exited with status 1", `Follows failed 0 because "Fails" failed`}
	require.Equal(t, append([]string{
		"Draft#1 completed 1", "Decide#1 in_progress 0", "Draft#2 blocked 0", "Decide#2 blocked 0", "Draft#3 blocked 0", "Decide#3 blocked 0", "Letter blocked 0",
		"Plan completed 1", "Send[1] blocked 0", "Send[2] blocked 0", "Send[3] blocked 0", "Send[4] blocked 0", "Send[5] blocked 0",
	}, failed...), shownTasks(t, dir, waiting))
	ended := []string{"Draft#1 completed 1", "Decide#1 completed 1", "Letter completed 0", "Plan completed 1", "Send[1] completed 1", "Send[2] completed 1"}
	require.Equal(t, append(ended, "Fails failed 4 the command exited with status 1", failed[1], "Added completed 1"), shownTasks(t, dir, resumed))
	require.Contains(t, run("show", resumed, "added"), "Add this.", "by the key of a task that its second process has added")
	require.Contains(t, run("show", "letter"), "# Letter", "of the newest run")
	require.Contains(t, run("explain", resumed, "letter"), "Its rounds have the prompts: Draft#1")
	require.Contains(t, run("explain", resumed, "added", "-o", "json"), `"key":"letter","title":"Letter","assignee":"writer","line":"team.yaml:7","status":"completed","rounds":"Draft"`)
	require.Contains(t, run("__complete", "show", resumed, "Ad"), "Added\twriter")

	j, err := journal.Open(filepath.Join(dir, ".runteam", "runs.db"), journal.Options{})
	require.NoError(t, err)
	again, stored, err := j.Resume(t.Context(), waiting)
	require.NoError(t, err)
	start := stored.History.Begins[0]
	start.Time = clitest.Noon
	done := make(chan error, 1)
	again.Append([]record.Entry{{Begin: &start}}, func(err error) { done <- err })
	require.NoError(t, <-done)
	require.NoError(t, j.Close())
	require.Contains(t, run("explain", waiting, "letter"), "Its rounds have the prompts: Draft#1")
	require.Contains(t, run("show", waiting, "plan"), "ann")
}
