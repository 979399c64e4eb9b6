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

// A reply that is too large is not read to its end.
func TestReplyThatIsTooLarge(t *testing.T) {
	t.Parallel()
	server := serveModel(t, func(w http.ResponseWriter, _ *http.Request, _ int) { reply(w, strings.Repeat("long ", 2<<20)) })
	got := call{args: []string{"run", "-"}, stdin: one, env: server.env()}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Contains(t, got.stderr, "too large")
	require.Contains(t, got.stderr, "maxTokens")
	require.EqualValues(t, 1, server.calls.Load())
}
