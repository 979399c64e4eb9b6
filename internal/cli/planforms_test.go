package cli

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/stretchr/testify/require"
)

// The table in the documentation is the one that is printed.
func TestDocumentedTableMatchesTheOutput(t *testing.T) {
	t.Parallel()
	got := call{dir: harvestPath(t), args: []string{"plan"}}.run(t)
	_, table, ok := strings.Cut(got.stdout, "\nwho can see what\n")
	require.True(t, ok)
	docs, err := os.ReadFile("../../docs/reference/command.md")
	require.NoError(t, err)
	require.Contains(t, string(docs), "```\nwho can see what\n"+table+"```\n")
}

// manyAgents returns a spec of n agents in a row, each of which reads the result of the previous one.
func manyAgents(n int) string {
	var b strings.Builder
	b.WriteString("name: crowd\nmodel: m\ninputs: {brief: {text: Go.}}\nagents:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: agent %d}\n", i+1)
	}
	b.WriteString("tasks:\n  - {title: Task 1, assignee: agent 1, uses: [brief], description: Do it.}\n")
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "  - {title: Task %d, assignee: agent %[1]d, dependsOn: [Task %d], description: Do it.}\n", i+1, i)
	}
	return b.String()
}

// Long titles do not push the matrix off the screen, and wide letters do not shift it.
func TestMatrixColumnsAlignWithNames(t *testing.T) {
	t.Parallel()
	long := strings.Replace(manyAgents(3), "title: Task 3", "title: "+strings.Repeat("long ", 30), 1)
	got := call{args: []string{"plan", "-"}, stdin: strings.ReplaceAll(long, "brief", "指示書")}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	_, table, ok := strings.Cut(got.stdout, "\nwho can see what\n")
	require.True(t, ok)
	lines := strings.Split(strings.TrimSpace(table), "\n")[2:]
	heads, rows := lines[:5], lines[5:]
	require.Len(t, rows, 4)
	left := terminal.Width(heads[0]) - terminal.Width(strings.TrimLeft(heads[0], " "))
	require.Less(t, left, 70)
	for _, row := range rows {
		require.Equal(t, left+2*len(heads)-1, terminal.Width(row), "%q", row)
	}
}

// plan and check make no model call, in any form of output.
//
// Requirement: G46.
func TestPlanCallsNoModel(t *testing.T) {
	t.Parallel()
	server := serveModel(t, func(w http.ResponseWriter, _ *http.Request, _ int) { reply(w, "no") })
	questions := [][]string{nil, {"-o", "json"}, {"-o", "dot"}, {"-o", "mermaid"}, {"--from", "report"}, {"--to", "writer", "-o", "json"}, {"--assert", "input report never derives into writer"}}
	for _, q := range questions {
		got := call{dir: harvestPath(t), args: append([]string{"plan"}, q...), env: server.env()}.run(t)
		require.NotEmpty(t, got.stdout, "%+v", got)
		require.Contains(t, []int{exit.StatusOK, exit.StatusFailed}, got.status)
	}
	require.Zero(t, server.calls.Load())
	require.Equal(t, exit.StatusOK, call{dir: harvestPath(t), args: []string{"run", "--no-journal"}, env: server.env()}.run(t).status)
	require.NotZero(t, server.calls.Load(), "a run calls the same server")
}
