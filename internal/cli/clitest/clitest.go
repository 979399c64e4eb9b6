// Package clitest has what tests of the command share.
package clitest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/workdir"
	"github.com/stretchr/testify/require"
)

// update says to rewrite golden files.
var update = flag.Bool("update", false, "rewrite the golden files")

// Updates reports whether tests rewrite what they expect, as with -update.
func Updates() bool { return *update }

// RequireGolden compares a text with a file, or rewrites the file with -update.
func RequireGolden(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// Folder makes a folder with the given files.
func Folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) // as a key must be
	}
	return dir
}

// JournalFolder returns a new folder in which a journal folder is, so that a run makes none and
// does not report it.
func JournalFolder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".runteam"), 0o700))
	return dir
}

// Console returns an app in this process, away from every terminal, with a journal of its own.
func Console(t testing.TB, args ...string) (con *console.Console, stdout, stderr *bytes.Buffer) {
	t.Helper()
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	return console.New(console.Console{
		Args: args, Stdin: bytes.NewReader(nil), Stdout: stdout, Stderr: stderr,
		WorkDir:      workdir.Dir(JournalFolder(t)),
		LookupEnv:    func(string) (string, bool) { return "", false },
		Now:          time.Now,
		IsTerminal:   func(any) bool { return false },
		TerminalSize: func(any) (int, int) { return 0, 0 },
		Signals:      make(chan os.Signal),
		Exit:         func(int) { panic("exit") },
	}), stdout, stderr
}

// Listing returns the names of the files in a folder.
func Listing(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// Contents returns what a file contains.
func Contents(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// Noon is a fixed time.
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
