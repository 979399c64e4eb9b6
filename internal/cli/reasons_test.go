package cli

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// Whoever gives a reason for a command may write of all that they see. A viewer below them gets no reason, also
// if nothing that the run has read so far is above that viewer.
func TestReasonsAreForThoseWhoSeeAll(t *testing.T) {
	t.Parallel()
	server := startCounting(t, "First")
	dir := clitest.Folder(t, map[string]string{"team.yaml": `name: reasons
model: test-model
agents: [{name: a}]
tasks:
  - {title: First, assignee: a, description: one}
  - {title: Second, assignee: a, dependsOn: [First], description: two}
`})
	running := server.startBlocked(t, call{dir: dir, args: []string{"run", "--progress", "none"}, env: server.env()})
	send := func(args ...string) outcome { return call{dir: dir, args: args, env: server.env()}.run(t) }
	_, id, _ := strings.Cut(send("runs", "-o", "json").stdout, `"runId":"`)
	id = id[:8]
	reasons := []string{"patient of ward seven", "diagnosis of ward eight", "death in ward nine"}
	for i, args := range [][]string{{"pause", id}, {"interrupt", id, "First", "go on"}, {"cancel", id}} {
		got := send(append(args, "--reason", reasons[i])...)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	}
	_ = running.Wait()

	whole := strings.Join(slices.Collect(maps.Values(walk(serveHere(t, call{dir: dir}), id, []string{"First", "Second"}))), "\n") + send("show").stdout
	got := send("export", id, "--html", "run.html")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	html, err := os.ReadFile(filepath.Join(dir, "run.html"))
	require.NoError(t, err)
	for _, reason := range reasons {
		require.Contains(t, whole, reason)
		require.Contains(t, string(html), reason)
	}
}
