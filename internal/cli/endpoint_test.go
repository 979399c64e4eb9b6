package cli

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/naming"
	"github.com/stretchr/testify/require"
)

// hurry lets the client retry at once, so that tests need not wait.
func hurry(w http.ResponseWriter) { w.Header().Set("Retry-After-Ms", "1") }

func refuseWith(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"message":%q,"type":"test","code":%q}}`, message, code)
}

func TestEndpointsThatMisbehave(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		handle func(w http.ResponseWriter, r *http.Request, n int)
		args   []string
		status int
		calls  int
		want   []string // on stderr
	}{
		{
			name:   "500 twice, then success",
			status: exit.StatusOK, calls: 3,
			handle: func(w http.ResponseWriter, _ *http.Request, n int) {
				if n < 3 {
					hurry(w)
					refuseWith(w, 500, "", "not now")
					return
				}
				reply(w, "fine")
			},
		},
		{
			name:   "429 with Retry-After, then success",
			status: exit.StatusOK, calls: 2,
			handle: func(w http.ResponseWriter, _ *http.Request, n int) {
				if n == 1 {
					w.Header().Set("Retry-After", "1")
					refuseWith(w, 429, "", "slow down")
					return
				}
				reply(w, "fine")
			},
		},
		{
			name:   "429 that asks to wait for ten minutes",
			status: exit.StatusFailed, calls: 1, want: []string{"retry after 10m0s", "--max-concurrency"},
			handle: func(w http.ResponseWriter, _ *http.Request, _ int) {
				w.Header().Set("Retry-After", "600")
				refuseWith(w, 429, "", "slow down")
			},
		},
		{
			name:   "401",
			status: exit.StatusFailed, calls: 1, want: []string{"Answer (solo)", "requires a key, and none was sent (401)", "OPENAI_API_KEY"},
			handle: func(w http.ResponseWriter, _ *http.Request, _ int) { refuseWith(w, 401, "invalid_api_key", "bad key") },
		},
		{
			name:   "unknown model",
			status: exit.StatusNoRun, calls: 1, want: []string{`model "test-model"`, "--model", "llama3.2, qwen3", "could not run"},
			handle: func(w http.ResponseWriter, r *http.Request, _ int) {
				if r.URL.Path == "/v1/models" {
					fmt.Fprint(w, `{"object":"list","data":[{"id":"qwen3"},{"id":"llama3.2"}]}`)
					return
				}
				refuseWith(w, 404, "model_not_found", "no such model")
			},
		},
		{
			name:   "no chat completions there",
			status: exit.StatusNoRun, calls: 1, want: []string{"no chat completions at this address", "could not run"},
			handle: func(w http.ResponseWriter, _ *http.Request, _ int) { http.Error(w, "404 page not found", 404) },
		},
		{
			name:   "HTML",
			status: exit.StatusFailed, calls: 3, want: []string{"Answer (solo)", "HTML"},
			handle: func(w http.ResponseWriter, _ *http.Request, _ int) {
				hurry(w)
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprint(w, "<html><body>log in</body></html>")
			},
		},
		{
			name:   "no choice",
			status: exit.StatusFailed, calls: 3, want: []string{"the reply is empty"},
			handle: func(w http.ResponseWriter, _ *http.Request, _ int) {
				hurry(w)
				fmt.Fprint(w, `{"id":"x","object":"chat.completion","choices":[]}`)
			},
		},
		{
			name:   "cut half-way",
			status: exit.StatusFailed, calls: 3, want: []string{"cut"},
			handle: func(w http.ResponseWriter, _ *http.Request, _ int) {
				hurry(w)
				w.Header().Set("Content-Length", "500")
				fmt.Fprint(w, `{"id":"x","object":"chat.completion","choices":[{"mess`)
			},
		},
		{
			name:   "10 MB",
			status: exit.StatusFailed, calls: 1, want: []string{"too large", "maxTokens"},
			handle: func(w http.ResponseWriter, _ *http.Request, _ int) { reply(w, strings.Repeat("long ", 2<<20)) },
		},
		{
			name:   "never an answer",
			status: exit.StatusFailed, calls: 1, args: []string{"--timeout", "3s"}, want: []string{"timed out", "--timeout"},
			handle: func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := serveModel(t, tt.handle)
			args := append([]string{"run", "-"}, tt.args...)
			if tt.status != exit.StatusOK {
				args = append(args, "-o", "json")
			}
			got := call{args: args, stdin: one, env: server.env()}.run(t)
			require.Equal(t, tt.status, got.status, "%+v", got)
			require.EqualValues(t, tt.calls, server.calls.Load())
			for _, want := range tt.want {
				require.Contains(t, got.stderr, want)
			}
			if tt.status == exit.StatusOK {
				require.Equal(t, "fine\n", got.stdout)
				return
			}
			result := object(t, got.stdout)
			require.Equal(t, false, result["success"], "once a run has begun, stdout is its result")
			require.Len(t, result["tasks"], 1)
		})
	}
}

func TestVersionOfTheAPIIsMissing(t *testing.T) {
	t.Parallel()
	server := serveModel(t, func(w http.ResponseWriter, _ *http.Request, _ int) { http.Error(w, "404 page not found", 404) })
	got := call{args: []string{"run", "-"}, stdin: one, env: map[string]string{"OPENAI_BASE_URL": server.URL}}.run(t)
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Contains(t, got.stderr, "/v1 is missing in the base URL: set baseURL or OPENAI_BASE_URL to "+server.URL+"/v1")
}

func TestEndpointIsDown(t *testing.T) {
	t.Parallel()
	server := serveModel(t, nil)
	server.Close()
	got := call{args: []string{"run", "-", "-o", "json"}, stdin: one, env: server.env()}.run(t)
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Equal(t, "error", object(t, got.stdout)["status"])
	require.Contains(t, got.stderr, "connection refused")
	require.Contains(t, got.stderr, "OPENAI_BASE_URL")
}

func TestNoKey(t *testing.T) {
	t.Parallel()
	got := call{args: []string{"run", "-"}, stdin: one}.run(t)
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Empty(t, got.stdout)
	require.Contains(t, got.stderr, "OPENAI_API_KEY")
	require.Contains(t, got.stderr, "--offline")
	got = call{args: []string{"run", "-", "-o", "json"}, stdin: one}.run(t)
	require.Equal(t, exit.StatusNoRun, got.status)
	require.Equal(t, "runtime", object(t, got.stdout)["error"].(map[string]any)["kind"])
}

func TestNoModel(t *testing.T) {
	t.Parallel()
	server := serveModel(t, func(w http.ResponseWriter, _ *http.Request, _ int) { reply(w, "fine") })
	without := strings.Replace(one, "model: test-model\n", "", 1)
	got := call{args: []string{"run", "-"}, stdin: without, env: server.env()}.run(t)
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Contains(t, got.stderr, "--model")
	require.Zero(t, server.calls.Load())
	got = call{args: []string{"run", "-", "--model", "any"}, stdin: without, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
}

// The key of the environment goes only to the host of OPENAI_BASE_URL and is never printed. Text of
// the endpoint is escaped for a terminal.
//
// Requirement: G53.
func TestEndpointTextIsEscaped(t *testing.T) {
	t.Parallel()
	const key = "sk-not-a-real-key-0123456789"
	server := serveModel(t, func(w http.ResponseWriter, r *http.Request, n int) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			t.Error("the key did not arrive")
		}
		if n == 1 {
			reply(w, "red \x1b[31m, back \u009b2J, \u202eright to left, bell \a, line\ntab\t.")
			return
		}
		refuseWith(w, 400, "", "your key "+key+" \x1b[2J\u202e")
	})
	env := server.env()
	env["OPENAI_API_KEY"] = key
	for _, form := range []string{"text", "json"} {
		server.calls.Store(0)
		good := call{args: []string{"run", "-", "-o", form, "--log-level", "debug"}, stdin: one, env: env}.run(t)
		require.Equal(t, exit.StatusOK, good.status, "%+v", good)
		bad := call{args: []string{"run", "-", "-o", form, "--log-level", "debug"}, stdin: one, env: env}.run(t)
		require.Equal(t, exit.StatusFailed, bad.status, "%+v", bad)
		for _, text := range []string{good.stdout, good.stderr, bad.stdout, bad.stderr} {
			require.NotContains(t, text, key)
			for _, r := range text {
				require.False(t, naming.Hidden(r) && r != '\n' && r != '\t', "%q in %q", r, text)
			}
		}
		if form == "text" {
			require.Equal(t, `red \x1b[31m, back \u009b2J, \u202eright to left, bell \x07, line`+"\ntab\t.\n", good.stdout)
		} else {
			require.Equal(t, "red \x1b[31m, back \u009b2J, \u202eright to left, bell \a, line\ntab\t.", object(t, good.stdout)["output"])
		}
	}
}

func TestMockServesModels(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"script.yaml": "replies: [{task: Answer, text: 'scripted {{.Task}}'}]"})
	cmd := call{dir: dir, args: []string{"mock", "script.yaml"}}.command(t)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	stderr := &strings.Builder{}
	cmd.Stderr = stderr
	require.NoError(t, cmd.Start())
	line := make([]byte, 200)
	n, err := stdout.Read(line)
	require.NoError(t, err)
	url := strings.TrimSpace(string(line[:n]))
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/v1$`, url, "the default address is loopback (G43)")
	got := call{args: []string{"run", "-"}, stdin: one, env: map[string]string{"OPENAI_BASE_URL": url}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, "scripted Answer\n", got.stdout)
	require.NoError(t, cmd.Process.Signal(interrupt))
	_, _ = io.Copy(io.Discard, stdout)
	require.Equal(t, exit.StatusOK, statusAfter(t, cmd.Wait()))
	require.Contains(t, stderr.String(), "OPENAI_BASE_URL="+url)
}
