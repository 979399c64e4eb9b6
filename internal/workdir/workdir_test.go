package workdir_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/runteam/runteam/internal/workdir"
	"github.com/stretchr/testify/require"
)

// folder returns a folder with sub/a.txt, a link to sub, and a link to a folder outside with b.txt.
func folder(t *testing.T) workdir.Dir {
	t.Helper()
	dir, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(outside, "deep"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sub", "a.txt"), []byte("a"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "b.txt"), []byte("b"), 0o600))
	require.NoError(t, os.Symlink("sub", filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "deep"), filepath.Join(dir, "out")))
	return workdir.Dir(dir)
}

func TestRelativePathsStartFromTheFolder(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	for path, want := range map[string]string{
		"sub/a.txt": "a", "./link/a.txt": "a", filepath.Join(string(dir), "sub", "a.txt"): "a",
		"out/../b.txt": "b", // of the folder above what the link leads to
	} {
		f, err := dir.Open(path)
		require.NoError(t, err, path)
		text, err := io.ReadAll(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.Equal(t, want, string(text), path)
	}
	require.True(t, dir.IsDir("."))
	require.False(t, dir.IsDir("sub/a.txt"))
	at, err := dir.Abs("sub/../x")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(string(dir), "x"), at)
	here, err := dir.Getwd()
	require.NoError(t, err)
	require.Equal(t, string(dir), here)
}

// A zero Dir is the folder of the process.
func TestZeroDirIsTheWorkingDirectory(t *testing.T) {
	t.Parallel()
	var dir workdir.Dir
	_, err := dir.Stat("workdir_test.go")
	require.NoError(t, err)
	here, err := dir.Getwd()
	require.NoError(t, err)
	own, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, own, here)
	require.Equal(t, "x/../y", dir.Path("x/../y"))
}

// Errors are those of a process that works in the folder.
func TestErrorsNamePathsAsWritten(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	for _, open := range []func(string) error{
		func(path string) error { _, err := dir.Open(path); return err },
		func(path string) error { _, err := dir.OpenFile(path, os.O_RDONLY, 0); return err },
		func(path string) error { _, err := dir.OpenRoot(path); return err },
		func(path string) error { _, err := dir.Stat(path); return err },
		func(path string) error { _, err := dir.Lstat(path); return err },
		func(path string) error { _, err := dir.EvalSymlinks(path); return err },
		dir.Remove,
	} {
		err := open("no/such")
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.NotContains(t, err.Error(), string(dir))
		absent := filepath.Join(string(dir), "absent")
		require.ErrorContains(t, open(absent), absent)
	}
	require.ErrorContains(t, dir.MkdirAll("sub/a.txt/x/y", 0o700), " sub/a.txt: ", "the path at which it failed")
}

// A path is followed to a relative one inside the folder, and to an absolute one outside.
func TestLinksAreFollowed(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	to, err := dir.EvalSymlinks("link/a.txt")
	require.NoError(t, err)
	require.Equal(t, filepath.Join("sub", "a.txt"), to)
	to, err = dir.EvalSymlinks("out")
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(to), to)
	require.Equal(t, "deep", filepath.Base(to))
}
