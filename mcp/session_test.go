package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/runteam/runteam/internal/membudget"
	"github.com/runteam/runteam/mcp"
	"github.com/runteam/runteam/tool"
)

// A task calls the tools of a server in one session.
type rawTask struct {
	t      testing.TB
	tools  map[string]*tool.Tool
	shared *tool.Shared
}

func newTask(t testing.TB, s *mcp.Server) *rawTask {
	t.Helper()
	r := &rawTask{t, toolsOf(t, s), new(tool.Shared)}
	t.Cleanup(func() { require.NoError(t, r.shared.Close()) })
	return r
}

// call calls a tool and returns the number of the call in the session, and the process.
func (r *rawTask) call(name string) (n, process int, err error) {
	res, err := r.tools["test__"+name].Run(r.t.Context(), tool.Call{ID: "1", Arguments: json.RawMessage(`{}`), Shared: r.shared})
	if err == nil {
		_, err = fmt.Sscanf(res.Text, "call %d of %d", &n, &process)
	}
	return n, process, err
}

// raw returns a raw server that is a process.
func raw(t testing.TB, mode string) *mcp.Server { return server(t, "raw "+mode) }

// A session, and what the server keeps in it, lives as long as its task: whatever the server
// announces, and whatever else it writes.
func TestSessionsLive(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"plain", "changed", "noise", "noise first", "marks", "batches", "no pings", "pings back", "ignores all else", "flood of changes", "newer",
		"log before", "log after", "logs around", "long log before", "quoted", "texts", "long lines", "forged"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			task := newTask(t, raw(t, mode))
			_, first, err := task.call("a")
			require.NoError(t, err)
			for i := 2; i <= 4; i++ {
				n, process, err := task.call([]string{"a", "b"}[i%2])
				require.NoError(t, err)
				require.Equal(t, i, n)
				require.Equal(t, first, process)
			}
		})
	}
}

// Only the tool whose definition is no longer the pinned one is not called.
func TestChangedDefinitionIsAnErrorOfItsTool(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{
		"changes a": `tool "a": its definition changed since Tools was called`, "loses a": `tool "a": the server no longer offers it`,
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			task := newTask(t, raw(t, mode))
			_, first, err := task.call("a")
			require.NoError(t, err)
			for i := range 2 {
				_, _, err = task.call("a")
				require.ErrorContains(t, err, want)
				n, process, err := task.call("b")
				require.NoError(t, err)
				require.Equal(t, i+2, n, "the changed tool is not called")
				require.Equal(t, first, process)
			}
		})
	}
}

// A tool whose definition is again the pinned one can be called.
func TestDefinitionThatChangesBack(t *testing.T) {
	t.Parallel()
	task := newTask(t, raw(t, "changes a once"))
	_, _, err := task.call("a")
	require.NoError(t, err)
	_, _, err = task.call("a")
	require.ErrorContains(t, err, "changed")
	_, _, err = task.call("b")
	require.NoError(t, err)
	n, _, err := task.call("a")
	require.NoError(t, err)
	require.Equal(t, 3, n)
}

// A later session is held to the definitions of the first, tool by tool.
func TestLaterSessionWithAnotherDefinition(t *testing.T) {
	t.Parallel()
	s := server(t, "plain")
	s.Env["DEFINITION"] = t.TempDir() + "/definition"
	task := newTask(t, s)
	_, err := echo(t, task.tools["test__echo"], task.shared, "x")
	require.ErrorContains(t, err, `tool "echo": its definition changed since Tools was called`)
	_, err = task.tools["test__env"].Run(t.Context(), tool.Call{Arguments: json.RawMessage(`{}`), Shared: task.shared})
	require.NoError(t, err)
}

// A server that changes a tool while a person decides about a call, and says nothing, is not called.
func TestDefinitionThatChangesBeforeAnApprovedCall(t *testing.T) {
	t.Parallel()
	s := raw(t, "changes a silently")
	s.Options.Approve = "ann"
	task := newTask(t, s)
	for range 2 { // the lists of Tools and of the session
		_, _, err := task.call("b")
		require.NoError(t, err)
	}
	_, _, err := task.call("a")
	require.ErrorContains(t, err, "changed since Tools was called")
}

// What a server announces during a call leaves the call alone.
func TestChangesDuringACall(t *testing.T) {
	t.Parallel()
	task := newTask(t, raw(t, "changed"))
	_, _, err := task.call("b")
	require.NoError(t, err)
	var waiting errgroup.Group
	for range 3 {
		waiting.Go(func() error {
			_, _, err := task.call("wait")
			return err
		})
	}
	done := make(chan error)
	go func() { done <- waiting.Wait() }()
	for {
		_, _, err := task.call("a")
		require.NoError(t, err)
		select {
		case err := <-done:
			require.NoError(t, err)
			return
		default:
		}
	}
}

// A log is a logger of text.
type testLog struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *testLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *testLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// The first line that is no message is logged, without secrets.
func TestLinesThatAreNoMessages(t *testing.T) {
	t.Parallel()
	var log testLog
	s := raw(t, "noise")
	s.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s.Env["TOKEN"] = "canary-one\ncanary-two"
	s.Secrets = map[string]string{"KEY": "with"}
	task := newTask(t, s)
	for range 3 {
		_, _, err := task.call("a")
		require.NoError(t, err)
	}
	require.Equal(t, 1, strings.Count(log.String(), "\n"))
	require.Contains(t, log.String(), "level=WARN")
	require.Contains(t, log.String(), "server=test")
	require.Contains(t, log.String(), "INFO key=")
	require.NotContains(t, log.String(), "canary")
}

// A log before a response on the same line is shown without the response.
func TestLogBeforeAResponse(t *testing.T) {
	t.Parallel()
	var log testLog
	s := raw(t, "log before")
	s.Logger = slog.New(slog.NewTextHandler(&log, nil))
	_, _, err := newTask(t, s).call("a")
	require.NoError(t, err)
	require.Contains(t, log.String(), "[1/2] {x}")
	require.NotContains(t, log.String(), "call 1")
}

// A server learns which of its calls is given up, by the ID that it was sent.
func TestCallThatIsGivenUp(t *testing.T) {
	t.Parallel()
	task := newTask(t, raw(t, "waits"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := task.tools["test__wait"].Run(ctx, tool.Call{Arguments: json.RawMessage(`{}`), Shared: task.shared})
		done <- err
	}()
	heard := func(want int) func() bool {
		return func() bool {
			n, _, err := task.call("a")
			return err == nil && n == want
		}
	}
	require.Eventually(t, heard(1), 5*time.Second, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Eventually(t, heard(2), 5*time.Second, time.Millisecond)
}

// A server whose output cannot be read is an error that says why, and so is one that ends.
func TestSessionsThatBreak(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		mode   string
		effect tool.Effect
		want   []string
		not    string
	}{
		{"endless line", tool.External, []string{"more than 16 MiB without a newline", "may have taken effect"}, ""},
		{"endless message", tool.None, []string{"more than 16 MiB"}, "effect"},
		{"dies", tool.External, []string{"may have taken effect", "out of memory"}, ""},
		{"dies", tool.None, []string{"it closed its standard output", "out of memory"}, "effect"},
		{"refuses", tool.External, []string{"no paper"}, "effect"},
	} {
		t.Run(tt.mode+" "+string(tt.effect), func(t *testing.T) {
			t.Parallel()
			s := raw(t, tt.mode)
			s.Options.Effect = tt.effect
			task := newTask(t, s)
			_, _, err := task.call("a")
			require.Error(t, err)
			require.NotErrorIs(t, err, tool.ErrUncertain)
			for _, want := range tt.want {
				require.ErrorContains(t, err, want)
			}
			if tt.not != "" {
				require.NotContains(t, err.Error(), tt.not)
			}
		})
	}
}

// A message may be long.
func TestLongMessage(t *testing.T) {
	t.Parallel()
	task := newTask(t, raw(t, "long result"))
	res, err := task.tools["test__a"].Run(t.Context(), tool.Call{Arguments: json.RawMessage(`{}`), Shared: task.shared})
	require.NoError(t, err)
	require.Len(t, res.Text, 1<<20)
}

// A result of 6 MiB whose values would take half a gigabyte is an error of its call. The session goes on.
//
// Requirement: G66.
func TestResultThatTakesTooMuchMemory(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T) *rawTask{
		"pipes": func(t *testing.T) *rawTask { return newTask(t, raw(t, "many values")) },
		"HTTP":  func(t *testing.T) *rawTask { return newWeb(t, "many values").task(t, noEffect) },
	}
	for name, start := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := start(t)
			_, err := task.tools["test__a"].Run(t.Context(), tool.Call{ID: "1", Arguments: json.RawMessage(`{}`), Shared: task.shared})
			require.ErrorIs(t, err, membudget.ErrFull)
			require.ErrorContains(t, err, "of 256 MiB; ask for less at once")
			_, _, err = task.call("a")
			require.NoError(t, err)
		})
	}
}

// A list of tools that does not end is an error.
func TestListsThatDoNotEnd(t *testing.T) {
	t.Parallel()
	_, err := raw(t, "same cursor").Tools(t.Context())
	require.ErrorContains(t, err, `the cursor "again" repeats`)
	_, err = raw(t, "endless").Tools(t.Context())
	require.ErrorContains(t, err, "more than 64 pages")
}

// A server that refuses the first request, and never answers one that it does not know, is soon reported with what it said.
func TestServerThatRefusesInitialize(t *testing.T) {
	t.Parallel()
	began := time.Now()
	_, err := raw(t, "refuses to start").Tools(t.Context())
	require.ErrorIs(t, err, mcp.ErrNoSession)
	require.ErrorContains(t, err, "API_KEY is not set")
	require.Less(t, time.Since(began), 20*time.Second, "and not after the 30 seconds for the start")
}

// The time limit of the tools holds for the start of a session too.
func TestServerThatNeverAnswersInitialize(t *testing.T) {
	t.Parallel()
	s := raw(t, "mute")
	s.Options.Timeout = 200 * time.Millisecond
	_, err := s.Tools(t.Context())
	require.ErrorIs(t, err, mcp.ErrNoSession)
	require.ErrorContains(t, err, "no response within 200ms")
}
