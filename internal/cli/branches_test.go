package cli

import (
	"os"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// routeFolder returns a copy of the example that routes a ticket.
func routeFolder(t *testing.T) string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{"team.yaml", "script.yaml"} {
		text, err := os.ReadFile("../../examples/patterns/route/" + name)
		require.NoError(t, err)
		files[name] = string(text)
	}
	return clitest.Folder(t, files)
}

func TestPlanShowsConditions(t *testing.T) {
	t.Parallel()
	dir := routeFolder(t)
	text := call{dir: dir, args: []string{"plan"}}.run(t).stdout
	require.Contains(t, text, "\n   when /team of \"Route\" is \"billing\"\n   reads  input      ticket  from user    internal\n   reads  condition  Route   from router  internal  /team\n")
	require.Contains(t, text, "\n   when /team of \"Route\" is not \"billing\" or \"technical\"\n")
	require.Contains(t, text, "\n   reads  result  Billing    from billing    internal\n   or     result  Technical  from technical  internal\n   or     result  Other      from support    internal\n")
	require.Contains(t, text, "\ncondition  /team of Route  internal  = W W W W W\n")
	dot := call{dir: dir, args: []string{"plan", "-o", "dot"}}.run(t).stdout
	require.Contains(t, dot, ` [style=dashed, label="when /team of \"Route\" is \"billing\""];`)
	require.Contains(t, dot, ` [style=dashed, label="one of 3"];`)
	require.Contains(t, call{dir: dir, args: []string{"plan", "-o", "mermaid"}}.run(t).stdout, `-.->|"when #47;team of #34;Route#34; is #34;billing#34;"|`)
	planned := object(t, call{dir: dir, args: []string{"plan", "-o", "json"}}.run(t).stdout)["tasks"].([]any)
	require.Equal(t, `/team of "Route" is "billing"`, planned[1].(map[string]any)["when"])
	require.Len(t, planned[4].(map[string]any)["reads"].([]any)[1].(map[string]any)["oneOf"], 3)
}

// TestTasksThatWereNotNeededAreNoFailure checks counts, lines and documents of a run with branches,
// of its replay, and of its continuation without a journal that ended.
func TestTasksThatWereNotNeededAreNoFailure(t *testing.T) {
	t.Parallel()
	dir := routeFolder(t)
	got := call{dir: dir, args: []string{"run", "--offline"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, "Thank you for your message. We refund the second payment within five days.\n", got.stdout)
	require.Regexp(t, `(?m)^ +\d\.\ds  not needed Technical \(technical\): it runs when /team of "Route" is "technical"$`, got.stderr)
	require.Contains(t, got.stderr, "3 of 5 tasks completed, 2 not needed in ")
	require.NotContains(t, got.stderr, "--without Technical")

	require.Regexp(t, ` 3 of 5 completed, 2 not needed\n`, call{dir: dir, args: []string{"runs"}}.run(t).stdout)
	list := listRuns(t, call{dir: dir})
	require.Equal(t, 2, list[0].Outcomes.NotNeeded)
	shown := call{dir: dir, args: []string{"show"}}.run(t).stdout
	require.Regexp(t, `(?m)^not needed +Other +support +it runs when /team of "Route" is not "billing" or "technical"$`, shown)
	one := object(t, call{dir: dir, args: []string{"show", list[0].Run, "Technical", "-o", "json"}}.run(t).stdout)
	require.Equal(t, "not_needed", one["status"])
	require.Equal(t, `it runs when /team of "Route" is "technical"`, one["reason"])
	require.NotContains(t, one, "error")
	require.Contains(t, call{dir: dir, args: []string{"explain", list[0].Run, "Technical"}}.run(t).stdout, `the task is not needed: it runs when /team of "Route" is "technical"`)

	again := call{dir: dir, args: []string{"replay", list[0].Run}}.run(t)
	require.Equal(t, exit.StatusOK, again.status, "%+v", again)
	without := call{dir: dir, args: []string{"replay", list[0].Run, "--without", "Billing", "--offline"}}.run(t)
	require.Contains(t, without.stdout, "it mattered for Reply.", "else does not take the case that is left out")
	without = call{dir: dir, args: []string{"replay", list[0].Run, "--without", "Route", "--offline"}}.run(t)
	require.Contains(t, without.stderr, `without "Route" it is not known whether "Billing" runs`)
	reused := call{dir: dir, args: []string{"run", "--offline", "--reuse"}}.run(t)
	require.Contains(t, reused.stderr, "3 tasks reused")

	result := object(t, call{dir: dir, args: []string{"run", "--offline", "-o", "json"}}.run(t).stdout)
	require.Equal(t, map[string]any{"completed": 3.0, "failed": 0.0, "cancelled": 0.0, "notRun": 0.0, "notNeeded": 2.0}, result["outcomes"])
	require.Equal(t, true, result["success"])
	require.Len(t, result["taskResults"], 3)
	require.Equal(t, true, result["agentResults"].(map[string]any)["technical"].(map[string]any)["success"])
}
