package cli

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// A task that was cancelled and run again has the state in which it ended at last, wherever runs are compared.
func TestATaskThatRanAgainIsComparedAsItEnded(t *testing.T) {
	t.Parallel()
	server := startCounting(t, "First", "Other")
	dir := clitest.Folder(t, map[string]string{"team.yaml": `name: again
model: test-model
agents: [{name: a}, {name: b}]
tasks:
  - {title: First, assignee: a, description: one}
  - {title: Second, assignee: a, dependsOn: [First], description: two}
  - {title: Other, assignee: b, description: three}
`})
	running := server.startBlocked(t, call{dir: dir, args: []string{"run", "--progress", "none"}, env: server.env()})
	send := func(args ...string) outcome { return call{dir: dir, args: args, env: server.env()}.run(t) }
	_, id, _ := strings.Cut(send("runs", "-o", "json").stdout, `"runId":"`)
	id = id[:8]
	shows := func(pattern string) {
		t.Helper()
		require.Eventually(t, func() bool { return regexp.MustCompile(pattern).MatchString(send("show").stdout) }, 20*time.Second, 50*time.Millisecond, pattern)
	}
	require.Equal(t, exit.StatusOK, send("cancel", id, "First").status)
	shows(`(?m)^skipped +Second `)
	server.unblock()
	require.Equal(t, exit.StatusOK, send("rerun", id, "First").status)
	shows(`(?m)^completed +Second `)
	s := serveHere(t, call{dir: dir})
	for _, of := range object(t, s.get("/runs/"+id+"/compare/"+id))["tasks"].([]any)[:2] { // while the run is live
		for _, side := range []string{"before", "after"} {
			got := of.(map[string]any)[side].(map[string]any)
			require.Equal(t, "completed", got["status"], "%v", of)
			require.NotContains(t, got, "error", "%v", of)
		}
	}
	require.Equal(t, exit.StatusOK, send("interrupt", id, "Other", "go on").status)
	shows(`again: run \S+: ok\n`)
	_ = running.Wait() // startBlocked waits for it too
	require.Equal(t, exit.StatusOK, send("replay", id).status)
	require.Equal(t, exit.StatusOK, send("run", "--progress", "none").status)
	newest, err := stored(t, dir).Find(t.Context(), "")
	require.NoError(t, err)
	got := send("replay", id, "--diff", newest.Run)
	require.Regexp(t, `(?m)^First +completed `, got.stdout)
	require.NotContains(t, got.stdout, "skipped")
}
