package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/scripted"
)

// TestSessions runs the terminal sessions in testdata/script, each in a folder of its own, which is the
// user's home. Beside the commands of the package testscript they have these:
//
//	runteam ARG… [<FILE]     runs the command in this process; "!" expects a status other than 0
//	status N                 compares the exit status of the last runteam
//	usage 'TEXT' ARG…        expects a usage error that contains TEXT: one line, or with -o json an error
//	runid NAME               sets the variable to the ID of the run that the last runteam named
//	capture NAME 'REGEXP'    sets the variable to the first group of a match in stdout or stderr
//	same NAME                compares stdout with what the first "same NAME" of the script saw
//	stable                   replaces run IDs, times and durations in the last stdout and stderr
//	expand FILE…             replaces $NAME in files; ${dollar} is a dollar sign
//	edit FILE OLD NEW        replaces a text that the file has
//	repo PATH…               copies files, or what is in a folder, of the repository into the working folder
//	endpoint NAME [SCRIPT]   starts an endpoint that answers from a script; $NAME is its URL without /v1
//	calls NAME N             compares the number of model calls since the last calls, called or requests
//	called NAME TITLE…       compares the tasks of these calls, sorted
//	requests NAME            prints these calls: path, model, key and headers that begin with X-
//
// With -update, a file that cmp compares with an output is rewritten.
func TestSessions(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		UpdateScripts:      clitest.Updates(),
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Values[sessionKey{}] = &session{endpoints: map[string]*sessionEndpoint{}, outputs: map[string]string{}}
			env.Setenv("PATH", os.Getenv("PATH"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("NO_PROXY", "*")
			env.Setenv("dollar", "$")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"runteam":  sessionRunteam,
			"status":   sessionStatus,
			"usage":    sessionUsage,
			"runid":    sessionRunID,
			"capture":  sessionCapture,
			"same":     sessionSame,
			"stable":   sessionStable,
			"expand":   sessionExpand,
			"edit":     sessionEdit,
			"repo":     sessionRepo,
			"endpoint": sessionStartEndpoint,
			"calls":    sessionCalls,
			"called":   sessionCalled,
			"requests": sessionRequests,
		},
	})
}

// A session is the state of one script.
type session struct {
	status    int // of the last runteam
	endpoints map[string]*sessionEndpoint
	outputs   map[string]string // by the name of "same"
}

type sessionKey struct{}

func sessionOf(ts *testscript.TestScript) *session { return ts.Value(sessionKey{}).(*session) }

// runSession runs a command line in the folder and the environment of the script.
func runSession(ts *testscript.TestScript, args []string) outcome {
	stdin := ""
	if n := len(args) - 1; n >= 0 && strings.HasPrefix(args[n], "<") {
		stdin, args = ts.ReadFile(args[n][1:]), args[:n]
	}
	lookupEnv := func(name string) (string, bool) {
		value := ts.Getenv(name)
		return value, value != "" // a script unsets a variable with NAME=
	}
	var stdout bytes.Buffer
	got := runLine(args, ts.MkAbs("."), lookupEnv, strings.NewReader(stdin), &stdout)
	got.stdout = stdout.String()
	return got
}

func sessionRunteam(ts *testscript.TestScript, neg bool, args []string) {
	got := runSession(ts, args)
	sessionOf(ts).status = got.status
	_, _ = io.WriteString(ts.Stdout(), got.stdout)
	_, _ = io.WriteString(ts.Stderr(), got.stderr)
	if neg == (got.status == exit.StatusOK) {
		ts.Fatalf("status %d", got.status)
	}
}

func sessionStatus(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	if got := strconv.Itoa(sessionOf(ts).status); len(args) != 1 || got != args[0] {
		ts.Fatalf("status %s, not %s", got, strings.Join(args, " "))
	}
}

func sessionUsage(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	want, args := args[0], args[1:]
	got := runSession(ts, args)
	switch {
	case got.status != exit.StatusUsage:
		ts.Fatalf("status %d\n[stdout]\n%s[stderr]\n%s", got.status, got.stdout, got.stderr)
	case got.stdout != "":
		requireUsageObject(ts, got, want) // a form that always prints JSON
	case !strings.Contains(got.stderr, want) || strings.Count(got.stderr, "\n") != 1:
		ts.Fatalf("not one line with %q\n[stderr]\n%s", want, got.stderr)
	}
	if !slices.Contains(args, "-o") && !slices.Contains(args, "--output") && !slices.Contains(args, "--pretty") {
		requireUsageObject(ts, runSession(ts, append(slices.Clone(args), "-o", "json")), want)
	}
}

// requireUsageObject compares the error that a command prints as JSON.
func requireUsageObject(ts *testscript.TestScript, got outcome, want string) {
	var doc struct {
		Error struct{ Kind, Message string }
	}
	if err := json.Unmarshal([]byte(got.stdout), &doc); err != nil || got.status != exit.StatusUsage || got.stderr != "" ||
		doc.Error.Kind != string(exit.KindUsage) || !strings.Contains(doc.Error.Message, want) {
		ts.Fatalf("-o json: status %d, not a usage error with %q\n[stdout]\n%s[stderr]\n%s", got.status, want, got.stdout, got.stderr)
	}
}

func sessionRunID(ts *testscript.TestScript, neg bool, args []string) {
	sessionCapture(ts, neg, append(args, `(?:^Run |"runId":")([0-9a-f]{8})(?: is saved|-)`))
}

func sessionCapture(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	found := pattern.FindStringSubmatch(ts.ReadFile("stdout") + ts.ReadFile("stderr"))
	if found == nil {
		ts.Fatalf("no match for %s in stdout and stderr", args[1])
	}
	ts.Setenv(args[0], found[1])
}

func sessionSame(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	s, got := sessionOf(ts), ts.ReadFile("stdout")
	if want, ok := s.outputs[args[0]]; ok && want != got {
		ts.Fatalf("stdout differs from the first %q:\n%s", args[0], want)
	}
	s.outputs[args[0]] = got
}

// changing finds what differs between two equal runs, and holds its replacement.
var changing = []struct {
	pattern *regexp.Regexp
	stable  string
}{
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "RUN"},
	{regexp.MustCompile(`\b[0-9a-f]{8}\b`), "RUN"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?Z?)?`), "TIME"},
	{regexp.MustCompile(`(?m)^ +\d+\.\ds `), "  0.0s "},
	{regexp.MustCompile(` in \d+\.\ds`), " in 0.0s"},
	{regexp.MustCompile(`\btook \d+\.\ds`), "took 0.0s"},
	{regexp.MustCompile(`"((runId|audit)":"[^"]*"|(start|end|duration|took)(Ms|edAt)":(\d+|"[^"]*")|call":\{[^}]*\})`), `"changing"`},
}

func sessionStable(ts *testscript.TestScript, neg bool, _ []string) {
	refuseNegation(ts, neg)
	for _, to := range []struct {
		name string
		io.Writer
	}{{"stdout", ts.Stdout()}, {"stderr", ts.Stderr()}} {
		text := ts.ReadFile(to.name)
		for _, c := range changing {
			text = c.pattern.ReplaceAllString(text, c.stable)
		}
		_, _ = io.WriteString(to, text)
	}
}

func sessionExpand(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	for _, name := range args {
		text := os.Expand(ts.ReadFile(name), func(name string) string {
			if value := ts.Getenv(name); value != "" {
				return value
			}
			ts.Fatalf("there is no variable %s", name)
			return ""
		})
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

func sessionEdit(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s does not have the text %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.ReplaceAll(text, args[1], args[2])), 0o600))
}

func sessionRepo(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	for _, path := range args {
		from := filepath.Join("../..", path)
		info, err := os.Stat(from)
		ts.Check(err)
		if info.IsDir() {
			ts.Check(os.CopyFS(ts.MkAbs("."), os.DirFS(from)))
			continue
		}
		text, err := os.ReadFile(from)
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(filepath.Base(path)), text, 0o600))
	}
}

func refuseNegation(ts *testscript.TestScript, neg bool) {
	if neg {
		ts.Fatalf("this command has no negation")
	}
}

// A sessionEndpoint counts the model calls that it answers.
type sessionEndpoint struct {
	handler http.Handler

	mu   sync.Mutex // guards what follows
	sent []sessionRequest
}

// A sessionRequest is one model call.
type sessionRequest struct{ title, line string }

func sessionStartEndpoint(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	script := &scripted.Script{}
	if len(args) > 1 {
		read, err := scripted.ReadFile("", ts.MkAbs(args[1]))
		ts.Check(err)
		script = read
	}
	handler, err := scripted.New(script, false)
	ts.Check(err)
	e := &sessionEndpoint{handler: handler}
	server := httptest.NewServer(e)
	ts.Defer(server.Close)
	sessionOf(ts).endpoints[args[0]] = e
	ts.Setenv(args[0], server.URL)
}

// ServeHTTP answers at any path that ends as those of the API do, and lets the client retry at once.
func (e *sessionEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	path := r.URL.Path
	if strings.HasSuffix(path, "/chat/completions") {
		e.mu.Lock()
		e.sent = append(e.sent, newSessionRequest(r, body))
		e.mu.Unlock()
	}
	if at := strings.Index(path, "/v1/"); at > 0 {
		r.URL.Path = path[at:]
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	w.Header().Set(retryAtOnce, "1")
	e.handler.ServeHTTP(hurriedWriter{w}, r)
}

func newSessionRequest(r *http.Request, body []byte) sessionRequest {
	var sent struct {
		Model    string
		Messages []struct{ Content any }
	}
	_ = json.Unmarshal(body, &sent) // the handler refuses another form
	var line strings.Builder
	fmt.Fprintf(&line, "%s model=%s key=%s", r.URL.Path, sent.Model, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if strings.HasPrefix(name, "X-") {
			fmt.Fprintf(&line, " %s=%s", name, r.Header.Get(name))
		}
	}
	title := ""
	for _, m := range sent.Messages {
		if found := regexp.MustCompile(`(?m)^# Task: (.*)$`).FindStringSubmatch(fmt.Sprint(m.Content)); found != nil {
			title = found[1]
		}
	}
	return sessionRequest{title: title, line: line.String()}
}

// retryAtOnce is the header with the milliseconds after which the client may retry.
const retryAtOnce = "Retry-After-Ms"

// A hurriedWriter removes that header from an answer that is final or has another time.
type hurriedWriter struct{ http.ResponseWriter }

func (w hurriedWriter) WriteHeader(status int) {
	final := status >= 400 && status < 500 && status != http.StatusTooManyRequests
	if final || w.Header().Get("Retry-After") != "" {
		w.Header().Del(retryAtOnce)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the writer whose connection the handler may break.
func (w hurriedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// takeRequests returns the calls since it was called last.
func takeRequests(ts *testscript.TestScript, name string) []sessionRequest {
	e, ok := sessionOf(ts).endpoints[name]
	if !ok {
		ts.Fatalf("no endpoint has the name %s", name)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	sent := e.sent
	e.sent = nil
	return sent
}

func sessionCalls(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	if got := strconv.Itoa(len(takeRequests(ts, args[0]))); got != args[1] {
		ts.Fatalf("%s model calls, not %s", got, args[1])
	}
}

func sessionCalled(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	var got []string
	for _, r := range takeRequests(ts, args[0]) {
		got = append(got, r.title)
	}
	slices.Sort(got)
	if !slices.Equal(got, args[1:]) {
		ts.Fatalf("model calls of %q, not of %q", got, args[1:])
	}
}

func sessionRequests(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	for _, r := range takeRequests(ts, args[0]) {
		fmt.Fprintln(ts.Stdout(), r.line)
	}
}
