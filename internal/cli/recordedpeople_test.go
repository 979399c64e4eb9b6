package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/stretchr/testify/require"
)

// approvedFolder returns a folder with a team whose editor decides, and approves calls. The task Other
// runs until done is closed.
func approvedFolder(t *testing.T, done <-chan struct{}) string {
	t.Helper()
	dir := clitest.Folder(t, map[string]string{"model.yaml": approvedScript + "  - {task: Other, text: at last}\n"})
	script, err := scripted.ReadFile("", filepath.Join(dir, "model.yaml"))
	require.NoError(t, err)
	model, err := scripted.Start(script, scripted.Options{})
	require.NoError(t, err)
	to, err := url.Parse(model.URL())
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Body = io.NopCloser(bytes.NewReader(body)); bytes.Contains(body, []byte("# Task: Other")) {
			select {
			case <-done:
			case <-r.Context().Done():
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections() // a test that failed has not closed done
		server.Close()
		_ = model.Close()
	})
	spec := strings.NewReplacer("http://127.0.0.1:1/v1", server.URL+to.Path, "offline: script.yaml\n", "").Replace(approvedSpec) +
		"  - {title: Other, assignee: writer, description: Take a while.}\n" +
		"  - {title: Decide, assignee: editor, description: May it be sent?, outputSchema: {enum: [send, stop]}}\n"
	return clitest.Folder(t, map[string]string{"team.yaml": spec})
}

// What people answer while a run works is in its recording, so a replay asks nobody.
func TestAnswersOfPeopleAreRecorded(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	dir := approvedFolder(t, done)
	at := func(args ...string) outcome { return call{dir: dir, args: args}.run(t) }
	ended := make(chan outcome, 1)
	go func() { ended <- at("run", "--record", "people.yaml", "--progress", "plain") }()
	var open []struct{ ID, RunID, Title, Tool string }
	require.Eventually(t, func() bool {
		return json.Unmarshal([]byte(at("questions", "-o", "json").stdout), &open) == nil && len(open) == 2
	}, 20*time.Second, 50*time.Millisecond)
	ids := map[string]string{}
	for _, q := range open {
		ids[q.Title] = q.ID
		require.Equal(t, map[string]string{"Write": "file_write", "Decide": ""}[q.Title], q.Tool)
	}
	require.Contains(t, at("questions").stdout, `approval of file_write in "Write" for editor`)
	require.Contains(t, at("show", "Write").stdout, "a call of file_write waits for the approval of editor\n")
	run := open[0].RunID
	require.Zero(t, at("answer", run, "Write", "--question", ids["Write"], "--set", "decision=yes", "--set", "reason={{fine}}").status)
	require.Zero(t, at("answer", run, "Decide", "stop").status)
	close(done)
	got := <-ended
	require.Zero(t, got.status, got.stderr)
	require.Regexp(t, `asked     Write \(editor\): a call of file_write waits for approval(; to answer: runteam questions [0-9a-f]{8})?\n`, got.stderr)
	require.Regexp(t, `asked     Decide \(editor\): no answer yet(; to answer: runteam questions [0-9a-f]{8})?\n`, got.stderr)
	require.Equal(t, 1, strings.Count(got.stderr, "; to answer: runteam questions "+open[0].RunID[:8]), "once is enough")
	require.Contains(t, got.stderr, "recorded: 5 answers in people.yaml; to replay it:")
	recorded := clitest.Contents(t, filepath.Join(dir, "people.yaml"))
	require.Contains(t, recorded, `task: "Approve file_write"`)

	got = at("run", "--offline", "--script", "people.yaml", "--record", "again.yaml")
	require.Zero(t, got.status, got.stderr)
	require.Contains(t, got.stdout, `"stop"`)
	require.Contains(t, at("artifacts").stdout, "index.html")
	again := clitest.Contents(t, filepath.Join(dir, "again.yaml"))
	require.Contains(t, again, `task: "Approve file_write"`, "what a script answers for people is recorded too")
	require.Equal(t, strings.Count(recorded, "task:"), strings.Count(again, "task:"))
}

func TestASuspendedRunNamesTheCallThatWaits(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	close(done)
	dir := approvedFolder(t, done)
	got := call{dir: dir, args: []string{"run", "--record", "people.yaml"}}.run(t)
	require.Equal(t, exit.StatusWaiting, got.status, got.stderr)
	require.Regexp(t, `# Approve the call of file_write in "Write", which waits for editor:\n  \S+ answer \w+ Write --question [0-9a-f]{8} --set decision=yes\n`, got.stderr)
	require.Contains(t, got.stderr, "recorded: 2 answers in people.yaml\n", "it cannot be replayed without the answers of editor")
	require.NotContains(t, clitest.Contents(t, filepath.Join(dir, "people.yaml")), "approve")
}
