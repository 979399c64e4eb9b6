package cli

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/stretchr/testify/require"
)

// The name of an item is a word of its list. A viewer who may not see the list cannot find out by a command whether
// there is an item of a name, and commands an item by its title.
func TestACommandTellsNoNamesOfItems(t *testing.T) {
	t.Parallel()
	server := startCounting(t, "All")
	dir := clitest.Folder(t, map[string]string{"team.yaml": `
model: test-model
agents: [{name: a, accepts: confidential}]
inputs: {leads: {text: '[{"email":"canary-ann"}]', classification: confidential}}
tasks:
  - {title: Mail, assignee: a, description: Mail, forEach: {input: leads, key: /email, as: lead, maxItems: 2}}
  - {title: All, assignee: a, description: All, dependsOn: [{each: Mail}]}
`})
	running := server.startBlocked(t, call{dir: dir, args: []string{"run", "--progress", "none"}, env: server.env()})
	defer func() { _, _ = running.Process.Kill(), running.Wait() }()
	for _, tt := range []struct{ accepts, task, want string }{
		{"internal", "Mail[canary-ann]", "there is no such run"}, {"internal", "Mail[1]", "there is no such run"},
		{"confidential", "Mail[canary-zed]", "unknown task"}, {"confidential", "Mail[canary-ann]", "has completed"},
	} {
		s := serveHere(t, call{dir: dir, args: []string{"--accepts", tt.accepts}})
		_, text := s.do("POST", "/runs/"+newestRun(t, dir)+"/nodes/"+url.PathEscape(tt.task)+"/rerun", "{}")
		require.Contains(t, text, tt.want, "%s %s", tt.accepts, tt.task)
	}
}

// A spec with tasks takes no goal: its tasks would not run.
func TestAGoalForASpecWithTasks(t *testing.T) {
	t.Parallel()
	dir := relayFolder(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".runteam"), 0o700))
	s := serveHere(t, call{dir: dir, args: []string{filepath.Join(dir, "team.yaml"), "--offline"}})
	status, text := s.do("POST", "/runs", `{"spec":"relay","goal":"Do something else."}`)
	require.Equal(t, 422, status, text)
	require.Contains(t, text, `"pointer":"/goal"`)
	require.NotContains(t, s.get("/runs"), `"runId"`)
}

// A run that was started with a text is continued by the next server that serves its spec.
func TestServeResumesRuns(t *testing.T) {
	t.Parallel()
	server, dir := startCounting(t, "Second"), relayFolder(t)
	spec := call{dir: dir, args: []string{filepath.Join(dir, "team.yaml"), "--journal", filepath.Join(dir, "kept.db")}, env: server.env()}
	first := serveHere(t, spec)
	status, text := first.do("POST", "/runs", `{"spec":"relay","inputs":{"note":"the note of a request"}}`)
	require.Equal(t, 202, status, text)
	run := object(t, text)["runId"].(string)
	<-server.blockedCalls
	first.stop()
	server.unblock()
	server.takeCalls()

	other := serveHere(t, call{dir: dir, args: []string{"--journal", filepath.Join(dir, "kept.db")}})
	status, text = other.do("POST", "/runs/"+run+"/resume", "")
	require.Equal(t, 409, status, "%s", text)
	require.Contains(t, text, "to continue: runteam resume "+run[:8], "its spec is not served")
	other.stop()

	next := serveHere(t, spec)
	status, text = next.do("POST", "/runs/"+run+"/resume", `{"reason":"lunch"}`)
	require.Equal(t, 422, status, "%s", text)
	status, text = next.do("POST", "/runs/"+run+"/resume", "")
	require.Equal(t, 200, status, "%s", text)
	require.Eventually(t, func() bool { return strings.Contains(next.get("/runs"), `"status":"ok"`) }, 20*time.Second, 20*time.Millisecond)
	require.Contains(t, next.get("/runs/"+run+"/receipts?contains=note+of+a+request"), `"kind":"input"`)
	require.NotContains(t, server.takeCalls(), "First", "it had completed")
	status, text = next.do("POST", "/runs/"+run+"/resume", "")
	require.Equal(t, 409, status, "%s", text)
	require.Contains(t, text, "is not running (ok)")
}
