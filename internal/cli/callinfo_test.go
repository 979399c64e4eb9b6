package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// run, its events and show name the model call that answered.
func TestShowNamesTheModelCall(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"script.yaml": `replies: [{task: Draft, body: '{"id":"chatcmpl-77","model":"m-2026-01","choices":[{"message":{"content":"A draft"},"finish_reason":"stop"}]}'}]`,
		"team.yaml":   "offline: script.yaml\nagents: [{name: writer}]\ntasks: [{title: Draft, description: Write it.}]\n",
	})
	run := func(args ...string) outcome { return call{bare: true, dir: dir, args: args}.run(t) }
	want := func(of any) {
		t.Helper()
		info := of.(map[string]any)["call"].(map[string]any)
		require.Equal(t, "m-2026-01", info["model"])
		require.Equal(t, "stop", info["finishReason"])
	}
	got := run("run", "team.yaml", "--offline", "-o", "json", "--events", "events.ndjson")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	want(object(t, got.stdout)["tasks"].([]any)[0])
	events, err := os.ReadFile(filepath.Join(dir, "events.ndjson"))
	require.NoError(t, err)
	require.Regexp(t, `"type":"agent_complete".*"call":\{"model":"m-2026-01"`, string(events))
	require.Contains(t, run("show", "Draft").stdout, "answered by m-2026-01 · ")
	shown := object(t, run("show", "Draft", "-o", "json").stdout)
	want(shown)
	want(shown["exchanges"].([]any)[0])
	want(object(t, run("replay", "-o", "json").stdout)["tasks"].([]any)[0])
}
