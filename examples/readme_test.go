package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadmesShowWhatCommandsPrint runs the commands of the console blocks of
// every README here, one after the other as a reader would from the root of the
// repository, and finds in what they print, in their order, the parts that a
// block shows. A line with nothing but … stands for what was left out.
func TestReadmesShowWhatCommandsPrint(t *testing.T) {
	t.Parallel()
	readmes, err := filepath.Glob("*/README.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```console\n\\$ (.*?)\n(.*?)```")
	shown := 0
	for _, readme := range readmes {
		text, err := os.ReadFile(readme)
		require.NoError(t, err)
		root := t.TempDir()
		example := filepath.Dir(readme)
		require.NoError(t, os.CopyFS(filepath.Join(root, "examples", example), os.DirFS(example)))
		for _, block := range blocks.FindAllStringSubmatch(string(text), -1) {
			command, output := block[1], printed(t, root, block[1])
			for part := range strings.SplitSeq("\n"+block[2], "\n…\n") {
				if part = strings.Trim(part, "\n"); part == "" {
					continue
				}
				_, after, found := strings.Cut("\n"+output, "\n"+part+"\n") // whole lines
				require.True(t, found, "%s: %s does not print\n%s\nbut\n%s", readme, command, part, output)
				output = after
			}
			shown++
		}
	}
	require.GreaterOrEqual(t, shown, 3)
}

// printed runs a line of a shell in a folder, and returns stdout, then stderr.
func printed(t *testing.T, dir, line string) string {
	t.Helper()
	command, ok := strings.CutPrefix(line, "go run ./cmd/runteam ")
	require.True(t, ok, line)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", filepath.Join(bin, "runteam")+" "+command)
	cmd.Dir, cmd.Env = dir, clean()
	var out, log strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &log
	require.NoError(t, cmd.Run(), "%s: %s", line, log.String())
	return out.String() + log.String()
}
