//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A server whose journal was removed says so, and starts no run in a new one that it would not show.
func TestServeWithoutItsJournal(t *testing.T) {
	t.Parallel()
	dir := relayFolder(t)
	path := filepath.Join(dir, ".runteam", "runs.db")
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	s := serveHere(t, call{dir: dir, args: []string{filepath.Join(dir, "team.yaml"), "--offline"}})
	require.NoError(t, os.RemoveAll(path))
	for _, request := range [][3]string{{"GET", "/runs", ""}, {"GET", "/questions", ""}, {"POST", "/runs", `{"spec":"relay"}`}, {"GET", "/governance/handoff-rules", ""}} {
		status, text := s.do(request[0], request[1], request[2])
		require.Equal(t, 503, status, "%s: %s", request, text)
		require.Contains(t, text, "the file was removed or replaced while it was open", "%s", request)
	}
	require.NoFileExists(t, path)
}
