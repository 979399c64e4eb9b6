package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/plan"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/stretchr/testify/require"
)

func TestPlanIsDrawn(t *testing.T) {
	t.Parallel()
	for form := range plan.Drawings {
		got := call{dir: harvestPath(t), args: []string{"plan", "-o", form}}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Empty(t, got.stderr)
		clitest.RequireGolden(t, "testdata/plan."+form+".golden", got.stdout)
	}
}

// withoutBrokenAssertion removes the broken assertion from a governed spec.
func withoutBrokenAssertion(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("plan/testdata/governed/team.yaml")
	require.NoError(t, err)
	out := regexp.MustCompile(`(?m)^.*# it does.*\n`).ReplaceAllString(string(text), "")
	require.NotEqual(t, string(text), out)
	return out
}

func TestPlanWhoseAssertionsHold(t *testing.T) {
	t.Parallel()
	got := call{args: []string{"plan", "-"}, stdin: withoutBrokenAssertion(t)}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.NotContains(t, got.stderr, "broken")
}

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

func TestPlanOfExamplesForPeople(t *testing.T) {
	t.Parallel()
	got := call{dir: filepath.Join(harvestPath(t), "../../../examples/claims"), args: []string{"plan"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	clitest.RequireGolden(t, "testdata/claims.golden", got.stdout)
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

func TestPlanOfManyAgentsHasLists(t *testing.T) {
	t.Parallel()
	got := call{args: []string{"plan", "-"}, stdin: manyAgents(13)}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	clitest.RequireGolden(t, "testdata/crowd.golden", got.stdout)
	require.NotContains(t, got.stdout, "│")
	got = call{args: []string{"plan", "-"}, stdin: manyAgents(12)}.run(t)
	require.Contains(t, got.stdout, "│")
	got = call{args: []string{"plan", "-", "--from", "brief"}, stdin: manyAgents(13)}.run(t)
	require.Contains(t, got.stdout, "derived  agent 13, internal ")
	require.Contains(t, got.stdout, "through Task 1 → Task 2 → Task 3\n")
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

func TestInvalidFlowFlags(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"--from", "repotr"}, `--from "repotr": no input and no task has this name; did you mean "report"?`},
		{[]string{"--to", "wrtier"}, `--to "wrtier": no reader has this name; did you mean "writer"?`},
		{[]string{"--from", ""}, "--from is empty: name an input or a task"},
		{[]string{"--to", ""}, "--to is empty: name a reader"},
		{[]string{"--from", "report", "-o", "dot"}, "--from is for text and json: dot draws the whole plan"},
		{[]string{"--assert", "x reaches writer"}, `--assert: assertion "x reaches writer": `},
		{[]string{"--assert", "nothing_such never reaches writer"}, `--assert: assertion "nothing_such never reaches writer": no input and no result can have a property "nothing_such"`},
		{[]string{"--assert", "input report never reaches nobody"}, `--assert: assertion "input report never reaches nobody": no reader "nobody"`},
	}
	for _, tt := range tests {
		got := call{dir: harvestPath(t), args: append([]string{"plan"}, tt.args...)}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%v: %+v", tt.args, got)
		require.Contains(t, got.stderr, tt.want)
		require.Empty(t, got.stdout)
	}
	both := strings.NewReplacer("Task 1", "brief").Replace(manyAgents(2))
	got := call{args: []string{"plan", "-", "--from", "brief"}, stdin: both}.run(t)
	require.Equal(t, exit.StatusUsage, got.status)
	require.Contains(t, got.stderr, `--from "brief" names several: write "input brief" or "task brief"`)
	for _, name := range []string{"task brief", "task BRIEF"} {
		got = call{args: []string{"plan", "-", "--from", name}, stdin: both}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Contains(t, got.stdout, "from result brief, internal\n")
	}
}

func TestAssertionsOfFlagsDecideTheStatus(t *testing.T) {
	t.Parallel()
	dir := harvestPath(t)
	got := call{dir: dir, args: []string{"plan", "--assert", "input manual never reaches reader", "--assert", "input report never reaches writer"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "\nassertions\nholds   input manual never reaches reader (--assert)\nholds   input report never reaches writer (--assert)\n")
	got = call{dir: dir, args: []string{"plan", "--assert", "input manual never reaches reader", "--assert", "input report never derives into writer"}}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Contains(t, got.stdout, "BROKEN  input report never derives into writer (--assert)\n")
	require.Contains(t, got.stdout, `        input "report" → task "Read the yield" → task "Judge the year" → task "Write the letter" → writer`+"\n")
	require.Equal(t, "runteam: 1 of 2 assertions broken\n", got.stderr)
}

func TestCheckChecksAssertions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(harvestPath(t), "../plan/testdata/governed")
	got := call{args: []string{"check", path, "--log-level", "error"}}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Contains(t, got.stdout, "team.yaml: broken: 5 tasks, 5 agents, 2 inputs; 5 assertions\n")
	require.Regexp(t, `^BROKEN  input claim never derives into statistics \(.*team.yaml:63\)\n        statistics receives .*\n        input "claim" → .* → task "Count" → statistics\nrunteam: 1 of 5 assertions broken\n$`, got.stderr)

	got = call{args: []string{"check", path, "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	c := object(t, got.stdout)
	require.Equal(t, false, c["ok"])
	require.Len(t, c["assertions"], 5)
	require.Equal(t, "runteam: 1 of 5 assertions broken\n", got.stderr)

	got = call{args: []string{"check", "-", "--log-level", "error"}, stdin: withoutBrokenAssertion(t)}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "-: ok: 5 tasks, 5 agents, 2 inputs; 4 assertions\n")
	require.Empty(t, got.stderr)
}

// An assertion about what does not exist is an error where it is written, in
// either of the two lists.
func TestInvalidAssertionsAreLocated(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("internal_notes never reaches letters", "internal_notes never reaches lettres", "input terms never derives", "input trems never derives").Replace(withoutBrokenAssertion(t))
	for _, command := range []string{"plan", "check"} {
		got := call{args: []string{command, "-", "--assert", "x never reaches y"}[:map[string]int{"plan": 4, "check": 2}[command]], stdin: text}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
		require.Contains(t, got.stderr, `-:62:7: assertion "input trems never derives into statistics": no input "trems"`)
		require.Contains(t, got.stderr, `-:64:5: assertion "internal_notes never reaches lettres": no reader "lettres"`)
		require.Contains(t, got.stderr, `hint: did you mean "letters"?`)
		require.Equal(t, command == "plan", strings.Contains(got.stderr, `--assert: assertion "x never reaches y": `), got.stderr)
		require.Less(t, strings.Index(got.stderr, "-:64:5"), strings.Index(got.stderr+"--assert: ", "--assert: "), "in the order of the file, then flags")
		require.Empty(t, got.stdout)
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
