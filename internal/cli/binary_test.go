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
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/workdir"
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
	debug.SetGCPercent(400) // the calls of the tests share a heap, which is small
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

// call is one call of the command. The zero value calls it without arguments, in an empty folder, which
// is the user's home.
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

// command prepares a process that makes the call; the caller may still change it.
func (c call) command(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, c.args...)
	cmd.Args[0] = commandName // as if typed
	cmd.Dir = c.prepare(t)
	env := c.environment(cmd.Dir)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		cmd.Env = append(cmd.Env, name+"="+env[name])
	}
	cmd.Stdin = strings.NewReader(c.stdin)
	return cmd
}

// run makes the call in this process.
func (c call) run(t *testing.T) outcome {
	t.Helper()
	var stdout bytes.Buffer
	got := c.runTo(t, &stdout)
	got.stdout = stdout.String()
	return got
}

// runTo makes the call in this process with another standard output.
func (c call) runTo(t *testing.T, stdout io.Writer) outcome {
	t.Helper()
	dir := c.prepare(t)
	env := c.environment(dir)
	lookupEnv := func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}
	return runLine(c.args, dir, lookupEnv, strings.NewReader(c.stdin), stdout)
}

// process makes the call in a process of its own, for what only a process has: open files, limits, a user.
func (c call) process(t *testing.T) outcome {
	t.Helper()
	cmd := c.command(t)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	return outcome{status: statusAfter(t, cmd.Run()), stdout: stdout.String(), stderr: stderr.String()}
}

// prepare returns the working directory of the call. A run gets a folder for its journal, or else each
// stderr would report one; a read-only folder gets none.
func (c call) prepare(t *testing.T) (dir string) {
	t.Helper()
	if dir = c.dir; dir == "" {
		dir = t.TempDir()
	}
	if !c.bare && len(c.args) > 0 && (c.args[0] == "run" || c.args[0] == "task") {
		_ = journals.MakeFolder(filepath.Join(dir, journals.FolderName))
	}
	return dir
}

// environment returns the environment of the call.
func (c call) environment(dir string) map[string]string {
	env := map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir, "NO_PROXY": "*"}
	maps.Copy(env, c.env)
	return env
}

// runLine runs a command line in this process, as a process would that works in the folder and has the
// environment. The outcome has no stdout.
func runLine(args []string, dir string, lookupEnv func(name string) (string, bool), stdin io.Reader, stdout io.Writer) outcome {
	var stderr bytes.Buffer
	config, ok := lookupEnv("XDG_CONFIG_HOME")
	if home, _ := lookupEnv("HOME"); !ok {
		config = filepath.Join(home, ".config")
	}
	status := runCommandLine(console.New(console.Console{
		Args: args, Stdin: stdin, Stdout: stdout, Stderr: &stderr,
		ConfigDir:    config,
		WorkDir:      workdir.Dir(dir),
		LookupEnv:    lookupEnv,
		Now:          time.Now,
		IsTerminal:   func(any) bool { return false },
		TerminalSize: func(any) (int, int) { return 0, 0 },
		Signals:      make(chan os.Signal),
		Exit:         func(int) { panic("exit") },

		CompletionTime: time.Hour, // not the second of a shell, so that a busy computer changes nothing
	}))
	return outcome{status: status, stderr: stderr.String()}
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
