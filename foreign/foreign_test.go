package foreign

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// runteam is the path of the command under test.
var runteam string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "foreign")
	if err != nil {
		panic(err)
	}
	runteam = filepath.Join(dir, "runteam")
	build := exec.Command("go", "build", "-o", runteam, "./cmd/runteam")
	build.Dir, build.Stderr = "..", os.Stderr
	status := 1
	if err := build.Run(); err == nil {
		status = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// A row is a team with one agent and one task, and what its user sees.
type row struct {
	name  string
	model string // gpt-4o if empty
	agent string // further settings of the agent, as the inside of a YAML object
	task  string // further settings of the task
	say   string // the description of the task

	result   string   // of the task; empty if it fails
	code     string   // of the error of the task; empty if it completes
	contains []string // parts of standard error
}

// run runs the team of a row against an endpoint and checks what its user sees.
func (r *row) run(t *testing.T, baseURL string) {
	t.Helper()
	got, stderr := r.output(t, baseURL)
	require.Len(t, got.Tasks, 1, stderr)
	task := got.Tasks[0]
	if r.code != "" {
		require.Equal(t, "failed", task.Status, "%+v", task)
		require.Equal(t, r.code, task.Error.Code, task.Error.Message)
	} else {
		require.Equal(t, "completed", task.Status, "%+v", task)
		require.Equal(t, r.result, task.Result)
	}
	for _, part := range r.contains {
		require.Contains(t, stderr, part)
	}
}

// An output is the part of `runteam run -o json` that the tests read.
type output struct {
	Tasks []struct {
		Status, Result string
		Error          struct{ Code, Message string }
		Metrics        struct {
			TokenUsage struct {
				Input  int `json:"input_tokens"`
				Output int `json:"output_tokens"`
			}
		}
	}
}

// output runs the team of a row and returns what it prints.
func (r *row) output(t *testing.T, baseURL string) (got output, stderr string) {
	t.Helper()
	dir := t.TempDir()
	team := fmt.Sprintf("baseURL: %s\nagents:\n  - {name: worker, model: %s%s}\ntasks:\n  - {title: Work, assignee: worker, description: %q%s}\n",
		baseURL, cmp.Or(r.model, "gpt-4o"), member(r.agent), r.say, member(r.task))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "team.yaml"), []byte(team), 0o600))
	cmd := exec.CommandContext(t.Context(), runteam, "run", "-o", "json")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		_, exited := errors.AsType[*exec.ExitError](err)
		require.True(t, exited, err)
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &got), "%s\n%s", out.String(), errs.String())
	return got, errs.String()
}

func member(settings string) string {
	if settings == "" {
		return ""
	}
	return ", " + settings
}

// listenBelow listens on a port below those that the system gives to the servers of other tests, one of which
// could take the port before the server of a package does.
func listenBelow(most int) (l net.Listener, err error) {
	for range 100 {
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", most-1-rand.IntN(10_000))); err == nil {
			return l, nil
		}
	}
	return nil, err
}

// node starts a server of a package of npm and returns its address. It skips the
// test if the package is not installed.
func node(t *testing.T, dir, script string, args func(port string) []string) (address string) {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("node_modules", script))
	require.NoError(t, err)
	if _, err := os.Stat(script); err != nil {
		t.Skip("the servers are not installed; run make foreign in the folder above")
	}
	free, err := listenBelow(32768)
	require.NoError(t, err)
	address = free.Addr().String()
	require.NoError(t, free.Close())
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	cmd := exec.Command("node", append([]string{script}, args(port)...)...)
	var log bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &log, &log
	startGroup(cmd)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		stopGroup(cmd)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the server printed:\n%s", log.String())
		}
	})
	require.Eventually(t, func() bool {
		res, err := http.Get("http://" + address + "/")
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	}, time.Minute, 50*time.Millisecond, "the server does not answer")
	return address
}
