package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/runteam/runteam/internal/cli/files"
	"github.com/stretchr/testify/require"
)

func TestFolderReplacesNothingUnlessForced(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	f := &files.Folder{Flag: "save", Path: dir}
	require.NoError(t, f.Open("", []string{"x.md"}))
	require.NoError(t, f.WriteFile("x.md", []byte("one")))
	require.EqualError(t, f.WriteFile("x.md", []byte("two")), "x.md: it exists, and is left as it is")
	require.ErrorContains(t, f.WriteFile("../x.md", []byte("two")), "../x.md: ")
	f.Force = true
	require.NoError(t, f.WriteFile("x.md", []byte("three")))
	f.Close()
	text, err := os.ReadFile(filepath.Join(dir, "x.md"))
	require.NoError(t, err)
	require.Equal(t, "three", string(text))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "no temporary file stays")
}

func TestEmptyFolderIsRemoved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a")
	f := &files.Folder{Path: dir}
	require.NoError(t, f.Open("", nil))
	f.Close()
	require.NoDirExists(t, dir)
}

func TestSlugsAreNamesOfFiles(t *testing.T) {
	t.Parallel()
	require.Equal(t, "Write-the-letter--2", files.Slug("Write the letter #2"))
	require.Equal(t, "etc-passwd", files.Slug("../../etc/passwd"))
	require.Empty(t, files.Slug("名前"))
}
