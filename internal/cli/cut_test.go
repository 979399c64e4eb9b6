package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// A result that is cut is in the summary, in the JSON result and in the stored
// run; an input that does not fit is an error before the run.
func TestCutTextsAreReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("table.csv", strings.Repeat("row,of,a,table\n", 300<<10/15))
	write("script.yaml", "replies:\n  - task: Scan\n    text: '{{ input \"table\" }}'\n  - text: done\n")
	const agents = `
offline: script.yaml
agents: [{name: analyst}, {name: writer}]
tasks:
  - {title: Scan, assignee: analyst, description: Read it., uses: [table]}
  - {title: Write, assignee: writer, description: Write it., dependsOn: [Scan]}
`
	write("team.yaml", "inputs: {table: {file: table.csv}}"+agents)
	got := call{args: []string{"check", dir}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status)
	require.Contains(t, got.stderr, `team.yaml:5:68: task "Scan": input "table" has 300 KiB, and at most 256 KiB of it reach "analyst"`)
	require.Contains(t, got.stderr, "need, raise maxContextBytes, or let the input be cut with cut: true")

	write("team.yaml", "inputs: {table: {file: table.csv, cut: true}}"+agents)
	got = call{args: []string{"plan", dir}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "cut to 256 KiB")

	write("team.yaml", "inputs: {table: {file: table.csv, maxContextBytes: 400000}}"+agents)
	journal := filepath.Join(dir, "runs.db")
	const warning = `task "Write": the result of "Scan" was cut from 300 KiB to 256 KiB`
	got = call{args: []string{"run", dir, "--offline", "--journal", journal, "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stderr, "\n1 text cut to fit.\n")
	result := object(t, got.stdout)
	require.Contains(t, result["warnings"].([]any)[0], warning)
	require.EqualValues(t, 1, result["context"].(map[string]any)["truncated"])
	got = call{args: []string{"show", "--journal", journal}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "warning: "+warning)
}
