package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/stretchr/testify/require"
)

func TestInitThatCannotWriteLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, nil)
	names := []string{"notes.md", "no such file"}
	require.Error(t, writeStarter("", dir, names))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// The error names the folder, not the first file.
func TestInitInAReadOnlyFolder(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("nothing is read-only for root")
	}
	dir := clitest.Folder(t, map[string]string{"own/x": ""})
	own := filepath.Join(dir, "own")
	require.NoError(t, os.Chmod(own, 0o500))
	defer func() { _ = os.Chmod(own, 0o700) }()
	for args, c := range map[string]call{
		"this folder: ": {dir: own, args: []string{"init"}}, "own: ": {dir: dir, args: []string{"init", "own"}}, "own/sub: ": {dir: dir, args: []string{"init", "own/sub"}},
	} {
		got := c.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
		require.Equal(t, "runteam: "+args+"nothing can be written there: permission denied; name another folder\n", got.stderr)
	}
}

func TestShellWord(t *testing.T) {
	t.Parallel()
	for give, want := range map[string]string{"a/b-c.yaml": "a/b-c.yaml", "a b": `"a b"`, "it's": `'it'\''s'`, "": "''", "$(x)": "'$(x)'", "-x": "./-x", "a\x1b[2J": `$'a\033[2J'`} {
		require.Equal(t, want, format.ShellPath(give))
	}
}
