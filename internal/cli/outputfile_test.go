package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/stretchr/testify/require"
)

func TestNewFileReplacesOnlyTheFileItChecked(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(t *testing.T, path string){
		"a link": func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Symlink("mine.yaml", path))
		},
		"another file": func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path+".tmp", []byte("old"), 0o600))
			require.NoError(t, os.Rename(path+".tmp", path))
		},
		"more in it": func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, []byte("old and more"), 0o600))
		},
		"a folder": func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Mkdir(path, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, map[string]string{"mine.yaml": "mine", "f.yaml": "old"})
			f := files.Output{Flag: "record", Path: filepath.Join(dir, "f.yaml"), Force: true}
			require.NoError(t, f.Check(""))
			meanwhile(t, f.Path)
			before, err := os.Lstat(f.Path)
			require.NoError(t, err)
			err = f.Write([]byte("new"))
			require.ErrorContains(t, err, "not written: the file was changed or replaced while the command ran")
			after, statErr := os.Lstat(f.Path)
			require.NoError(t, statErr)
			require.True(t, os.SameFile(before, after))
			require.Equal(t, "mine", clitest.Contents(t, filepath.Join(dir, "mine.yaml")))
			requireSaved(t, err, dir, "new")
			require.Len(t, clitest.Listing(t, dir), 3, "no temporary file is left")
		})
	}
}

// If the folder was replaced meanwhile, the new one is not changed, and the data is saved elsewhere.
func TestNewFileStaysInItsFolder(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"a/f.yaml": "old", "b/f.yaml": "mine"})
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "to")))
	f := files.Output{Flag: "record", Path: filepath.Join(dir, "to", "f.yaml"), Force: true}
	require.NoError(t, f.Check(""))
	require.NoError(t, os.Remove(filepath.Join(dir, "to")))
	require.NoError(t, os.Symlink("b", filepath.Join(dir, "to")))
	err := f.Write([]byte("new"))
	require.ErrorContains(t, err, "its folder is another one than when the command began")
	saved := requireSaved(t, err, os.TempDir(), "new")
	require.NoError(t, os.Remove(saved))
	require.Equal(t, "mine", clitest.Contents(t, filepath.Join(dir, "b", "f.yaml")))
	require.Equal(t, "old", clitest.Contents(t, filepath.Join(dir, "a", "f.yaml")))
}

// requireSaved requires that an error names the file that holds a text, for its owner only.
func requireSaved(t *testing.T, err error, dir, text string) (path string) {
	t.Helper()
	_, path, found := strings.Cut(err.Error(), "what was to be written is in ")
	require.True(t, found, "%v", err)
	require.Equal(t, filepath.Clean(dir), filepath.Dir(path))
	require.Equal(t, text, clitest.Contents(t, path))
	at, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), at.Mode())
	return path
}

// A saved plan keeps the mode of the file that it replaces; other files are only for their owner.
func TestModesOfNewFiles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		keepMode  bool
		old, want os.FileMode // no old: a new file
	}{
		{true, 0, 0o600}, {true, 0o644, 0o644}, {true, 0o400, 0o400}, {true, 0o640, 0o640},
		{false, 0, 0o600}, {false, 0o644, 0o600},
	} {
		f := files.Output{Flag: "save", Path: filepath.Join(t.TempDir(), "f"), Force: true, KeepMode: tt.keepMode}
		if tt.old != 0 {
			require.NoError(t, os.WriteFile(f.Path, nil, 0o600))
			require.NoError(t, os.Chmod(f.Path, tt.old))
		}
		require.NoError(t, f.Check(""))
		require.NoError(t, f.Write([]byte("new")))
		at, err := os.Stat(f.Path)
		require.NoError(t, err)
		require.Equal(t, tt.want, at.Mode(), "%+v", tt)
	}
}

// A file that was created while the command ran is not replaced either.
func TestNewFileNeverReplacesWithoutForce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := files.Output{Flag: "save", Path: filepath.Join(dir, "f")}
	require.NoError(t, f.Check(""))
	require.NoError(t, os.WriteFile(f.Path, []byte("theirs"), 0o600))
	err := f.Write([]byte("ours"))
	require.ErrorContains(t, err, "not written: another file was created there while the command ran, and is left as it is")
	require.NoError(t, os.Remove(requireSaved(t, err, dir, "ours")))
	text, err := os.ReadFile(f.Path)
	require.NoError(t, err)
	require.Equal(t, "theirs", string(text))
	require.Equal(t, []string{"f"}, clitest.Listing(t, dir))
	require.NoError(t, os.Remove(f.Path))
	require.NoError(t, f.Write([]byte("ours")))
	f.Force = true
	require.NoError(t, f.Check(""))
	require.NoError(t, f.Write([]byte("ours again")))
	text, err = os.ReadFile(f.Path)
	require.NoError(t, err)
	require.Equal(t, "ours again", string(text))
	require.Equal(t, []string{"f"}, clitest.Listing(t, dir))
}
