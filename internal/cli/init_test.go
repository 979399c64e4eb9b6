package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/stretchr/testify/require"
)

// A broken starter would be the first impression of a new user.
func TestStarterChecksPlansAndRuns(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "my minutes")
	got := call{args: []string{"init", dir}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, strings.Join([]string{filepath.Join(dir, "notes.md"), filepath.Join(dir, "script.yaml"), filepath.Join(dir, "team.yaml"), ""}, "\n"), got.stdout)
	require.Contains(t, got.stderr, "runteam run \""+dir+"\" --offline", "quoted for a shell")

	got = call{args: []string{"check", dir}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Empty(t, got.stderr, "no warning")
	require.Contains(t, got.stdout, "ok: 4 tasks, 3 agents, 1 input")
	got = call{args: []string{"plan", dir}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "answer: Write the e-mail")
	got = call{dir: dir, args: []string{"run", "--offline"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.NotContains(t, got.stdout, "(not in the prompt)")
	require.NotContains(t, got.stdout, "OFFLINE")
	require.Contains(t, got.stdout, "- Wednesday 4 March: Grace tests the date picker on three phones\n")
	require.Contains(t, got.stdout, "- Who answers support mail in the holidays?\n")

	// What the agents are given decides what they answer.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other.md"), []byte("- Decided: Nobody does anything by Sunday.\n"), 0o644))
	got = call{dir: dir, args: []string{"run", "--offline", "--input", "notes=other.md"}}.run(t)
	require.Contains(t, got.stdout, "- Sunday: Nobody does anything\n")
	require.NotContains(t, got.stdout, "Grace")
}

func TestInitOverwritesNothing(t *testing.T) {
	t.Parallel()
	for _, taken := range [][]string{{"team.yaml"}, {"notes.md", "script.yaml"}, {"team.json"}, {"team.yml"}} {
		files := map[string]string{"other.txt": "mine"}
		for _, name := range taken {
			files[name] = "mine"
		}
		dir := clitest.Folder(t, files)
		got := call{dir: dir, args: []string{"init"}}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
		require.Empty(t, got.stdout)
		for _, name := range taken {
			require.Contains(t, got.stderr, name)
		}
		require.Contains(t, got.stderr, "nothing was written")
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, left, len(files))
		for name := range files {
			text, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			require.Equal(t, "mine", string(text))
		}
	}
	got := call{dir: clitest.Folder(t, map[string]string{"team.yaml": "", "sub": ""}), args: []string{"init", "-o", "json"}}.run(t)
	require.Equal(t, "io", object(t, got.stdout)["error"].(map[string]any)["kind"])
}

func TestInitNeedsAFolder(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"file": "mine"})
	for args, want := range map[string]string{
		"init file": "file is a file, not a folder", "init file/below": "file/below: nothing can be written there: not a directory; name another folder", "init -": "name a folder", "init a b": "one DIR, not 2",
	} {
		got := call{dir: dir, args: strings.Fields(args)}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
		require.Contains(t, got.stderr, want)
	}
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "team.yaml")))
	got := call{dir: dir, args: []string{"init"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Contains(t, got.stderr, "already exists: team.yaml", "a broken link exists too")
}

func TestInitThatCannotWriteLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, nil)
	names := []string{"notes.md", "no such file"}
	require.Error(t, writeStarter("", dir, names))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// The error names the folder, not the first file.
func TestInitInAReadOnlyFolder(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("nothing is read-only for root")
	}
	dir := clitest.Folder(t, map[string]string{"own/x": ""})
	own := filepath.Join(dir, "own")
	require.NoError(t, os.Chmod(own, 0o500))
	defer func() { _ = os.Chmod(own, 0o700) }()
	for args, c := range map[string]call{
		"this folder: ": {dir: own, args: []string{"init"}}, "own: ": {dir: dir, args: []string{"init", "own"}}, "own/sub: ": {dir: dir, args: []string{"init", "own/sub"}},
	} {
		got := c.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
		require.Equal(t, "runteam: "+args+"nothing can be written there: permission denied; name another folder\n", got.stderr)
	}
}

func TestInitInJSON(t *testing.T) {
	t.Parallel()
	got := call{args: []string{"init", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, []any{"notes.md", "script.yaml", "team.yaml"}, object(t, got.stdout)["files"])
	require.Contains(t, got.stderr, "runteam run --offline ")
}

func TestShellWord(t *testing.T) {
	t.Parallel()
	for give, want := range map[string]string{"a/b-c.yaml": "a/b-c.yaml", "a b": `"a b"`, "it's": `'it'\''s'`, "": "''", "$(x)": "'$(x)'", "-x": "./-x", "a\x1b[2J": `$'a\033[2J'`} {
		require.Equal(t, want, format.ShellPath(give))
	}
}
