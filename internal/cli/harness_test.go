package cli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// update says to rewrite golden files.
var update = flag.Bool("update", false, "rewrite the golden files")

// requireGolden compares a text with a file, or rewrites the file with -update.
func requireGolden(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// folder makes a folder with the given files.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) // as a key must be
	}
	return dir
}

// journalFolderIn returns a new folder in which a journal folder is, so that a run makes none and
// does not report it.
func journalFolderIn(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".runteam"), 0o700))
	return dir
}

// here returns an app in this process, away from every terminal, with a journal of its own.
func here(t testing.TB, args ...string) (a *app, stdout, stderr *bytes.Buffer) {
	t.Helper()
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	return newApp(app{
		args: args, stdin: bytes.NewReader(nil), stdout: stdout, stderr: stderr,
		folder:     journalFolderIn(t),
		lookup:     func(string) (string, bool) { return "", false },
		now:        time.Now,
		isTerminal: func(any) bool { return false },
		size:       func(any) (int, int) { return 0, 0 },
		signals:    make(chan os.Signal),
		exit:       func(int) { panic("exit") },
	}), stdout, stderr
}

// A writerFunc is a function as an io.Writer.
type writerFunc func([]byte) (int, error)

// Write calls f.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
