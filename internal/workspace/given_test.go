//go:build unix

package workspace_test

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/workspace"
)

// give makes a workspace with files: pairs of a path and a text.
func give(t testing.TB, pairs ...string) (*workspace.Folder, map[string]*string) {
	t.Helper()
	files := map[string]*string{}
	for i := 0; i < len(pairs); i += 2 {
		files[pairs[i]] = new(pairs[i+1])
	}
	f := made(t)
	require.NoError(t, f.Give(files, func(text *string) [sha256.Size]byte { return sha256.Sum256([]byte(*text)) }))
	return f, files
}

// isWritten reports whether a file of a workspace was written since it was given.
func isWritten(t testing.TB, f *workspace.Folder, name string, text *string) bool {
	t.Helper()
	info, err := f.Lstat(name)
	require.NoError(t, err)
	return f.IsWritten(name, info, text)
}

func TestGivenFilesAreKnown(t *testing.T) {
	t.Parallel()
	f, files := give(t, "a", "a", "src/b.sh", "#!/bin/sh\n", "src/deep/er/c", "c", "src/d", "d", "z/e", "e")
	for name, text := range files {
		got, err := f.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, *text, string(got))
		require.False(t, isWritten(t, f, name, text), name)
	}
	info, err := f.Lstat("src/b.sh")
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&0o100, "a script can be executed")

	again, err := workspace.Open(filepath.Dir(f.Name()), f.Base())
	require.NoError(t, err)
	defer again.Close()
	require.False(t, isWritten(t, again, "a", files["a"]), "another process compares the texts")
	require.True(t, isWritten(t, again, "a", new("b")))
	require.Equal(t, digest(t, again), digest(t, f))
}

// Whatever a program does to a file that it was given shows, also if it sets the old time.
func TestWrittenFilesAreNotTakenForGivenOnes(t *testing.T) {
	t.Parallel()
	given := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, change := range map[string]func(f *workspace.Folder) error{
		"same text":    func(f *workspace.Folder) error { return f.WriteFile("a", []byte("one"), 0o644) },
		"other length": func(f *workspace.Folder) error { return f.WriteFile("a", []byte("ones"), 0o644) },
		"old time": func(f *workspace.Folder) error {
			return errors.Join(f.WriteFile("a", []byte("two"), 0o644), f.Chtimes("a", given, given))
		},
		"other file": func(f *workspace.Folder) error { return f.Rename("b", "a") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, files := give(t, "a", "one", "b", "two")
			before := digest(t, f)
			waitForClock(t)
			require.NoError(t, change(f))
			require.True(t, isWritten(t, f, "a", files["a"]))
			require.NotEqual(t, before, digest(t, f))
		})
	}
}

// waitForClock waits until the file system counts another time than that of the files in a workspace.
func waitForClock(t testing.TB) {
	t.Helper()
	other := filepath.Join(t.TempDir(), "clock")
	modified := func() time.Time {
		require.NoError(t, os.WriteFile(other, nil, 0o600))
		info, err := os.Stat(other)
		require.NoError(t, err)
		return info.ModTime()
	}
	for start := modified(); modified().Equal(start); {
	}
}

func TestGiveRefusesNamesThatAreOneFile(t *testing.T) {
	t.Parallel()
	f := made(t)
	write(t, f, "src/readme", "as on a file system that takes it for README")
	err := f.Give(map[string]*string{"src/readme": new("x")}, nil)
	require.ErrorContains(t, err, "src/readme: this file system takes the name for that of another file of the folder")
	text, err := f.ReadFile("src/readme")
	require.NoError(t, err)
	require.NotEqual(t, "x", string(text))
}
