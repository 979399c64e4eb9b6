package cli

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

const withInput = "agents: [{name: a}]\ninputs: {i: {}}\ntasks: [{title: T, assignee: a, description: d, uses: [i]}]\n"

// A pipe without a writer, an endless device, a socket and a folder are errors at once wherever a
// file is expected.
func TestOnlyFilesAreOpened(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": withInput, "ok.md": "text", "named.yaml": "agents: [{name: a, systemPrompt: {file: pipe}}]\n", "link.yaml": ""})
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "sub", "team.yaml"), 0o600))
	require.NoError(t, os.Remove(filepath.Join(dir, "link.yaml")))
	require.NoError(t, os.Symlink("pipe", filepath.Join(dir, "link.yaml")))
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(dir, "zero.yaml")))
	socket, err := net.Listen("unix", filepath.Join(dir, "socket"))
	require.NoError(t, err)
	defer socket.Close()
	for _, args := range []string{
		"check pipe", "check link.yaml", "check zero.yaml", "check socket", "check sub", "check named.yaml", "check /dev/zero", "run pipe", "plan pipe", "trust pipe",
		"run --offline --input i=pipe", "check --input i=/dev/zero", "check --input i=socket", "run --offline --input i=ok.md --script pipe", "mock pipe", "mock /dev/zero",
		"check --team pipe", "check --orchestrator pipe", "check --env-file pipe", "run --goal g --coordinator pipe",
	} {
		ended := make(chan outcome, 1)
		go func() { ended <- call{dir: dir, args: strings.Fields(args)}.run(t) }()
		select {
		case got := <-ended:
			require.Equal(t, exit.StatusUsage, got.status, "%s: %+v", args, got)
			require.Regexp(t, "not a regular file|a folder", got.stdout+got.stderr, args)
		case <-time.After(20 * time.Second):
			t.Fatalf("%s waits for the other end of a pipe", args)
		}
	}
}

// Standard input and <(command) of a shell work wherever a file may be a pipe.
func TestShellPipesWork(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": withInput, "script.yaml": "replies: [{text: from the script}]\n"})
	for args, text := range map[string]string{
		"run --offline --input i=-":                            "the input",
		"run --offline --input i=/dev/stdin":                   "the input",
		"run --offline --input i=/dev/fd/0":                    "the input",
		"run - --offline":                                      strings.ReplaceAll(withInput, "{}", "{text: x}"),
		"run /dev/stdin --offline":                             strings.ReplaceAll(withInput, "{}", "{text: x}"),
		"run /dev/fd/3 --offline":                              strings.ReplaceAll(withInput, "{}", "{text: x}"),
		"run --offline --input i=/dev/fd/3":                    "the input",
		"run --offline --input i=team.yaml --script /dev/fd/3": "replies: [{text: from the script}]\n",
		"check --input i=team.yaml --env-file /dev/fd/3":       "A=1\n",
	} {
		c := call{dir: dir, args: strings.Fields(args), stdin: text}
		cmd := c.command(t)
		if strings.Contains(args, "/dev/fd/3") {
			r, w, err := os.Pipe()
			require.NoError(t, err)
			_, err = w.WriteString(text)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			cmd.ExtraFiles = []*os.File{r}
			defer r.Close()
		}
		out, err := cmd.CombinedOutput()
		require.Equal(t, exit.StatusOK, statusAfter(t, err), "%s: %s", args, out)
	}
	got := call{dir: dir, args: []string{"trust", "/dev/stdin", "--yes"}, stdin: "apiKey: ${ACME_KEY}\nagents: [{name: a}]\n"}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "the next pipe has the same path: %+v", got)
}

// A signal ends the read of a pipe whose writer never writes.
func TestSignalEndsABlockedRead(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": withInput})
	for _, args := range []string{"check -", "run --offline --input i=-", "run --offline --goal -", "check --input i=/dev/stdin"} {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		cmd := call{dir: dir, args: strings.Fields(args)}.command(t)
		var out strings.Builder
		cmd.Stdin, cmd.Stderr = r, &out
		require.NoError(t, cmd.Start())
		require.NoError(t, r.Close())
		// A pipe holds less than this text, so the write returns once the command reads.
		_, err = w.WriteString(strings.Repeat("agents:\n", 16<<10))
		require.NoError(t, err, args)
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM), args)
		select {
		case err := <-done:
			require.Equal(t, exit.StatusSIGTERM, statusAfter(t, err), "%s: %s", args, out.String())
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			t.Fatalf("%s: SIGTERM did not end it", args)
		}
		require.NoError(t, w.Close())
	}
}
