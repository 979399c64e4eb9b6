//go:build linux

package process_test

import (
	"os"
	"os/user"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/process"
)

func TestFilesThatAConfinedProgramMustNotRead(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, dir := range []string{".ssh/keys", ".pyenv", ".runteam/workspaces"} {
		require.NoError(t, os.MkdirAll(filepath.Join(home, dir), 0o700))
	}
	require.NoError(t, os.Symlink(home, filepath.Join(home, ".pyenv", "link")))
	project := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(project, ".runteam"), 0o700))
	for path, want := range map[string]string{
		"relative":                         "the path is relative; write an absolute path",
		filepath.Join(home, "no"):          "it does not exist; correct the path",
		"/":                                "which can hold keys",
		"/proc/1":                          "what other programs do",
		"/dev":                             "what other programs do",
		"/etc":                             "/etc/shadow",
		os.TempDir():                       "which can hold keys", // the home is in it
		home:                               ".ssh, which can hold keys",
		filepath.Dir(home):                 ".ssh, which can hold keys",
		filepath.Join(home, ".ssh/keys"):   ".ssh, which can hold keys",
		filepath.Join(home, ".pyenv/link"): ".ssh, which can hold keys",
		filepath.Join(home, ".runteam/workspaces"): "lies in a folder .runteam",
		project: "lies in a folder .runteam",
	} {
		err := process.CheckReadable(path)
		require.ErrorContains(t, err, want, path)
		require.ErrorContains(t, err, path+": ")
	}
	require.NoError(t, process.CheckReadable(filepath.Join(home, ".pyenv")))
	require.NoError(t, process.CheckReadable("/usr/lib"))
}

func TestFoldersContainPathsHoweverTheyAreWritten(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.Symlink(dir, filepath.Join(dir, "link")))
	for _, path := range []string{"journal", "link/missing/journal", "./link", filepath.Join(dir, "link", "missing")} {
		require.True(t, process.Contains(dir, path), path)
		require.True(t, process.Contains("link", path), path)
	}
	require.False(t, process.Contains("link", "../other"))
	require.False(t, process.Contains("missing", dir))
}

// The home that the system knows of the user counts too, whatever the environment says.
func TestKeysOfTheUserWithoutHome(t *testing.T) {
	u, err := user.Current()
	require.NoError(t, err)
	for _, home := range []string{"", t.TempDir()} {
		t.Setenv("HOME", home)
		require.ErrorContains(t, process.CheckReadable(u.HomeDir), "which can hold keys", home)
	}
}
