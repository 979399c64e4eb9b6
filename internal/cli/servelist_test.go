package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// A server on all interfaces says how to reach it.
func TestServeOnAllInterfaces(t *testing.T) {
	t.Parallel()
	dir, _ := offlineFolder(t)
	ended := serveHere(t, call{dir: dir, args: []string{filepath.Join(dir, "team.yaml"), "--offline", "--listen", "0.0.0.0:0"}}).stop()
	require.Regexp(t, `^runteam: serving \S+ at http://127\.0\.0\.1:\d+\n`, ended.stderr)
	require.Contains(t, ended.stderr, "open the link with an address of this one in place of 127.0.0.1")
}

// What an agent did not see of an input counts in the list of runs, as it does after the run.
func TestServeCountsWhatIsWithheldInPart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../examples/complaint")))
	got := call{dir: dir, args: []string{"run", "--offline", "--journal", "kept.db"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
	require.Regexp(t, `(?m)^  clerk +/customer +input complaint`, got.stderr)
	require.Regexp(t, `(?m)^Run [0-9a-f]{8} is saved in kept\.db\. Next:$`, got.stderr)
	s := serveHere(t, call{dir: dir, args: []string{"--journal", filepath.Join(dir, "kept.db")}})
	require.Contains(t, s.get("/runs"), `"withheld":1`)
}
