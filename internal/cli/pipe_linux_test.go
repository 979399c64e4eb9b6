package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// A pipe in place of a journal or a key is refused at once. Where a pipe may be read, the wait for
// its writer ends with the first signal.
func TestPipesAreRefusedOrLeft(t *testing.T) {
	t.Parallel()
	dir := relayFolder(t)
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, args := range [][]string{
		{"run", "--journal", pipe}, {"runs", "--journal", pipe}, {"resume", "--journal", pipe}, {"gc", "--older-than", "1d", "--journal", pipe},
		{"run", "--journal-key", pipe}, {"run", "--audit-key", pipe}, {"audit", "verify", "team.yaml", "--key-file", pipe},
		{"run", "--offline", "--trace", pipe, "--force"}, {"run", "--offline", "--trace", "t.jsonl", "--audit-anchor", pipe, "--force"},
	} {
		got := call{dir: dir, args: args, env: map[string]string{"OPENAI_API_KEY": "k"}}.run(t)
		require.NotZero(t, got.status, "%v", args)
		require.Contains(t, got.stderr, "not a regular file", "%v", args)
	}
	for i, args := range [][]string{{"explain"}, {"audit", "verify"}} {
		pipe := filepath.Join(dir, fmt.Sprint("pipe", i)) // one for each, or the other's reader lets the writer below begin
		require.NoError(t, syscall.Mkfifo(pipe, 0o600))
		con, _, stderr := clitest.Console(t, append(args, pipe)...)
		signals := make(chan os.Signal, 1)
		con.Signals = signals
		time.AfterFunc(10*time.Millisecond, func() { signals <- syscall.SIGTERM })
		require.Equal(t, exit.StatusSIGTERM, runCommandLine(con), "%v: %s", args, stderr)
		writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // the goroutine that waits for it ends
		require.NoError(t, err)
		require.NoError(t, writer.Close())
	}
	con, _, stderr := clitest.Console(t, "explain", "-") // no process writes to this pipe
	signals := make(chan os.Signal, 1)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	con.Signals, con.Stdin = signals, r
	time.AfterFunc(10*time.Millisecond, func() { signals <- syscall.SIGTERM })
	require.Equal(t, exit.StatusSIGTERM, runCommandLine(con), "%s", stderr)
	require.NoError(t, w.Close())
	require.NoError(t, r.Close())
}

// An endless device is read no further than the longest key or line.
func TestEndlessFilesAreRefused(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"large": string(bytes.Repeat([]byte("k"), 5000)), "open": "a key that others can read", "team.yaml": one})
	require.NoError(t, os.Chmod(filepath.Join(dir, "open"), 0o644))
	for _, tt := range []struct{ file, want string }{
		{"/dev/zero", "not a regular file"},
		{"large", "larger than 4096 bytes"},
		{"open", "its mode 0644 lets other users read or change it"},
	} {
		for _, args := range [][]string{{"audit", "verify", "large", "--key-file"}, {"run", "--offline", "team.yaml", "--journal-key"}} {
			got := call{dir: dir, args: append(args, tt.file)}.run(t)
			require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
			require.Contains(t, got.stderr, tt.want)
		}
	}
	got := call{dir: dir, args: []string{"explain", "/dev/zero"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Contains(t, got.stderr, "line 1: it is longer than 16777216 bytes")
}
