package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/pgtest"
	"github.com/runteam/runteam/label"
)

// meter is a spec with what a submission may give: a text and a parameter.
const meter = `
name: meter
model: m
params: {month: null}
inputs: {reading: {classification: confidential}}
agents:
  - {name: reader, accepts: confidential, systemPrompt: You read meters.}
  - {name: editor, accepts: confidential, backend: {kind: person}}
tasks:
  - {title: Read, assignee: reader, uses: [reading], description: "Read the meter of ${params.month}."}
  - {title: Confirm, assignee: editor, dependsOn: [Read], description: Is that right?}
`

// A shop has a folder with a spec, and a journal that its commands and servers share.
type shop struct {
	t   *testing.T
	dir string
	env map[string]string
}

// inBothShops runs a test with a journal in a file and in PostgreSQL.
func inBothShops(t *testing.T, files map[string]string, test func(t *testing.T, s *shop)) {
	t.Parallel()
	for name, place := range map[string]func(t *testing.T, dir string) string{
		"file":     func(_ *testing.T, dir string) string { return filepath.Join(dir, "runs.db") },
		"postgres": func(t *testing.T, _ string) string { return pgtest.Address(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, files)
			model := serveModel(t, func(w http.ResponseWriter, r *http.Request, _ int) {
				prompt, _ := io.ReadAll(r.Body)
				var said strings.Builder
				said.WriteString("I see")
				for _, word := range []string{"canary-4711", "June", "root:"} {
					if strings.Contains(string(prompt), word) {
						said.WriteString(" " + word)
					}
				}
				reply(w, said.String()+".")
			})
			test(t, &shop{t, dir, map[string]string{journals.EnvJournalKey: journalTestKey, journals.EnvJournal: place(t, dir), "OPENAI_BASE_URL": model.URL + "/v1"}})
		})
	}
}

// run runs a command, which ends with a status.
func (s *shop) run(status int, args ...string) outcome {
	s.t.Helper()
	got := (call{bare: true, dir: s.dir, args: args, env: s.env}).run(s.t)
	require.Equal(s.t, status, got.status, "%q: %+v", args, got)
	return got
}

// work begins a worker, which ends with the test.
func (s *shop) work(args ...string) *served {
	s.t.Helper()
	return serveHere(s.t, call{dir: s.dir, args: append([]string{"team.yaml", "--work", "2"}, args...), env: s.env})
}

// status returns the status of a run.
func (s *shop) status(run string) string {
	s.t.Helper()
	var list []struct{ RunID, Status string }
	require.NoError(s.t, json.Unmarshal([]byte(s.run(exit.StatusOK, "runs", "-o", "json").stdout), &list))
	for _, r := range list {
		if r.RunID == run {
			return r.Status
		}
	}
	return ""
}

// until waits until a run has a status.
func (s *shop) until(run, status string) {
	s.t.Helper()
	for until := time.Now().Add(time.Minute); s.status(run) != status; time.Sleep(50 * time.Millisecond) {
		require.False(s.t, time.Now().After(until), "run %s is not %s", run, status)
	}
}

// verified waits until the record of a run that has ended is closed, and consistent.
func (s *shop) verified(run string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		got := (call{bare: true, dir: s.dir, args: []string{"audit", "verify", run}, env: s.env}).run(s.t)
		return got.status == exit.StatusOK && strings.Contains(got.stdout, "consistent")
	}, time.Minute, 50*time.Millisecond)
}

var meterFiles = map[string]string{"team.yaml": meter, "reading.txt": "canary-4711 kWh"}

func TestAWorkerTakesWhatIsSubmitted(t *testing.T) {
	inBothShops(t, meterFiles, func(t *testing.T, s *shop) {
		id := strings.TrimSpace(s.run(exit.StatusOK, "submit", "team.yaml", "--input", "reading=reading.txt", "--param", "month=June", "--id", "june").stdout)
		require.Equal(t, journal.Queued, s.status(id))
		again := s.run(exit.StatusOK, "submit", "team.yaml", "--input", "reading=reading.txt", "--param", "month=June", "--id", "june")
		require.Equal(t, id, strings.TrimSpace(again.stdout))
		require.Contains(t, again.stderr, "submitted before")

		require.NoError(t, os.Remove(filepath.Join(s.dir, "reading.txt")), "the worker has the text from the journal")
		s.work()
		s.until(id, "suspended")
		require.Contains(t, s.run(exit.StatusOK, "show", id, "Read").stdout, "I see canary-4711 June.")
		s.run(exit.StatusOK, "answer", id, "Confirm", "yes")
		s.until(id, "ok")
		s.verified(id)
	})
}

func TestSubmitFindsWhatIsWrong(t *testing.T) {
	inBothShops(t, meterFiles, func(t *testing.T, s *shop) {
		for _, tt := range []struct{ args, want string }{
			{"", "month"},
			{"--param month=June", "reading"},
			{"--param month=June --input other=reading.txt", "other"},
			{"--param month=June --input reading=none.txt", "none.txt"},
			{"--param month=June --input reading=reading.txt --at tomorrow", "2026-12-01T06:00:00Z"},
		} {
			got := s.run(exit.StatusUsage, append([]string{"submit", "team.yaml"}, strings.Fields(tt.args)...)...)
			require.Contains(t, got.stderr, tt.want, tt.args)
			require.Empty(t, got.stdout)
		}
		require.Contains(t, s.run(exit.StatusOK, "runs").stderr, "no runs")
	})
}

// Who can write to the queue gives texts and names, and chooses no file, program, endpoint or label of the worker.
func TestTheQueueChoosesNothingOfAWorker(t *testing.T) {
	inBothShops(t, meterFiles, func(t *testing.T, s *shop) {
		id := strings.TrimSpace(s.run(exit.StatusOK, "submit", "team.yaml", "--input", "reading=reading.txt", "--param", "month=June").stdout)
		flags := &journals.Flags{}
		con, _, _ := clitest.Console(t)
		con.LookupEnv = func(name string) (string, bool) { v, ok := s.env[name]; return v, ok }
		j, _, err := journals.Open(con, flags, journals.ToChange)
		require.NoError(t, err)
		defer j.Close() //nolint:errcheck // it ends with the test
		stored, err := j.Load(t.Context(), id)
		require.NoError(t, err)
		queue := mustQueue(t, j, id)
		for i, evil := range []struct {
			invocation string
			files      []journal.File
			want       string
		}{
			{`{"found":"/x","inputs":["reading=/etc/passwd"],"params":["month"]}`, []journal.File{{Path: "--param month", Text: "June"}}, `input "reading"`},
			{`{"found":"/x","spec":"evil.yaml","inputs":["reading=reading.txt"],"models":["reader=evil"],"params":["month"],"script":"evil.yaml","offline":true}`,
				[]journal.File{{Path: "reading.txt", Text: "evil"}, {Path: "--input reading", Text: "canary-4711"}, {Path: "--param month", Text: "June"}, {Path: "team.yaml", Text: "name: evil"}}, ""},
		} {
			info := stored.Info
			info.Run, info.Invocation, info.Files, info.Label = "evil"+string(rune('0'+i)), []byte(evil.invocation), evil.files, label.Public
			_, _, err := j.Submit(t.Context(), journal.Submission{Info: info, Spec: queue.Spec, Version: queue.Version, By: "mallory"})
			require.NoError(t, err)
		}
		s.work()
		s.until("evil0", journal.SetAside)
		require.Contains(t, mustQueue(t, j, "evil0").Aside, "could not begin")
		s.until("evil1", "suspended")
		require.Contains(t, s.run(exit.StatusOK, "show", "evil1", "Read").stdout, "I see canary-4711 June.")
		require.NotContains(t, s.run(exit.StatusOK, "show", "evil1", "-o", "json").stdout, "evil.yaml")
	})
}

func mustQueue(t *testing.T, j *journal.Journal, id string) *journal.QueuePlace {
	t.Helper()
	found, err := j.Find(t.Context(), id)
	require.NoError(t, err)
	require.NotNil(t, found.Queue)
	return found.Queue
}

// A worker reads a list as the command that submitted it: by the ending of its file.
func TestAWorkerReadsSubmittedLists(t *testing.T) {
	files := map[string]string{"rows.csv": "month\nJune\nMay\n", "rows.jsonl": "{\"month\":\"June\"}\n{\"month\":\"May\"}\n", "team.yaml": `
name: months
model: m
inputs: {rows: {classification: internal}}
agents: [{name: reader, systemPrompt: You read.}]
tasks: [{title: Read, assignee: reader, description: Read it., forEach: {input: rows, as: row, maxItems: 9}}]
`}
	inBothShops(t, files, func(t *testing.T, s *shop) {
		s.work()
		for _, rows := range []string{"rows.csv", "rows.jsonl"} {
			id := strings.TrimSpace(s.run(exit.StatusOK, "submit", "--input", "rows="+rows).stdout)
			s.until(id, "ok")
			require.Contains(t, s.run(exit.StatusOK, "show", id).stdout, "I see June.")
		}
	})
}

// A worker leaves runs of another version alone, until it has that version.
func TestAWorkerLeavesOtherVersionsAlone(t *testing.T) {
	inBothShops(t, meterFiles, func(t *testing.T, s *shop) {
		other := strings.Replace(meter, "You read meters.", "You read gas meters.", 1)
		s.write("team.yaml", other)
		id := strings.TrimSpace(s.run(exit.StatusOK, "submit", "team.yaml", "--input", "reading=reading.txt", "--param", "month=June").stdout)
		s.write("team.yaml", meter)
		s.work()
		mine := strings.TrimSpace(s.run(exit.StatusOK, "submit", "team.yaml", "--input", "reading=reading.txt", "--param", "month=June").stdout)
		s.until(mine, "suspended")
		require.Equal(t, journal.Queued, s.status(id))
		require.Contains(t, s.run(exit.StatusOK, "runs").stdout, "which no worker serves now")
		s.write("team.yaml", other)
		s.until(id, "suspended")
	})
}

func (s *shop) write(name, text string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
}

func TestSubmitWaits(t *testing.T) {
	files := map[string]string{"team.yaml": `
name: hello
model: m
agents: [{name: greeter, systemPrompt: You greet.}]
tasks: [{title: Greet, assignee: greeter, description: Greet.}]
`}
	inBothShops(t, files, func(t *testing.T, s *shop) {
		w := s.work()
		got := s.run(exit.StatusOK, "submit", "--wait")
		require.Equal(t, "I see.\n", got.stdout)
		w.stop()
		id := strings.TrimSpace(s.run(exit.StatusOK, "submit", "--at", "2h").stdout)
		s.run(exit.StatusOK, "cancel", id)
		require.Equal(t, "cancelled", s.status(id))
		s.run(exit.StatusOK, "submit", "--priority", "3")
		require.Contains(t, s.run(exit.StatusOK, "resume").stderr, "waits for a worker")
	})
}

func TestARunWhoseWorkerIsGoneIsPausedAndCanceled(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, meterFiles)
	s := &shop{t, dir, map[string]string{journals.EnvJournalKey: journalTestKey, journals.EnvJournal: filepath.Join(dir, "runs.db")}}
	id := strings.TrimSpace(s.run(exit.StatusOK, "submit", "team.yaml", "--input", "reading=reading.txt", "--param", "month=June").stdout)
	key, err := journal.ParseKey([]byte(journalTestKey))
	require.NoError(t, err)
	gone := journal.ThisHolder()
	gone.PID, gone.Started = 1<<22+1, "1" // no process has it
	j, err := journal.Open(s.env[journals.EnvJournal], journal.Options{Key: key, Holder: &gone})
	require.NoError(t, err)
	defer j.Close() //nolint:errcheck // its run was taken
	queue := mustQueue(t, j, id)
	_, err = j.Claim(t.Context(), journal.Worker{Serves: []journal.Served{{Spec: queue.Spec, Version: queue.Version}}})
	require.NoError(t, err)
	require.Equal(t, journal.Interrupted, s.status(id))
	s.run(exit.StatusOK, "pause", id)
	require.Equal(t, journal.Paused, s.status(id))
	s.run(exit.StatusOK, "resume", id)
	require.Equal(t, journal.Queued, s.status(id))
	s.run(exit.StatusOK, "cancel", id)
	require.Equal(t, "cancelled", s.status(id))
}

// gc removes no run that a worker has yet to do.
func TestGCKeepsWhatWaitsForAWorker(t *testing.T) {
	inBothShops(t, meterFiles, func(t *testing.T, s *shop) {
		id := strings.TrimSpace(s.run(exit.StatusOK, "submit", "team.yaml", "--input", "reading=reading.txt", "--param", "month=June", "--at", "2h").stdout)
		require.Contains(t, s.run(exit.StatusOK, "gc", "--older-than", "0s").stderr, "waits for a worker")
		require.Equal(t, journal.Queued, s.status(id))
		s.run(exit.StatusOK, "cancel", id)
		require.Contains(t, s.run(exit.StatusOK, "gc", "--older-than", "0s").stdout, "1 run removed")
	})
}
