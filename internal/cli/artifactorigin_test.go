package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// artifactFiles are a spec whose agent edits two lines of a file, and its inputs.
func artifactFiles(script, other, classification string) map[string]string {
	return map[string]string{
		"repo/main.txt":  "one\nmail ann@x.org\nbug\n",
		"other/main.txt": "one\n" + other + "\nbug\n",
		"team.yaml": `offline: script.yaml
model: m
agents:
  - {name: fixer, accepts: secret, backend: {kind: process, command: sh, args: [-c, "` + script + `"]}}
inputs:
  repo: {dir: repo}
  other: {dir: other, classification: ` + classification + `}
tasks:
  - title: Fix
    assignee: fixer
    workspace: {input: repo}
    outputFiles: ["*.txt", "*.md"]
    description: Fix it.
`,
		"script.yaml": "replies: [{text: x}]\n",
	}
}

func TestPatchHasTheOriginalLinesOfItsOwnInput(t *testing.T) {
	t.Parallel()
	requireConfinement(t)
	for name, tt := range map[string]struct{ other, level, want string }{
		"another text":         {"text of another input", "internal", "mail ann@x.org"},
		"more sensitive":       {"mail of another input", "secret", "mail ann@x.org"},
		"either may be it":     {"mail of another input", "internal", ""},
		"both have equal text": {"mail ann@x.org", "internal", "mail ann@x.org"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, artifactFiles("sed -i s/bug/feature/ main.txt", tt.other, tt.level))
			run := func(args ...string) outcome { return call{bare: true, dir: dir, args: args}.run(t) }
			first := run("run", "--offline")
			require.Equal(t, exit.StatusOK, first.status, "%+v", first)
			patch := run("artifacts", "Fix", "--patch")
			require.Equal(t, exit.StatusOK, patch.status, "%+v", patch)
			if tt.want == "" { // without the line, since its text is not certain
				require.Contains(t, patch.stdout, "@@ -3 +3 @@\n-bug\n+feature\n")
				return
			}
			require.Contains(t, patch.stdout, " "+tt.want+"\n-bug\n+feature\n")
		})
	}
}

func TestOutputFileThatIsNamedLikeTheResult(t *testing.T) {
	t.Parallel()
	requireConfinement(t)
	dir := clitest.Folder(t, artifactFiles("echo file > result.md; echo answer", "other", "internal"))
	run := func(args ...string) outcome { return call{bare: true, dir: dir, args: args}.run(t) }
	first := run("run", "--offline")
	require.Equal(t, exit.StatusOK, first.status, "%+v", first)
	saved := run("artifacts", "Fix", "--save", "out")
	require.Equal(t, exit.StatusOK, saved.status, "%+v", saved)
	entries, err := os.ReadDir(filepath.Join(dir, "out"))
	require.NoError(t, err)
	require.Len(t, entries, 2, "%v", entries)
	file, err := os.ReadFile(filepath.Join(dir, "out", "result.md"))
	require.NoError(t, err)
	require.Equal(t, "file\n", string(file))
}
