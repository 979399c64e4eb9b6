package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/event"
	"github.com/stretchr/testify/require"
)

// eventsIn decodes NDJSON and checks that the events are numbered without a gap.
func eventsIn(t *testing.T, text string) []map[string]any {
	t.Helper()
	require.True(t, strings.HasSuffix(text, "}\n"), "%q", text)
	var all []map[string]any
	for line := range strings.Lines(text) {
		var e map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &e), "%q", line)
		all = append(all, e)
		require.EqualValues(t, len(all), e["seq"])
	}
	require.Equal(t, "run_start", all[0]["type"])
	require.Equal(t, "run_complete", all[len(all)-1]["type"])
	return all
}

// readEvent reads lines until an event of the type.
func readEvent(t *testing.T, lines *bufio.Reader, kind event.Type) {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		require.NoError(t, err, "no event %s", kind)
		var e event.Event
		require.NoError(t, json.Unmarshal([]byte(line), &e), "%q", line)
		if e.Type == kind {
			return
		}
	}
}

func TestEventsInAFile(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": one, "agents.yaml": "agents: [{name: solo}]\n", "tasks.json": `{"tasks":[{"title":"T","description":"d","assignee":"solo"}]}`})
	events := func(got outcome, file string) []map[string]any {
		t.Helper()
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		info, err := os.Stat(filepath.Join(dir, file))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		text, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		return eventsIn(t, string(text))
	}
	got := call{dir: dir, args: strings.Fields("run --offline --events e.ndjson -o json --trace t.jsonl")}.run(t)
	all := events(got, "e.ndjson")
	require.Equal(t, object(t, got.stdout)["runId"], all[0]["runId"])

	got = call{dir: dir, args: strings.Fields("run --offline --events e.ndjson")}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Contains(t, got.stderr, "--events e.ndjson: it exists: add --force to replace it")
	events(call{dir: dir, args: strings.Fields("run --offline --events e.ndjson --force")}.run(t), "e.ndjson")
	events(call{dir: dir, args: strings.Fields("task --file tasks.json --team agents.yaml --offline --events task.ndjson")}.run(t), "task.ndjson")
	events(call{dir: dir, args: strings.Fields("resume --events resumed.ndjson --fresh T")}.run(t), "resumed.ndjson")
}

// TestEventsRefusesFiles covers usage errors, before anything runs.
func TestEventsRefusesFiles(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": one, "old": "old"})
	require.NoError(t, os.Symlink("old", filepath.Join(dir, "link")))
	for args, want := range map[string]string{
		"--events=":                             "--events is empty: name a file",
		"--events - -o json":                    "--events - and the JSON result both need standard output: write the events to a file or to /dev/stderr",
		"--events /dev/stdout -o json":          "--events /dev/stdout and the JSON result both need standard output",
		"--events .":                            "it is a folder",
		"--events no/where":                     "the folder no does not exist",
		"--events link --force":                 "it is a link to old: name that file",
		"--events team.yaml --force":            "--events team.yaml: the command uses this file for something else",
		"--events t.jsonl --trace t.jsonl":      "--events t.jsonl: the command uses this file for something else",
		"--events r.yaml --record r.yaml":       "--events r.yaml: the command uses this file for something else",
		"--events h --trace t --audit-anchor h": "--events h: the command uses this file for something else",
	} {
		got := call{dir: dir, args: strings.Fields("run --offline --no-journal " + args)}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%s: %+v", args, got)
		require.Contains(t, got.stderr+got.stdout, want)
	}
	text, err := os.ReadFile(filepath.Join(dir, "old"))
	require.NoError(t, err)
	require.Equal(t, "old", string(text))
	require.Equal(t, []string{".runteam", "link", "old", "team.yaml"}, clitest.Listing(t, dir))
}

// TestEventsOnStandardOutput checks that stdout has the events and nothing else.
func TestEventsOnStandardOutput(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": one, "script.yaml": "replies: [{text: the answer}]"})
	for _, name := range []string{"-", "/dev/stdout"} {
		got := call{dir: dir, args: strings.Fields("run --offline --script script.yaml --events " + name)}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		eventsIn(t, got.stdout)
		require.NotContains(t, got.stdout, "the answer")
		require.Contains(t, got.stderr, "\nthe answer\n")
	}
	got := call{dir: dir, args: strings.Fields("run --offline --script script.yaml --events /dev/stderr --progress none -o json --no-journal")}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	eventsIn(t, got.stderr)
	require.Equal(t, "ok", object(t, got.stdout)["status"])
}

// TestEventsInAPipe checks that a reader sees each event at once, and the last
// ones also after a signal.
func TestEventsInAPipe(t *testing.T) {
	t.Parallel()
	server := startCounting(t, "Second")
	dir := relayFolder(t)
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	for _, path := range []string{"/dev/fd/3", fifo} {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		cmd := call{dir: dir, args: []string{"run", "--events", path, "-o", "json"}, env: server.env()}.command(t)
		cmd.ExtraFiles = []*os.File{w}
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		require.NoError(t, cmd.Start())
		require.NoError(t, w.Close())
		if path == fifo {
			require.NoError(t, r.Close())
			r, err = os.Open(fifo)
			require.NoError(t, err)
		}
		lines := bufio.NewReader(r)
		readEvent(t, lines, event.TaskComplete) // while Second waits for its reply
		<-server.blockedCalls
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		readEvent(t, lines, event.RunComplete)
		rest, err := io.ReadAll(lines)
		require.NoError(t, err)
		require.Empty(t, rest)
		require.Equal(t, exit.StatusSIGTERM, statusAfter(t, cmd.Wait()), "%s", stderr.String())
		require.Equal(t, "cancelled", object(t, stdout.String())["status"])
		require.NoError(t, r.Close())
	}
}

func TestEventsOfAProcessSubstitution(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	dir := clitest.Folder(t, map[string]string{"team.yaml": one})
	cmd := exec.Command(shell, "-c", `"$0" run --offline --no-journal --events >(cat) -o json >result.json 2>stderr; wait $!`, binary)
	cmd.Dir = dir
	out, err := cmd.Output()
	require.NoError(t, err)
	eventsIn(t, string(out))
}

// TestEventsToAClosedPipe checks that the run continues with one warning.
func TestEventsToAClosedPipe(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/dev/fd/3", "-"} {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		closed := make(chan struct{})
		server := serveModel(t, func(out http.ResponseWriter, _ *http.Request, _ int) {
			<-closed
			reply(out, "the answer")
		})
		cmd := call{dir: clitest.Folder(t, map[string]string{"team.yaml": one}), args: []string{"run", "--no-journal", "--events", path}, env: server.env()}.command(t)
		var stderr bytes.Buffer
		cmd.Stderr, cmd.ExtraFiles = &stderr, []*os.File{w}
		if path == "-" {
			cmd.Stdout = w
		}
		require.NoError(t, cmd.Start())
		_, err = r.Read(make([]byte, 1)) // the run has begun
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.Eventually(t, func() bool { // a process that is about to start another program has a copy for a moment
			_, err := w.Write([]byte{'\n'})
			return err != nil
		}, time.Minute, time.Millisecond)
		require.NoError(t, w.Close())
		close(closed)
		require.Equal(t, exit.StatusOK, statusAfter(t, cmd.Wait()), "%s", stderr.String())
		require.Equal(t, 1, strings.Count(stderr.String(), "runteam: warning: --events "+path+": the reader closed the pipe; the run continues, and no more events are written\n"), "%s", stderr.String())
		require.Equal(t, 1, strings.Count(stderr.String(), "--events"), "%s", stderr.String())
	}
}

// TestEventsOnAFullDisk checks that the error is reported once and the result is printed.
func TestEventsOnAFullDisk(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full")
	}
	got := call{dir: clitest.Folder(t, map[string]string{"team.yaml": one}), args: strings.Fields("run --offline --events /dev/full -o json")}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Equal(t, "ok", object(t, got.stdout)["status"])
	require.Equal(t, 1, strings.Count(got.stderr, "--events"), "%s", got.stderr)
	require.Contains(t, got.stderr, "runteam: --events /dev/full: no space left on device; the events from number 1 on are missing\n")
}

// TestEventsOmitTextAboveTheCaller checks that the events are in the caller's form.
//
// Requirement: G42.
func TestEventsOmitTextAboveTheCaller(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": secretive, "script.yaml": "replies: [{task: Closed, text: the canary}, {text: fine}]"})
	got := call{dir: dir, args: strings.Fields("run --offline --script script.yaml --events e.ndjson --log-level debug")}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	text, err := os.ReadFile(filepath.Join(dir, "e.ndjson"))
	require.NoError(t, err)
	eventsIn(t, string(text))
	require.NotContains(t, string(text)+got.stderr, "canary")
}

// TestLogLevelDebug checks that the log has calls, retries and decisions, and no text.
func TestLogLevelDebug(t *testing.T) {
	t.Parallel()
	got := call{dir: relayFolder(t), args: strings.Fields("run --log-level debug --progress none"), env: startCounting(t).env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	for _, want := range []string{
		`DBG agent called task=First agent=solo attempt=1 model=test-model`, `DBG agent finished task=First agent=solo attempt=1 model=test-model answered_by=test-model endpoint=http:`, `request_id=x finish_reason=stop duration=`,
		`input_tokens=7 output_tokens=3`, `DBG gate decision task=Second agent=solo attempt=1 from=solo to=solo source="dependency `,
	} {
		require.Contains(t, got.stderr, want)
	}
	require.NotContains(t, got.stderr, "Say one")
	require.NotContains(t, got.stderr, "the note")
}
