package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// An output never replaces the script of the run.
func TestTraceDoesNotReplaceTheScript(t *testing.T) {
	t.Parallel()
	const script = "replies: [{text: hello}]\n"
	for _, file := range []string{"trace", "audit-anchor"} {
		for name, args := range map[string]string{"of the spec": "", "of a flag": " --script own.yaml"} {
			dir := clitest.Folder(t, map[string]string{"team.yaml": one + "offline: script.yaml\n", "script.yaml": script, "own.yaml": script})
			path := "script.yaml"
			if args != "" {
				path = "own.yaml"
			}
			flags := "--trace " + path
			if file == "audit-anchor" {
				flags = "--trace run.jsonl --audit-anchor " + path
			}
			got := call{dir: dir, args: strings.Fields("run --offline --force " + flags + args)}.run(t)
			require.Equal(t, exit.StatusUsage, got.status, "%s %s: %+v", file, name, got)
			require.Contains(t, got.stderr, "--"+file+" "+path+": the command uses this file for something else")
			text, err := os.ReadFile(filepath.Join(dir, path))
			require.NoError(t, err)
			require.Equal(t, script, string(text))
			require.NoFileExists(t, filepath.Join(dir, "run.jsonl"))
		}
	}
}

// The head is printed unless it is written to a file, since nothing else has it.
func TestHeadIsPrintedWithoutAnAnchor(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": one})
	got := call{dir: dir, args: strings.Fields("run --offline --progress none --trace run.jsonl")}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Regexp(t, `^audit: [0-9a-f]{64}:\d+\n$`, got.stderr)
	head := strings.TrimSpace(strings.TrimPrefix(got.stderr, "audit: "))
	got = call{dir: dir, args: []string{"audit", "verify", "run.jsonl", "--head", head}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "verified: run ")

	got = call{dir: dir, args: strings.Fields("run --offline --progress none --trace run.jsonl --force --audit-anchor head")}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Empty(t, got.stderr)
}
