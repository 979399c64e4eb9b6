//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/process"
)

// readable of a command names folders from the folder of the spec, and plan shows them.
func TestCommandReadsItsReadableFolders(t *testing.T) {
	t.Parallel()
	if !process.Confines() {
		t.Skip("this system cannot confine programs")
	}
	lib := filepath.Join(clitest.Folder(t, map[string]string{"lib/word": "found it"}), "lib")
	dir := clitest.Folder(t, processFiles(`command: sh, args: [-c, "cat $0/word", `+lib+`], readable: [./lib]`))
	require.NoError(t, os.Symlink(lib, filepath.Join(dir, "lib")))
	run := func(args ...string) outcome { return call{bare: true, dir: dir, args: args}.run(t) }
	own := filepath.Join(dir, "lib")
	require.Contains(t, run("plan").stdout, "readable: commands of agent counter may read and execute "+own)
	require.Equal(t, []any{own}, object(t, run("plan", "-o", "json").stdout)["agents"].([]any)[0].(map[string]any)["readable"])
	got := run("run", "--offline")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "found it")
}

// A command may read neither the journal of its run nor the workspaces of others, wherever they are.
func TestCommandsMayNotReadWhatOthersRead(t *testing.T) {
	t.Parallel()
	if !process.Confines() {
		t.Skip("this system cannot confine programs")
	}
	above := clitest.Folder(t, map[string]string{"lib/word": "found it", "ws/.keep": "", "team/.keep": ""})
	dir := filepath.Join(above, "team")
	for readable, flags := range map[string][]string{above: nil, filepath.Join(above, "ws"): {"--workspaces", "../ws"}, filepath.Join(above, "lib"): {"--journal", "../lib/runs.db"}} {
		for name, text := range processFiles("command: sh, args: [-c, echo done], readable: [" + readable + "]") {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		got := call{bare: true, dir: dir, args: append([]string{"run", "--offline"}, flags...)}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
		require.Contains(t, got.stderr, "its commands may read "+readable+", and the journal has what other agents read in "+readable)
	}
}

func TestFoldersThatAreNotReadable(t *testing.T) {
	t.Parallel()
	for backend, want := range map[string]string{
		`command: sh, readable: [/usr, missing]`:        `team.yaml:5:60: backend.readable: "missing": it does not exist`,
		`command: sh, readable: [/]`:                    `backend.readable: "/": it has `,
		`command: sh, readable: [/proc]`:                `backend.readable: "/proc": the kernel and services show there`,
		`command: sh, confine: false, readable: [/usr]`: `backend.readable: a command that is not confined can read every file`,
	} {
		got := call{bare: true, dir: clitest.Folder(t, processFiles(backend)), args: []string{"check"}}.run(t)
		require.Equal(t, 2, got.status, "%+v", got)
		require.Contains(t, got.stderr, want)
	}
}
