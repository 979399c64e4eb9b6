package cli

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/workdir"
	"github.com/stretchr/testify/require"
)

// serveToken is the token of the tests.
const serveToken = "token-of-the-tests"

// A served is a runteam serve in this process.
type served struct {
	t      *testing.T
	url    string
	client *http.Client
	stderr *lineWatcher
	signal func(os.Signal)
	wait   func() outcome // waits for the end of the server
	stop   func() outcome // interrupts it, and does the same
}

// A lineWatcher collects what is written, and passes on the first text that matches.
type lineWatcher struct {
	mu    sync.Mutex
	text  strings.Builder
	wants *regexp.Regexp
	found chan string
}

func (w *lineWatcher) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	if m := w.wants.FindString(w.text.String()); m != "" {
		select {
		case w.found <- m:
		default:
		}
	}
	return len(p), nil
}

func (w *lineWatcher) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// serveHere begins runteam serve with arguments in a folder, until the test ends.
func serveHere(t *testing.T, c call) *served {
	t.Helper()
	con, stdout, _ := clitest.Console(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, c.args...)...)
	stderr := &lineWatcher{wants: regexp.MustCompile(`(https?://|listening at )127\.0\.0\.1:\d+`), found: make(chan string, 1)}
	signals := make(chan os.Signal, 4)
	con.Stderr, con.Signals, con.WorkDir, con.ConfigDir = stderr, signals, workdir.Dir(c.dir), t.TempDir()
	con.LookupEnv = func(name string) (string, bool) {
		if name == "RUNTEAM_INSPECT_TOKEN" && !slices.Contains(c.args, "--roles") {
			return serveToken, true
		}
		value, ok := c.env[name]
		return value, ok
	}
	ended := make(chan outcome, 1)
	go func() {
		status := runCommandLine(console.New(*con))
		ended <- outcome{status: status, stdout: stdout.String(), stderr: stderr.String()}
	}()
	s := &served{t: t, client: &http.Client{Transport: &http.Transport{}}, stderr: stderr, signal: func(one os.Signal) { signals <- one }}
	s.wait = sync.OnceValue(func() outcome {
		s.client.CloseIdleConnections()
		return <-ended
	})
	s.stop = func() outcome {
		s.signal(syscall.SIGINT)
		return s.wait()
	}
	select {
	case s.url = <-stderr.found:
		s.url = strings.Replace(s.url, "listening at ", "http://", 1) // it stands behind a proxy, whose address is another one
	case got := <-ended:
		t.Fatalf("it ended: %+v", got)
	}
	t.Cleanup(func() { s.stop() })
	return s
}

// do sends a request, and returns status and body.
func (s *served) do(method, path, body string, headers ...string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+"/api/v1"+path, strings.NewReader(body))
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+serveToken)
	r.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	got, err := s.client.Do(r)
	require.NoError(s.t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	require.NoError(s.t, err)
	return got.StatusCode, string(text)
}

// get returns a document.
func (s *served) get(path string) string {
	s.t.Helper()
	status, text := s.do("GET", path, "")
	require.Equal(s.t, 200, status, "%s: %s", path, text)
	return text
}

// follow opens a stream of events, and returns its lines of data.
func (s *served) follow(ctx context.Context, path string) *bufio.Scanner {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, "GET", s.url+"/api/v1"+path, nil)
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+serveToken)
	r.Header.Set("Accept", "text/event-stream")
	got, err := s.client.Do(r)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = got.Body.Close() })
	require.Equal(s.t, 200, got.StatusCode)
	lines := bufio.NewScanner(got.Body)
	lines.Buffer(nil, 16<<20)
	return lines
}

// await reads a stream until a line contains a text.
func await(t *testing.T, lines *bufio.Scanner, text string) string {
	t.Helper()
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return lines.Text()
		}
	}
	t.Fatalf("the stream has no %q: %v", text, lines.Err())
	return ""
}

// offlineFolder has a spec with an input and a parameter, and the journal of a run of it.
func offlineFolder(t *testing.T) (dir, run string) {
	t.Helper()
	dir = clitest.Folder(t, map[string]string{"team.yaml": `
name: demo
agents: [{name: a, accepts: confidential}, {name: b}]
inputs: {claim: {text: "the claim\u202e of <ann>", classification: confidential}, extra: null}
params: {who: null, lang: en}
tasks:
  - {title: "Read <b>", assignee: a, description: "Read for ${params.who}", uses: [claim, extra]}
  - {title: Write, assignee: b, description: "Write ${params.lang}"}
`, "extra.md": "more"})
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".runteam"), 0o700))
	return dir, ""
}

// What the API answers is what show, explain, questions and artifacts print.
func TestServeAnswersAsTheCommandPrints(t *testing.T) {
	t.Parallel()
	dir, _ := offlineFolder(t)
	spec := filepath.Join(dir, "team.yaml")
	got := call{dir: dir, args: []string{"run", spec, "--offline", "--param", "who=bob", "--input", "extra=" + filepath.Join(dir, "extra.md"), "--progress", "none"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
	s := serveHere(t, call{dir: dir})
	var list struct {
		Runs []struct {
			RunID string `json:"runId"`
			Live  bool
		}
	}
	require.NoError(t, json.Unmarshal([]byte(s.get("/runs")), &list))
	run := list.Runs[0].RunID
	for path, args := range map[string][]string{
		"":                                    {"show", run},
		"/tasks/Write":                        {"show", run, "Write"},
		"/usage":                              {"show", run, "--usage"},
		"/receipts":                           {"explain", run},
		"/receipts?task=Write":                {"explain", run, "Write"},
		"/receipts?contains=claim":            {"explain", run, "--contains", "claim"},
		"/receipts?contains=claim&task=Write": {"explain", run, "Write", "--contains", "claim"},
		"/artifacts":                          {"artifacts", run},
		"/questions":                          {"questions", run},
	} {
		printed := call{dir: dir, args: append(args, "-o", "json")}.run(t)
		require.Equal(t, exit.StatusOK, printed.status, printed.stderr)
		require.Equal(t, printed.stdout, s.get("/runs/"+run+path), "%v", args)
	}
	require.Equal(t, s.get("/runs/"+run), s.get("/runs/"+run[:8]), "a beginning of the ID is enough")
	require.Contains(t, s.get("/runs/"+run+"/receipts"), `\u202e`, "what could deceive is escaped")
	for path, code := range map[string]string{
		"/runs/none": "not_found", "/runs/" + run + "/tasks/none": "not_found", "/runs/" + run + "/receipts?task=none": "not_found",
		"/runs/none/events": "not_found", "/runs/none/stream": "not_found", "/runs?before=none": "not_found",
	} {
		_, text := s.do("GET", path, "")
		require.Contains(t, text, `"code":"`+code+`"`, path)
	}
	status, text := s.do("GET", "/runs/"+run+"/stream", "")
	require.Equal(t, []any{200, ": \n\nevent: end\ndata: {}\n\n"}, []any{status, text}, "a client may come after the end")
	status, text = s.do("POST", "/runs/"+run+"/cancel", "{}")
	require.Equal(t, 409, status, text)
	require.Contains(t, text, "is not running (ok)")
	ended := s.stop()
	require.Equal(t, exit.StatusOK, ended.status, ended.stderr)
}

// The events of a run are sent from the journal, from any position on, and end with the run.
func TestServeSendsTheEventsOfARun(t *testing.T) {
	t.Parallel()
	dir, _ := offlineFolder(t)
	spec, events := filepath.Join(dir, "team.yaml"), filepath.Join(dir, "events.jsonl")
	got := call{dir: dir, args: []string{"run", spec, "--offline", "--param", "who=bob", "--input", "extra=" + filepath.Join(dir, "extra.md"), "--progress", "none", "--events", events}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
	s := serveHere(t, call{dir: dir})
	_, id, _ := strings.Cut(s.get("/runs"), `"runId":"`)
	id = id[:36]
	var all struct{ Events []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(s.get("/runs/"+id+"/events")), &all))
	var written []map[string]any
	for line := range strings.Lines(clitest.Contents(t, events)) {
		e := object(t, line)
		delete(e, "receipt") // which the prompts have, and the calls the results
		delete(e, "call")
		written = append(written, e)
	}
	require.ElementsMatch(t, written, all.Events)

	var ids, tail []string
	lines := s.follow(t.Context(), "/runs/"+id+"/events")
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			ids = append(ids, text)
		}
	}
	require.Len(t, ids, len(written))
	lines = s.follow(t.Context(), "/runs/"+id+"/events?after="+ids[len(ids)-3])
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			tail = append(tail, text)
		}
	}
	require.Equal(t, ids[len(ids)-2:], tail)
}

// A run is started, watched, steered and canceled, and the end of the server ends it.
func TestServeStartsAndSteersRuns(t *testing.T) {
	t.Parallel()
	server := startCounting(t, "Second")
	dir := relayFolder(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".runteam"), 0o700))
	s := serveHere(t, call{dir: dir, args: []string{filepath.Join(dir, "team.yaml")}, env: server.env()})
	require.JSONEq(t, `[{"name":"relay","path":"`+filepath.Join(dir, "team.yaml")+`","inputs":[{"name":"note","classification":"internal","hasDefault":true}],"params":[],"goal":false}]`, s.get("/specs"))
	start := func(body string) (int, string) { return s.do("POST", "/runs", body) }
	for body, status := range map[string]int{
		`{"spec":"none"}`: 404, `{"spec":"relay","inputs":{"nope":"x"}}`: 422, `{"spec":"relay","params":{"a/b":"x"}}`: 422, `{"spec":"relay","goal":" "}`: 422, `{"spec":7}`: 400,
	} {
		got, text := start(body)
		require.Equal(t, status, got, "%s: %s", body, text)
	}
	status, text := start(`{"spec":"relay","inputs":{"note":"the note of a request"}}`)
	require.Equal(t, 202, status, text)
	run := object(t, text)["runId"].(string)
	<-server.blockedCalls
	require.Contains(t, s.get("/runs"), `"live":true`)
	require.Contains(t, s.get("/runs/"+run+"/receipts?contains=note+of+a+request"), `"kind":"input"`)
	lines := s.follow(t.Context(), "/runs/"+run+"/events")
	await(t, lines, `"type":"run_start"`)
	status, text = s.do("POST", "/runs/"+run+"/pause", `{"reason":"lunch"}`)
	require.Equal(t, 200, status, text)
	paused := object(t, strings.TrimPrefix(await(t, lines, `"type":"steered"`), "data: ")+"\n")
	require.Equal(t, []any{"pause", "lunch"}, []any{paused["code"], paused["message"]})
	require.NotEmpty(t, paused["from"], "who did it is recorded")
	status, text = s.do("POST", "/runs/"+run+"/pause", `{}`)
	require.Equal(t, 409, status, text)
	require.Contains(t, text, "it is paused already")
	require.Eventually(t, func() bool { return strings.Contains(s.get("/runs"), `"status":"paused"`) }, 5*time.Second, 20*time.Millisecond)
	for _, tt := range []struct {
		path, body string
		status     int
	}{
		{"/nodes/none/interrupt", `{"text":"x"}`, 409}, {"/messages", `{"text":"x"}`, 422}, {"/messages", `{"agent":"nobody","text":"x"}`, 409}, {"/nodes/Third/rerun", "{}", 409},
	} {
		status, text := s.do("POST", "/runs/"+run+tt.path, tt.body)
		require.Equal(t, tt.status, status, "%s: %s", tt.path, text)
	}

	// Two people interrupt at once: both commands are recorded.
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			status, text := s.do("POST", "/runs/"+run+"/nodes/Second/interrupt", `{"text":"hurry"}`)
			if status != 200 && status != 409 {
				t.Errorf("%d: %s", status, text)
			}
		})
	}
	both.Wait()
	status, text = s.do("POST", "/runs/"+run+"/resume", "")
	require.Equal(t, 200, status, text)
	<-server.blockedCalls
	ended := s.stop()
	require.Equal(t, exit.StatusOK, ended.status, ended.stderr)
	found, err := stored(t, dir).Find(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, "cancelled", found.Status, "it was left resumable")
	require.Nil(t, found.Holder)
}

// A run of another process is watched and steered through the journal, and its removal ends the watch.
func TestServeWatchesRunsOfOtherProcesses(t *testing.T) {
	t.Parallel()
	server, dir := startCounting(t, "Second"), relayFolder(t)
	running := server.startBlocked(t, call{dir: dir, args: []string{"run", "--progress", "none"}, env: server.env()})
	s := serveHere(t, call{dir: dir})
	_, id, _ := strings.Cut(s.get("/runs"), `"runId":"`)
	id = id[:36]
	lines := s.follow(t.Context(), "/runs/"+id+"/events")
	await(t, lines, `"title":"Second"`)
	status, text := s.do("GET", "/runs/"+id+"/stream", "")
	require.Equal(t, 404, status, text)
	require.Contains(t, text, "another process works on the run")
	status, text = s.do("POST", "/runs/"+id+"/nodes/Second/cancel", `{"reason":"why"}`)
	require.Equal(t, 200, status, text)
	await(t, lines, `"type":"steered"`)
	await(t, lines, `"type":"run_complete"`)
	await(t, lines, "event: end")
	_ = running.Wait()

	began := s.follow(t.Context(), "/runs/"+id+"/events")
	await(t, began, `"type":"run_start"`)
	j, err := journal.Open(filepath.Join(dir, ".runteam", "runs.db"), journal.Options{})
	require.NoError(t, err)
	defer j.Close() //nolint:errcheck // it ends with the test
	_, _, err = j.Remove(t.Context(), time.Now().Add(time.Hour))
	require.NoError(t, err)
	status, _ = s.do("GET", "/runs/"+id, "")
	require.Equal(t, 404, status)
}

// The stream of a run whose process was killed ends, and the run can be removed.
func TestTheStreamOfAKilledRunEnds(t *testing.T) {
	t.Parallel()
	_, dir := killedRelay(t)
	s := serveHere(t, call{dir: dir})
	_, id, _ := strings.Cut(s.get("/runs"), `"runId":"`)
	id = id[:36]
	lines := s.follow(t.Context(), "/runs/"+id+"/events")
	await(t, lines, `"type":"run_start"`)
	await(t, lines, "event: end")
	j, err := journal.Open(filepath.Join(dir, ".runteam", "runs.db"), journal.Options{})
	require.NoError(t, err)
	defer j.Close() //nolint:errcheck // it ends with the test
	_, _, err = j.Remove(t.Context(), time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.JSONEq(t, `{"runs":[],"more":false}`, s.get("/runs"))
}

func TestServeRefusesWhatItCannotServe(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": one, "bad.yaml": "agents: 7\n", "notes.txt": "my notes\n", "token.txt": "0123456789abcdef\n"})
	newer := filepath.Join(dir, "newer.db")
	makeNewer(t, newer)
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close() //nolint:errcheck // it is only taken
	for _, tt := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--accepts", "secret"}, exit.StatusUsage, "--accepts secret: what is secret is not shown in a browser"},
		{[]string{"--accepts", "top"}, exit.StatusUsage, `--accepts "top": write public, internal or confidential` + "\n"},
		{[]string{"--offline"}, exit.StatusUsage, "--offline is for the runs of a SPEC"},
		{[]string{filepath.Join(dir, "team.yaml"), "--read-only"}, exit.StatusUsage, "--read-only starts no runs"},
		{[]string{filepath.Join(dir, "none.yaml")}, exit.StatusUsage, "none.yaml"},
		{[]string{filepath.Join(dir, "bad.yaml")}, exit.StatusUsage, "bad.yaml:1:9"},
		{[]string{"-"}, exit.StatusUsage, "SPEC -: standard input can be read only once"},
		{nil, exit.StatusUsage, `there is no journal here or in a folder above, so there are no runs to show; write "runteam serve SPEC" to start runs of a spec file in the browser; "runteam init" writes a first one; --journal FILE names another journal` + "\n"},
		{[]string{"--token-file", filepath.Join(dir, "token.txt")}, exit.StatusUsage, "there is no journal here"},
		{[]string{filepath.Join(dir, "team.yaml"), "--token-file", filepath.Join(dir, "token.txt"), "--listen", taken.Addr().String()}, exit.StatusUsage, "already in use"},
		{[]string{filepath.Join(dir, "team.yaml"), "--listen", "nowhere"}, exit.StatusUsage, "--listen nowhere: address nowhere: missing port in address; write ADDRESS:PORT of this computer"},
		{[]string{filepath.Join(dir, "team.yaml"), "--listen", "7338"}, exit.StatusUsage, "--listen 7338: address 7338: missing port in address; write 127.0.0.1:7338\n"},
		{[]string{filepath.Join(dir, "team.yaml"), "--listen", "127.0.0.1:99999"}, exit.StatusUsage, "--listen 127.0.0.1:99999: address 99999: invalid port; write ADDRESS:PORT of this computer, such as 127.0.0.1:0 for a port that is free\n"},
		{[]string{filepath.Join(dir, "team.yaml"), "--listen", "127.0.0.1:http-x"}, exit.StatusUsage, "--listen 127.0.0.1:http-x: "},
		{[]string{filepath.Join(dir, "team.yaml"), "--listen", "192.0.2.1:0"}, exit.StatusUsage, "--listen 192.0.2.1:0: bind: "},
		{[]string{filepath.Join(dir, "team.yaml"), "--listen", "::1:0"}, exit.StatusUsage, "--listen ::1:0: address ::1:0: too many colons in address; write ADDRESS:PORT"},
		{[]string{filepath.Join(dir, "team.yaml"), "--listen", "http://127.0.0.1:7337"}, exit.StatusUsage, "--listen http://127.0.0.1:7337: address http://127.0.0.1:7337: too many colons in address; write ADDRESS:PORT"},
		{[]string{filepath.Join(dir, "team.yaml"), "--listen", ""}, exit.StatusUsage, "--listen is empty: write ADDRESS:PORT of this computer, such as 127.0.0.1:0"},
		{[]string{filepath.Join(dir, "team.yaml"), "--listen", taken.Addr().String()}, exit.StatusUsage, "already in use; another runteam serve may have it: use its page, or --listen 127.0.0.1:0"},
		{[]string{filepath.Join(dir, "team.yaml"), filepath.Join(dir, "team.yaml")}, exit.StatusUsage, "it is named twice; name each spec once"},
		{[]string{filepath.Join(dir, "team.yaml"), "--journal", filepath.Join(dir, "none", "j.db")}, exit.StatusUsage, "does not exist; create it first"},
		{[]string{filepath.Join(dir, "team.yaml"), "--journal", filepath.Join(dir, "notes.txt")}, exit.StatusNoRun, "use --journal FILE for another file\n"},
		{[]string{filepath.Join(dir, "team.yaml"), "--token-file", filepath.Join(dir, "notes.txt")}, exit.StatusUsage, "the file exists and has no token; name another file"},
		{[]string{filepath.Join(dir, "team.yaml"), "--token-file", filepath.Join(dir, "none", "x")}, exit.StatusUsage, "no such file or directory; name a file in a folder that exists and that you may write to"},
		{[]string{filepath.Join(dir, "team.yaml"), "--token-file", dir}, exit.StatusUsage, "is a directory; name a file in a folder that exists and that you may write to"},
		{[]string{"--journal", newer}, exit.StatusNoRun, "newer"},
	} {
		got := call{dir: t.TempDir(), args: append([]string{"serve"}, tt.args...)}.run(t)
		require.Equal(t, tt.status, got.status, "%v: %+v", tt.args, got)
		require.Contains(t, got.stderr, tt.want, "%v", tt.args)
	}
	require.Equal(t, "my notes\n", clitest.Contents(t, filepath.Join(dir, "notes.txt")))
	require.Equal(t, "0123456789abcdef\n", clitest.Contents(t, filepath.Join(dir, "token.txt")), "of a server that cannot begin")
}

// Without a journal, serve says how to get a page: with the spec of the folder, or with a new one. It creates nothing.
func TestServeWithoutAJournalSaysWhereToBegin(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"team.yaml": `so there are no runs to show; write "runteam serve team.yaml" to start runs of that spec in the browser; --journal FILE`,
		"team.json": `write "runteam serve team.json" to start`,
		"notes.txt": `write "runteam serve SPEC" to start runs of a spec file in the browser; "runteam init" writes a first one`,
	} {
		dir := clitest.Folder(t, map[string]string{name: "{}"})
		got := call{dir: dir, args: []string{"serve"}}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
		require.Contains(t, got.stderr, want)
		require.NoDirExists(t, filepath.Join(dir, ".runteam"))
	}
}

// The token of a file is a new one, which only its owner can read.
func TestServeWritesItsToken(t *testing.T) {
	t.Parallel()
	dir, _ := offlineFolder(t)
	path := filepath.Join(dir, "token")
	s := serveHere(t, call{dir: dir, args: []string{filepath.Join(dir, "team.yaml"), "--offline", "--token-file", path}})
	at, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), at.Mode())
	require.Equal(t, serveToken+"\n", clitest.Contents(t, path), "that of the environment")
	require.Contains(t, s.get("/viewer"), `"canStart":true`)
	second := []string{"serve", filepath.Join(dir, "team.yaml"), "--offline", "--listen", "127.0.0.1:0", "--token-file", path}
	got := call{dir: dir, args: second}.run(t)
	require.Equal(t, exit.StatusUsage, got.status)
	require.Contains(t, got.stderr, "another runteam serve that still works uses this file; name another file")
	require.Equal(t, serveToken+"\n", clitest.Contents(t, path))
	ended := s.stop()
	left, err := filepath.Glob(filepath.Join(dir, ".runteam-token-*"))
	require.NoError(t, err)
	require.Empty(t, left)
	serveHere(t, call{dir: dir, args: []string{filepath.Join(dir, "team.yaml"), "--offline", "--token-file", path}}).stop()
	require.Regexp(t, `(?m)^open http://127\.0\.0\.1:\d+/login\?key=\w{20,}$`, ended.stderr)
}

// run --inspect prints a link to the run, and ends with it.
func TestRunInspect(t *testing.T) {
	t.Parallel()
	dir, _ := offlineFolder(t)
	args := []string{"run", filepath.Join(dir, "team.yaml"), "--offline", "--inspect", "--param", "who=bob", "--input", "extra=" + filepath.Join(dir, "extra.md")}
	got := call{dir: dir, args: args}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
	require.Regexp(t, `(?m)^runteam: the inspector of the run: http://127\.0\.0\.1:\d+/login\?key=\w{20,}$`, got.stderr)
	got = call{dir: dir, args: append(args, "--no-journal")}.run(t)
	require.Equal(t, exit.StatusUsage, got.status)
	require.Contains(t, got.stderr, "--inspect shows the run from the journal: leave out --no-journal, or --inspect")
}

// makeNewer makes a journal of a version that is not known.
func makeNewer(t *testing.T, path string) {
	t.Helper()
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	require.NoError(t, j.Close())
	db, err := sql.Open("sqlite", path) // the driver of the journal
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "pragma user_version = 1000")
	require.NoError(t, err)
	require.NoError(t, db.Close())
}
