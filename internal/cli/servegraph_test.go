package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/explain"
	"github.com/runteam/runteam/internal/cli/plan"
	"github.com/runteam/runteam/internal/cli/replay"
	"github.com/runteam/runteam/internal/cli/rungraph"
	"github.com/runteam/runteam/internal/workdir"
	"github.com/stretchr/testify/require"
)

// An addressWriter passes on the address that serve prints first.
type addressWriter struct {
	mu    sync.Mutex
	text  string
	found chan string
}

func (w *addressWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text += string(p)
	if _, at, ok := strings.Cut(w.text, "http://"); ok && w.found != nil {
		if at, _, ok := strings.Cut(at, "\n"); ok {
			w.found <- "http://" + strings.TrimRight(strings.Fields(at)[0], ",.;")
			w.found = nil
		}
	}
	return len(p), nil
}

// getter serves the runs of a folder until the test ends, and returns a function that gets a document of the API.
func getter(t *testing.T, dir string, env map[string]string, args ...string) func(path string) (int, http.Header, string) {
	t.Helper()
	con, _, _ := clitest.Console(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	address, signals, ended := make(chan string, 1), make(chan os.Signal, 1), make(chan int, 1)
	con.WorkDir, con.ConfigDir, con.Signals, con.Stderr = workdir.Dir(dir), t.TempDir(), signals, &addressWriter{found: address}
	con.LookupEnv = func(name string) (string, bool) {
		if name == "RUNTEAM_INSPECT_TOKEN" {
			return "token-of-this-test", true
		}
		value, ok := env[name]
		return value, ok
	}
	go func() { ended <- runCommandLine(console.New(*con)) }()
	client := &http.Client{Transport: &http.Transport{}}
	var at string
	select {
	case at = <-address:
	case status := <-ended:
		t.Fatalf("serve ended with status %d", status)
	}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		signals <- syscall.SIGINT
		<-ended
	})
	return func(path string) (int, http.Header, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"/api/v1"+path, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer token-of-this-test")
		got, err := client.Do(r)
		require.NoError(t, err)
		defer got.Body.Close()
		text, err := io.ReadAll(got.Body)
		require.NoError(t, err)
		return got.StatusCode, got.Header, string(text)
	}
}

// The API serves the documents of graph, flow, handoffs and comparisons as the functions make them.
func TestServeHasGraphsAndComparisons(t *testing.T) {
	t.Parallel()
	dir := runOf(t, "claims")
	require.Equal(t, exit.StatusOK, offlineRun(t, call{dir: dir}).status)
	list := listRuns(t, call{dir: dir})
	docs := documentsIn(t, dir)
	k, other := docs.load(list[0].Run), docs.load(list[1].Run)
	p := docs.plan(k)
	get := getter(t, dir, nil)
	same := func(path string, want any) {
		t.Helper()
		status, _, text := get("/runs/" + k.Run + path)
		require.Equal(t, http.StatusOK, status, "%s: %s", path, text)
		wanted, err := json.Marshal(want)
		require.NoError(t, err)
		require.JSONEq(t, string(wanted), text, path)
	}
	same("/graph", rungraph.New(k, p))
	flow, err := plan.FlowOf(p, "claim", "user")
	require.NoError(t, err)
	same("/flow?from=claim&to=user", flow)
	handoffs, err := explain.HandoffsOf(k, "Decide the claim")
	require.NoError(t, err)
	same("/handoffs?task="+url.QueryEscape("Decide the claim"), handoffs)
	same("/handoffs?from=intake&to=fraud", explain.HandoffsBetween(k, "intake", "fraud"))
	same("/compare/"+other.Run, replay.Compare(k, other))
	status, header, text := get("/runs/" + k.Run + "/export")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "attachment; filename=claims-"+k.Run[:8]+".html", header.Get("Content-Disposition"))
	require.True(t, strings.HasPrefix(text, "<!doctype html>"))
	for path, want := range map[string]int{
		"/flow?from=clam": http.StatusUnprocessableEntity, "/handoffs": http.StatusBadRequest, "/handoffs?from=a": http.StatusBadRequest,
		"/graph?expand=Search": http.StatusBadRequest, "/handoffs?task=none": http.StatusNotFound, "/compare/none": http.StatusNotFound,
	} {
		status, _, text := get("/runs/" + k.Run + path)
		require.Equal(t, want, status, "%s: %s", path, text)
	}
	status, _, _ = get("/runs/none/graph")
	require.Equal(t, http.StatusNotFound, status)
}

// Lists that a coordinator planned have their items like others.
func TestServeHasTheGraphOfAGoal(t *testing.T) {
	t.Parallel()
	dir := runOf(t, "patterns/orchestrator-workers")
	k := documentsIn(t, dir).load("")
	get := getter(t, dir, nil)
	status, _, text := get("/runs/" + k.Run + "/graph")
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, "Judge the pump[1]")
}
