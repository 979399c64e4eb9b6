package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// A connectedTask is what the document of a run says of the connection of one of its tasks.
type connectedTask struct {
	Title, Connection string
	Streaming         bool
	StartedAt         time.Time
	EndedAt           time.Time
	LastActivityAt    time.Time
	Call              struct{ RequestID string }
}

// connections decodes the tasks of the document of a run.
func connections(t *testing.T, document string) map[string]connectedTask {
	t.Helper()
	var run struct{ Tasks []connectedTask }
	require.NoError(t, json.Unmarshal([]byte(document), &run), document)
	tasks := map[string]connectedTask{}
	for _, of := range run.Tasks {
		tasks[of.Title] = of
	}
	return tasks
}

// states returns the connection of each task.
func states(tasks map[string]connectedTask) map[string]string {
	list := map[string]string{}
	for title, t := range tasks {
		list[title] = t.Connection
	}
	return list
}

// connecting is a team of which one task waits for a person while the model of another one writes.
const connecting = `
name: connecting
model: m
agents: [{name: solo}, {name: editor, backend: {kind: person}}]
tasks:
  - {title: First, assignee: solo, description: d}
  - {title: Write, assignee: solo, description: d, dependsOn: [First]}
  - {title: Review, assignee: editor, description: d, dependsOn: [First]}
  - {title: Send, assignee: solo, description: d, dependsOn: [Write, Review]}
`

// The API says of each task of a live run whether an agent is at work on it, when it was last active, and whether its
// model writes. Once the run has ended, no agent is at work.
func TestConnectionsInALiveRun(t *testing.T) {
	t.Parallel()
	asked, writes, ends := make(chan struct{}), make(chan struct{}), make(chan struct{})
	server := serveModel(t, func(w http.ResponseWriter, r *http.Request, n int) {
		w.Header().Set("X-Request-Id", fmt.Sprint("call-", n))
		write := func(text, reason string) {
			_, _ = fmt.Fprintf(w, "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":%s}]}\n\n", text, reason)
			w.(http.Flusher).Flush()
		}
		w.Header().Set("Content-Type", "text/event-stream")
		wait := func(until chan struct{}) {
			select {
			case <-until:
			case <-r.Context().Done():
			}
		}
		if n == 2 {
			close(asked)
			wait(writes)
			write(strings.Repeat("The river rises in the hills. ", 40), "null")
			wait(ends)
		}
		write("It ends there.", `"stop"`)
		_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
	})
	dir := clitest.Folder(t, map[string]string{"team.yaml": connecting})
	s := serveHere(t, call{dir: dir, args: []string{filepath.Join(dir, "team.yaml"), "--journal", filepath.Join(dir, "runs.db")}, env: server.env()})
	status, text := s.do("POST", "/runs", `{"spec":"connecting"}`)
	require.Equal(t, 202, status, text)
	run := object(t, text)["runId"].(string)
	read := func() map[string]connectedTask { return connections(t, s.get("/runs/"+run)) }

	<-asked
	live := map[string]string{"First": "disconnected", "Write": "connected", "Review": "idle", "Send": "disconnected"}
	require.Eventually(t, func() bool { return states(read())["Review"] == "idle" }, 20*time.Second, 10*time.Millisecond)
	called := read()
	require.Equal(t, live, states(called))
	require.Equal(t, called["First"].EndedAt, called["First"].LastActivityAt)
	require.Equal(t, "call-1", called["First"].Call.RequestID)
	require.Equal(t, called["Write"].StartedAt, called["Write"].LastActivityAt, "its model is called, and has not written")
	require.False(t, called["Write"].Streaming)
	require.NotZero(t, called["Review"].LastActivityAt, "the person was asked")
	require.Zero(t, called["Send"].LastActivityAt)

	close(writes)
	require.Eventually(t, func() bool { return read()["Write"].Streaming }, 20*time.Second, 10*time.Millisecond)
	written := read()
	require.Equal(t, live, states(written))
	require.Greater(t, written["Write"].LastActivityAt, called["Write"].LastActivityAt)
	var one connectedTask
	require.NoError(t, json.Unmarshal([]byte(s.get("/runs/"+run+"/tasks/Write")), &one))
	require.Equal(t, written["Write"], one)
	require.False(t, written["First"].Streaming || written["Review"].Streaming || written["Send"].Streaming)

	close(ends)
	var questions []struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(s.get("/runs/"+run+"/questions")), &questions))
	status, text = s.do("POST", "/runs/"+run+"/questions/"+questions[0].ID+"/answer", `{"text":"Send it."}`)
	require.Equal(t, 200, status, text)
	require.Eventually(t, func() bool { return object(t, s.get("/runs/"+run))["status"] == "ok" }, 20*time.Second, 10*time.Millisecond)
	ended := read()
	require.Equal(t, map[string]string{"First": "disconnected", "Write": "disconnected", "Review": "disconnected", "Send": "disconnected"}, states(ended))
	require.False(t, ended["Write"].Streaming)
	require.Equal(t, ended["Write"].EndedAt, ended["Write"].LastActivityAt)
	require.Equal(t, "call-2", ended["Write"].Call.RequestID)
}

// Once the process of a run is gone, no agent is at work, whatever the run was doing. What it did last does not change.
func TestConnectionsOfAKilledRun(t *testing.T) {
	t.Parallel()
	server, dir := startCounting(t, "Second"), relayFolder(t)
	running := server.startBlocked(t, call{dir: dir, args: []string{"run", "--progress", "none"}, env: server.env()})
	s := serveHere(t, call{dir: dir})
	_, run, _ := strings.Cut(s.get("/runs"), `"runId":"`)
	read := func() map[string]connectedTask { return connections(t, s.get("/runs/"+run[:36])) }
	works := read()["Second"]
	require.Equal(t, "connected", works.Connection)
	require.Equal(t, works.StartedAt, works.LastActivityAt)
	require.NoError(t, running.Process.Kill())
	_ = running.Wait()
	require.Eventually(t, func() bool { return read()["Second"].Connection == "disconnected" }, 20*time.Second, 10*time.Millisecond)
	require.Equal(t, works.LastActivityAt, read()["Second"].LastActivityAt)
	for title, of := range read() {
		require.Equal(t, "disconnected", of.Connection, title)
	}
}

// When the turns of an attempt begin and end depends on what they read. A caller who may not see that learns when the
// attempt began, as by startedAt.
func TestLastActivityOfAHiddenTask(t *testing.T) {
	t.Parallel()
	const spec = `
model: m
agents: [{name: solo, accepts: secret}]
inputs: {key: {text: "canary", classification: %s}}
policy: {rules: [{from: user, to: solo, mode: full}]}
output: Open
tasks:
  - {title: Open, assignee: solo, dependsOn: [{task: Count, optional: true}], description: d}
  - {title: Count, assignee: solo, uses: [key], description: d, outputSchema: {type: integer}}
`
	activity := func(level string) connectedTask {
		reached := make(chan string, 1)
		server := serveModel(t, func(w http.ResponseWriter, r *http.Request, n int) {
			if n == 1 {
				reply(w, "many") // so that another turn corrects it
				return
			}
			reached <- "Count"
			<-r.Context().Done()
		})
		dir := clitest.Folder(t, map[string]string{"team.yaml": fmt.Sprintf(spec, level)})
		running := (&countingServer{endpointServer: server, blockedCalls: reached}).startBlocked(t, call{dir: dir, args: []string{"run", "--progress", "none"}, env: server.env()})
		defer func() { _, _ = running.Process.Kill(), running.Wait() }()
		got := call{dir: dir, args: []string{"show", "-o", "json"}}.run(t)
		require.Equal(t, exit.StatusOK, got.status, got.stderr)
		return connections(t, got.stdout)["Count"]
	}
	seen, hidden := activity("internal"), activity("secret")
	require.Equal(t, []string{"connected", "connected"}, []string{seen.Connection, hidden.Connection})
	require.Greater(t, seen.LastActivityAt, seen.StartedAt, "the second turn began")
	require.Equal(t, hidden.StartedAt, hidden.LastActivityAt)
	require.Zero(t, seen.EndedAt, "only a turn has ended")
	require.Zero(t, hidden.EndedAt)
}
