package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/view"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/history"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// journalTestKey encrypts what is above confidential in these journals.
var journalTestKey = strings.Repeat("4b", journal.KeyBytes)

// offlineRun runs the spec of a folder offline and returns what it printed.
func offlineRun(t *testing.T, c call, args ...string) outcome {
	t.Helper()
	c.args = append([]string{"run", "--offline", "--progress", "none"}, args...)
	return c.run(t)
}

// shownOf returns a run as show prints it, in JSON.
func shownOf(t *testing.T, dir string, args ...string) (r view.Run) {
	t.Helper()
	got := call{dir: dir, args: append([]string{"show", "-o", "json"}, args...)}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &r), got.stdout)
	return r
}

// listRuns returns the runs of a journal as runs prints them, in JSON.
func listRuns(t *testing.T, c call) (list []history.ListedRun) {
	t.Helper()
	c.args = []string{"runs", "-o", "json"}
	got := c.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &list), got.stdout)
	return list
}

// writtenRun is a run that a test writes itself.
type writtenRun struct {
	t    *testing.T
	run  *journal.Run
	info journal.Info
}

// beginRun begins a run in a journal.
func beginRun(t *testing.T, j *journal.Journal, id, name string, titles ...string) *writtenRun {
	t.Helper()
	w := &writtenRun{t: t, info: journal.Info{Run: id, Name: name, Command: "run", Time: clitest.Noon, Invocation: []byte("{}")}}
	b := &record.RunStart{Run: id, Name: name, Time: clitest.Noon}
	for _, title := range titles {
		b.Tasks = append(b.Tasks, event.Planned{Task: task.NewID(title), Title: title, Agent: "solo"})
	}
	var err error
	w.run, err = j.Begin(t.Context(), w.info)
	require.NoError(t, err)
	w.add(record.Entry{Begin: b})
	return w
}

func (w *writtenRun) add(entries ...record.Entry) {
	w.t.Helper()
	done := make(chan error, 1)
	w.run.Append(entries, func(err error) { done <- err })
	require.NoError(w.t, <-done)
}

// callStarted adds a prompt that was sent.
func (w *writtenRun) callStarted(title, model string, attempt, bytes int) {
	w.add(record.Entry{Asked: &record.CallStart{
		Session: fmt.Sprintf("%s/%s/%d", w.info.Run, task.NewID(title), attempt), Task: task.NewID(title), Agent: "solo", Model: model, Attempt: attempt, Time: clitest.Noon.Add(time.Second), Bytes: bytes,
	}}, record.Entry{Event: &event.Event{Seq: 1, Type: event.TaskStart, Run: w.info.Run, Task: task.NewID(title), Title: title, Agent: "solo", Attempt: attempt, Time: clitest.Noon}})
}

// exchange adds a prompt with its answer or error.
func (w *writtenRun) exchange(title, model string, attempt int, edit func(*record.AgentCall)) {
	x := &record.AgentCall{
		Start:  clitest.Noon.Add(time.Second),
		End:    clitest.Noon.Add(3 * time.Second),
		CallID: record.CallID{Session: fmt.Sprintf("%s/%s/%d", w.info.Run, task.NewID(title), attempt), Task: task.NewID(title), Title: title, Agent: "solo", Model: model, Attempt: attempt},
		Keys:   record.Keys{Key: record.Key{1, byte(len(title))}},
		Spent:  record.Spent{Turns: 1, Input: 1000, Output: 100},
	}
	edit(x)
	w.add(record.Entry{Exchange: x}, record.Entry{Event: &event.Event{Seq: 2, Type: event.TaskComplete, Run: w.info.Run, Task: x.Task, Title: title, Agent: "solo", Time: clitest.Noon}})
}

// withText returns a function that completes an exchange with a text.
func (w *writtenRun) withText(text string, level label.Classification, ttl time.Duration) func(*record.AgentCall) {
	return func(x *record.AgentCall) {
		h := envelope.Header{ID: envelope.ID(x.Session), Producer: "solo", Run: w.info.Run, Task: x.Task, Classification: level, CreatedAt: clitest.Noon}
		if ttl > 0 {
			h.ExpiresAt = clitest.Noon.Add(ttl)
		}
		e, err := envelope.New(h, envelope.Text(text))
		require.NoError(w.t, err)
		rec := e.Record()
		x.Result = &rec
	}
}

// end ends a run; without a status it leaves the run as a crash does.
func (w *writtenRun) end(status string, tasks ...record.TaskEnd) {
	if status != "" {
		for i := range tasks {
			w.add(record.Entry{Event: w.ended(&tasks[i])})
		}
		w.add(record.Entry{End: &record.RunEnd{Time: clitest.Noon.Add(time.Minute), Status: status, Tasks: tasks}})
	}
	_, err := w.run.Close(w.t.Context())
	require.NoError(w.t, err)
}

// ended returns the event that a task ended.
func (w *writtenRun) ended(of *record.TaskEnd) *event.Event {
	kinds := map[task.Status]event.Type{task.Completed: event.TaskComplete, task.Failed: event.Error, task.Skipped: event.TaskSkipped, task.NotNeeded: event.TaskNotNeeded}
	return &event.Event{
		Seq: 3, Type: kinds[of.Status], Run: w.info.Run, Task: of.Task, Title: of.Title, Agent: of.Agent, Status: of.Status, Time: clitest.Noon,
		Problem: event.Problem{Root: of.Root, Code: of.Code, Message: of.Reason},
	}
}

func completed(title string) record.TaskEnd {
	return record.TaskEnd{Task: task.NewID(title), Title: title, Agent: "solo", Status: task.Completed}
}

// openTest opens a journal of a folder to write runs into it.
func openTest(t *testing.T, dir string, o journal.Options) *journal.Journal {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, journals.FolderName), 0o700))
	j, err := journal.Open(filepath.Join(dir, journals.FolderName, journals.FileName), o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func TestRunsListsTheNewestFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTest(t, dir, journal.Options{})
	w := beginRun(t, j, "aaaaaaaa-1111", "\x1b[31mred\u202e", "One", "Two", "Three")
	w.exchange("One", "m", 1, w.withText("1", label.Public, 0))
	w.end("error", completed("One"), record.TaskEnd{Task: task.NewID("Two"), Title: "Two", Status: task.Failed}, record.TaskEnd{Task: task.NewID("Three"), Title: "Three", Status: task.Skipped})
	w = beginRun(t, j, "aaaaaaaa-2222", "cut", "One", "Two")
	w.callStarted("One", "m", 1, 400)
	w.end("")
	w = beginRun(t, j, "cccccccc-3333", "live", "One")
	got := call{dir: dir, args: []string{"runs"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Empty(t, got.stderr)
	lines := strings.Split(got.stdout, "\n")
	require.Len(t, lines, 5, got.stdout)
	require.Regexp(t, `^run +name +status +started +took +tasks$`, strings.TrimRight(lines[0], " "))
	require.Regexp(t, `^cccccccc +live +running +\S+ \S+ +\S+ +0 of 1 completed$`, strings.TrimRight(lines[1], " "))
	require.Regexp(t, `^aaaaaaaa-2 +cut +interrupted +\S+ \S+ +- +0 of 2 completed, 1 interrupted +runteam resume aaaaaaaa-2$`, lines[2])

	shown := call{dir: dir, args: []string{"show", "aaaaaaaa-2"}}.run(t).stdout
	require.Contains(t, shown, "\n0 of 2 tasks completed, 1 interrupted\n")
	require.Regexp(t, `(?m)^interrupted +One `, shown)
	doc := object(t, call{dir: dir, args: []string{"show", "aaaaaaaa-2", "-o", "json"}}.run(t).stdout)
	require.Equal(t, "interrupted", doc["tasks"].([]any)[0].(map[string]any)["status"])
	require.Equal(t, map[string]any{"completed": 0.0, "failed": 0.0, "cancelled": 0.0, "notRun": 0.0, "interrupted": 1.0}, doc["outcomes"])
	doc = object(t, call{dir: dir, args: []string{"show", "cccccccc", "-o", "json"}}.run(t).stdout)
	require.NotEqual(t, "interrupted", doc["tasks"].([]any)[0].(map[string]any)["status"], "a process works on it")
	require.Regexp(t, `^aaaaaaaa-1 +\\x1b\[31mred\\u202e +error +\S+ \S+ +1m00s +1 of 3 completed, 1 failed, 1 skipped +runteam resume aaaaaaaa-1$`, strings.TrimRight(lines[3], " "))

	list := listRuns(t, call{dir: dir})
	require.Len(t, list, 3)
	require.Equal(t, []string{"cccccccc-3333", "aaaaaaaa-2222", "aaaaaaaa-1111"}, []string{list[0].Run, list[1].Run, list[2].Run})
	require.Equal(t, journal.Counts{task.Completed: 1, task.Failed: 1, task.Skipped: 1}, list[2].Tasks)
	require.True(t, clitest.Noon.Equal(list[2].Started) && clitest.Noon.Add(time.Minute).Equal(list[2].Ended))
	require.True(t, list[1].Ended.IsZero())
	w.end("ok", completed("One"))
}

// The list of runs counts the tasks by the statuses that show has, whether or not a process works on the run. A task that
// the last process has not reached is pending, whatever became of it before, and has not ended.
func TestTheListCountsWhatShowShows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTest(t, dir, journal.Options{})
	titles := []string{"Done", "Failed", "Hit", "Cut", "Begun", "Never", "Unneeded", "Failed before", "Done before", "Left"}
	w := beginRun(t, j, "aaaaaaaa-1111", "n", append(titles, "Gone")...)
	ends := func(title string, status task.Status, root string) {
		w.add(record.Entry{Event: w.ended(&record.TaskEnd{Task: task.NewID(title), Title: title, Agent: "solo", Status: status, Root: task.ID(root)})})
	}
	w.callStarted("Begun", "m", 1, 400)
	w.exchange("Done before", "m", 1, w.withText("1", label.Public, 0))
	w.callStarted("Failed before", "m", 1, 400)
	ends("Failed before", task.Failed, "")
	w.callStarted("Gone", "m", 1, 400)
	w.end("")
	var err error
	w.run, _, err = j.Resume(t.Context(), w.info.Run)
	require.NoError(t, err)
	again := &record.RunStart{Run: w.info.Run, Name: "n", Time: clitest.Noon.Add(time.Second)}
	for _, title := range titles {
		again.Tasks = append(again.Tasks, event.Planned{Task: task.NewID(title), Title: title, Agent: "solo"})
	}
	w.add(record.Entry{Begin: again})
	w.exchange("Done", "m", 1, w.withText("1", label.Public, 0))
	w.callStarted("Failed", "m", 1, 400)
	ends("Failed", task.Failed, "")
	ends("Hit", task.Failed, string(task.NewID("Failed")))
	w.callStarted("Cut", "m", 1, 400)
	ends("Begun", task.Skipped, "") // a command canceled it before it began in this process
	ends("Never", task.Skipped, "")
	ends("Unneeded", task.NotNeeded, "")
	for _, working := range []bool{true, false} {
		if !working {
			w.end("")
		}
		list, doc := listRuns(t, call{dir: dir}), shownOf(t, dir)
		counts, interrupted := journal.Counts{}, 0
		for _, of := range doc.Tasks {
			if of.Status != runstate.Removed {
				counts[of.Status]++
			}
		}
		require.Equal(t, counts, list[0].Tasks)
		require.Equal(t, 2, counts[task.Pending])
		if interrupted = counts[runstate.Interrupted]; !working {
			require.Equal(t, 1, interrupted)
		}
		want := record.Outcomes{Completed: 2, Failed: 1, Cancelled: 1, NotRun: 2, NotNeeded: 1, Interrupted: interrupted}
		require.Equal(t, []record.Outcomes{want, want}, []record.Outcomes{list[0].Outcomes, doc.Outcomes})
		text := "2 of 10 tasks completed, 1 failed, 1 cancelled, " + map[bool]string{false: "1 interrupted, "}[working] + "2 skipped, 1 not needed\n"
		require.Contains(t, call{dir: dir, args: []string{"show"}}.run(t).stdout, text)
	}
}

func TestRunsOfNoJournalIsAnEmptyList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, form := range []string{"text", "json"} {
		got := call{dir: dir, args: []string{"runs", "-o", form}}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Equal(t, map[string]string{"text": "", "json": "[]\n"}[form], got.stdout)
		require.Contains(t, got.stderr, "there is no journal here or in a folder above")
		require.NoDirExists(t, filepath.Join(dir, journals.FolderName), "reading creates no journal")
	}
	for _, args := range [][]string{{"show"}, {"explain"}, {"replay"}, {"audit", "verify"}, {"gc", "--older-than", "1d"}} {
		got := call{dir: dir, args: args}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%v %+v", args, got)
		require.Contains(t, got.stderr, "there is no journal")
	}
	openTest(t, dir, journal.Options{}).Close() //nolint:errcheck // it is empty
	require.Empty(t, listRuns(t, call{dir: dir}))
	for _, args := range [][]string{{"show"}, {"explain"}, {"replay"}, {"audit", "verify"}} {
		got := call{dir: dir, args: args}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%v %+v", args, got)
		require.Contains(t, got.stderr, "the journal has no runs yet")
	}
}

func TestUnknownAndAmbiguousRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTest(t, dir, journal.Options{})
	for _, id := range []string{"abcd1111", "abcd2222"} {
		w := beginRun(t, j, id, "n", "One")
		w.exchange("One", "m", 1, w.withText("text of "+id, label.Public, 0))
		w.end("ok", completed("One"))
	}
	for _, command := range [][]string{{"show"}, {"explain"}, {"replay"}, {"audit", "verify"}, {"replay", "abcd2", "--diff"}} {
		for run, want := range map[string]string{"abcd": "2 runs begin with that, abcd2222, abcd1111", "zzzz": "no run begins with that; the newest is abcd2222"} {
			got := call{dir: dir, args: append(slices.Clone(command), run)}.run(t)
			require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
			require.Contains(t, got.stderr, want)
			require.Empty(t, got.stdout)
			got = call{dir: dir, args: append(slices.Clone(command), run, "-o", "json")}.run(t)
			require.Equal(t, "usage", object(t, got.stdout)["error"].(map[string]any)["kind"])
		}
	}
	got := call{dir: dir, args: []string{"show", "abcd1"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "text of abcd1111")
	require.Contains(t, call{dir: dir, args: []string{"show"}}.run(t).stdout, "text of abcd2222")
	require.Contains(t, call{dir: dir, args: []string{"show", ""}}.run(t).stderr, "RUN is empty")
	require.Contains(t, call{dir: dir, args: []string{"replay"}}.run(t).stderr, "no copy of it is stored")
	got = call{dir: dir, args: []string{"show", "abcd1", "Oen"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status)
	require.Contains(t, got.stderr, `unknown task "Oen"`)
}

func TestJournalOfANewerVersionIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTest(t, dir, journal.Options{})
	w := beginRun(t, j, "abcd1111", "n", "One")
	w.end("ok")
	require.NoError(t, j.Close())
	path := filepath.Join(dir, journals.FolderName, journals.FileName)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = file.WriteAt([]byte{0, 0, 0, 99}, 60) // where SQLite has its user_version
	require.NoError(t, err)
	require.NoError(t, file.Close())
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, args := range [][]string{{"runs"}, {"show"}, {"explain"}, {"replay"}, {"audit", "verify"}, {"gc", "--older-than", "0s"}} {
		got := call{dir: dir, args: args}.run(t)
		require.Equal(t, exit.StatusNoRun, got.status, "%v %+v", args, got)
		require.Contains(t, got.stderr, "99")
		require.Contains(t, got.stderr, "newer")
	}
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestDamagedJournalIsReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTest(t, dir, journal.Options{})
	w := beginRun(t, j, "abcd1111", "n", "One")
	w.exchange("One", "m", 1, w.withText(strings.Repeat("words ", 20_000), label.Public, 0))
	w.end("ok", completed("One"))
	require.NoError(t, j.Close())
	path := filepath.Join(dir, journals.FolderName, journals.FileName)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := 4096; i < len(text); i++ {
		text[i] ^= 0xa5
	}
	require.NoError(t, os.WriteFile(path, text, 0o600))
	for _, args := range [][]string{{"runs"}, {"show"}, {"explain"}, {"replay"}, {"audit", "verify"}} {
		got := call{dir: dir, args: args}.run(t)
		require.Equal(t, exit.StatusNoRun, got.status, "%v %+v", args, got)
		require.Contains(t, got.stderr, "the journal is damaged")
		require.Empty(t, got.stdout)
	}
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, text, after)
}

func TestGCRemovesOldRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	at := now.Add(-72 * time.Hour)
	j := openTest(t, dir, journal.Options{Now: func() time.Time { return at }})
	begin := func(id string, when time.Time) *writtenRun {
		run, err := j.Begin(t.Context(), journal.Info{Run: id, Name: id, Time: when})
		require.NoError(t, err)
		return &writtenRun{t: t, run: run, info: run.Info()}
	}
	old := begin("old00000", now.Add(-72*time.Hour))
	old.exchange("One", "m", 1, old.withText(strings.Repeat("long ago ", 20_000), label.Public, 0))
	old.end("ok")
	at = now
	begin("young000", now.Add(-time.Hour)).end("ok")
	live := begin("live0000", now.Add(-72*time.Hour))

	got := call{dir: dir, args: []string{"gc", "--older-than", "2d", "--dry-run"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Regexp(t, `(?s)^old00000 .*\n1 run would be removed\n$`, got.stdout)
	require.Contains(t, got.stderr, "run live0000 is kept")
	require.Len(t, listRuns(t, call{dir: dir}), 3)

	got = call{dir: dir, args: []string{"gc", "--older-than", "48h", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	out := object(t, got.stdout)
	require.Equal(t, []any{"old00000"}, out["runs"])
	require.Equal(t, []any{"live0000"}, out["kept"])
	require.Contains(t, got.stderr, "run live0000 is kept")
	list := listRuns(t, call{dir: dir})
	require.Len(t, list, 2)
	live.end("ok")

	got = call{dir: dir, args: []string{"gc", "--older-than", "0s"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Regexp(t, `^2 runs removed; the journal is .* smaller\n$`, got.stdout)
	require.Empty(t, listRuns(t, call{dir: dir}))
}

func TestShortIDsAreUnique(t *testing.T) {
	t.Parallel()
	list := []journal.Summary{{Run: "0123456789"}, {Run: "0123456799"}, {Run: "r"}, {Run: "abcdefghij"}, {Run: "012345678"}}
	require.Equal(t, map[string]string{"0123456789": "0123456789", "0123456799": "012345679", "r": "r", "abcdefghij": "abcdefgh", "012345678": "012345678"}, journals.ShortIDs(list))
	require.Empty(t, journals.ShortIDs(nil))
}
