//go:build unix

package cli

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/workdir"
	"github.com/stretchr/testify/require"
)

// A proxy that signs people in reaches the server over a socket, of which a server that was killed may have left one.
func TestServeAtASocket(t *testing.T) {
	t.Parallel()
	dir := peopleFolder(t, everyone...)
	at, err := os.MkdirTemp("", "rt") // a path of a socket is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(at) })
	socket := filepath.Join(at, "s.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	require.NoError(t, err)
	left.SetUnlinkOnClose(false)
	require.NoError(t, left.Close())
	con, _, _ := clitest.Console(t, "serve", "--roles", "roles.yaml", "--identity-header", "X-Forwarded-Email", "--groups-header", "X-Forwarded-Groups",
		"--public-url", "https://runs.example.org", "--trusted-proxy", "unix:"+socket, "open.yaml")
	stderr := &lineWatcher{wants: regexp.MustCompile("^$"), found: make(chan string, 1)}
	signals := make(chan os.Signal, 1)
	con.Stderr, con.Signals, con.WorkDir, con.ConfigDir = stderr, signals, workdir.Dir(dir), t.TempDir()
	con.LookupEnv = func(string) (string, bool) { return "", false }
	ended := make(chan int, 1)
	go func() { ended <- runCommandLine(console.New(*con)) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	client := &http.Client{Transport: transport}
	get := func(path string, headers map[string]string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://runteam"+path, nil)
		require.NoError(t, err)
		for name, value := range headers {
			r.Header.Set(name, value)
		}
		res, err := client.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer res.Body.Close()
		var b bytes.Buffer
		_, err = b.ReadFrom(res.Body)
		require.NoError(t, err)
		return res.StatusCode, b.String()
	}
	require.Eventually(t, func() bool { status, _ := get("/readyz", nil); return status == 200 }, 20*time.Second, 20*time.Millisecond)
	status, text := get("/api/v1/viewer", map[string]string{"X-Forwarded-Email": "Ann"})
	require.Equal(t, 200, status, text)
	require.Contains(t, text, `"by":"ann"`)
	status, text = get("/api/v1/viewer", map[string]string{"X-Forwarded-Email": "eve"})
	require.Equal(t, 403, status, text)
	require.Contains(t, text, "eve has no role on this server")
	mode, err := os.Stat(socket)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o660), mode.Mode().Perm())
	got := call{dir: dir, args: []string{"serve", "--roles", "roles.yaml", "--identity-header", "X-Forwarded-Email", "--public-url", "https://runs.example.org", "--trusted-proxy", "unix:" + socket, "open.yaml"}}.run(t)
	require.Equal(t, 2, got.status)
	require.Contains(t, got.stderr, "another server listens there")
	transport.CloseIdleConnections()
	signals <- syscall.SIGINT
	require.Equal(t, 0, <-ended)
	require.Contains(t, stderr.String(), "https://runs.example.org, listening at unix:"+socket)
	_, err = os.Stat(socket)
	require.ErrorIs(t, err, os.ErrNotExist)
}
