package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// binary is the path of the command.
var binary string

// scratch is a folder that is removed after the tests.
var scratch string

// commandName is the name under which the test binary is the command itself, so that no second
// binary has to be linked.
const commandName = "runteam"

func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case commandName:
		os.Exit(Main())
	case toolServerName:
		serveTools()
		return
	}
	dir, err := os.MkdirTemp("", "runteam-test-")
	if err != nil {
		panic(err)
	}
	scratch = dir
	binary = filepath.Join(dir, commandName)
	self, err := os.Executable()
	if err == nil {
		err = os.Link(self, binary) // which other users may execute, unlike what a symbolic link leads to
	}
	if err != nil {
		panic(err)
	}
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		os.Setenv("TMPDIR", "/dev/shm") // journals wait for the disk on any other file system
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "16") // most of these tests wait for another process
	status := m.Run()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.RemoveAll(dir)
	os.Exit(status)
}

// call is one call of the binary. The zero value calls it without arguments,
// in an empty folder, in an empty environment.
type call struct {
	bare  bool // no folder for the journal of a run is made
	args  []string
	dir   string
	env   map[string]string
	stdin string
}

// outcome is the result of a call.
type outcome struct {
	stdout, stderr string
	status         int
}

// command prepares a call; the caller may still change it.
func (c call) command(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, c.args...)
	cmd.Args[0] = commandName // as if typed
	cmd.Dir = c.dir
	if cmd.Dir == "" {
		cmd.Dir = t.TempDir()
	}
	if !c.bare && len(c.args) > 0 && (c.args[0] == "run" || c.args[0] == "task") {
		_ = journals.MakeFolder(filepath.Join(cmd.Dir, journals.FolderName)) // else each stderr would report it; a read-only folder gets none
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "NO_PROXY=*"}
	for _, k := range slices.Sorted(maps.Keys(c.env)) {
		cmd.Env = append(cmd.Env, k+"="+c.env[k])
	}
	cmd.Stdin = strings.NewReader(c.stdin)
	return cmd
}

// run makes the call: in this process if the working directory does not matter, else as a process. The
// command init writes into its folder, and a completion may leave a read behind after its time limit.
func (c call) run(t *testing.T) outcome {
	t.Helper()
	if c.dir == "" && !c.bare && !slices.Contains(c.args, "init") && !slices.Contains(c.args, "__complete") || c.needsOnlyJournal() {
		return c.runHere(t)
	}
	cmd := c.command(t)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	return outcome{status: statusAfter(t, cmd.Run()), stdout: stdout.String(), stderr: stderr.String()}
}

// needsOnlyJournal reports whether the call is about runs in the journal of its folder, and no argument
// names another file.
func (c call) needsOnlyJournal() bool {
	if c.dir == "" || len(c.args) == 0 || !slices.Contains([]string{"runs", "show", "explain", "audit", "replay", "questions", "answer", "artifacts", "policy"}, c.args[0]) {
		return false
	}
	return !slices.ContainsFunc(c.args[1:], func(arg string) bool {
		_, err := os.Lstat(filepath.Join(c.dir, arg))
		return err == nil || strings.ContainsAny(arg, "./=") || slices.Contains(namesFile, arg)
	})
}

// namesFile are flags with the name of a file, or that make a new run.
var namesFile = []string{"-", "--journal", "--journal-key", "--audit-key", "--key-file", "--anchor", "--events", "--env-file", "--script", "--without", "--without-input", "--save", "--file"}

// runHere makes the call in this process, which has another working directory.
func (c call) runHere(t *testing.T) outcome {
	t.Helper()
	con, stdout, stderr := clitest.Console(t, c.args...)
	con.Stdin, con.ConfigDir = strings.NewReader(c.stdin), t.TempDir()
	if c.dir != "" {
		con.WorkDir = c.dir
	}
	con.LookupEnv = func(name string) (string, bool) {
		value, ok := c.env[name]
		return value, ok
	}
	status := runCommandLine(console.New(*con))
	return outcome{status: status, stdout: stdout.String(), stderr: stderr.String()}
}

func statusAfter(t *testing.T, err error) int {
	t.Helper()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	require.NoError(t, err)
	return 0
}

// one is a spec with a single task.
const one = `
name: one
model: test-model
agents: [{name: solo, systemPrompt: You answer.}]
tasks: [{title: Answer, assignee: solo, description: Say something.}]
`

// many is a spec with n tasks that do not depend on each other.
func many(n int) string {
	var b strings.Builder
	b.WriteString("name: many\nmodel: m\nagents: [{name: solo}]\noutput: Task 1\ntasks:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {title: Task %d, assignee: solo, description: Do it.}\n", i+1)
	}
	return b.String()
}

// secretive is a spec with one answer above the clearance of the user.
const secretive = `
name: two
model: m
baseURL: http://127.0.0.1:1/v1
agents: [{name: solo, accepts: secret}]
tasks:
  - {title: Open, assignee: solo, description: Say what is open.}
  - {title: Closed, assignee: solo, classification: secret, description: Say what is secret.}
`

// An endpointServer is an endpoint whose answers a test writes. It counts its calls.
type endpointServer struct {
	*httptest.Server
	calls atomic.Int64
}

// serveModel starts an endpoint. The handler gets the number of the call, from 1.
func serveModel(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, n int)) *endpointServer {
	t.Helper()
	s := &endpointServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := 0
		if strings.HasSuffix(r.URL.Path, "/chat/completions") {
			body, err := io.ReadAll(r.Body) // all of it, so that the server notices a client that leaves
			if err != nil {
				return // the client was killed while it sent the call
			}
			n = int(s.calls.Add(1))
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		handle(w, r, n)
	}))
	t.Cleanup(s.Close)
	return s
}

// env returns an environment in which the command calls the endpoint.
func (s *endpointServer) env() map[string]string {
	return map[string]string{"OPENAI_BASE_URL": s.URL + "/v1"}
}

// reply answers a call with a text.
func reply(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	quoted, _ := json.Marshal(text)
	fmt.Fprintf(w, `{"id":"x","object":"chat.completion","model":"test-model","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%s}}],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}`, quoted)
}

// object decodes one JSON document that ends in one line feed.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	require.True(t, strings.HasSuffix(text, "}\n") && !strings.HasSuffix(text, "\n\n"), "%q", text)
	d := json.NewDecoder(strings.NewReader(text))
	var v map[string]any
	require.NoError(t, d.Decode(&v), "%q", text)
	require.False(t, d.More(), "a second document")
	return v
}
