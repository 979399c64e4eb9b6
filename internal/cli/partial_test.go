package cli

import (
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// cardSpec is a team whose caller sees what the agent says and writes, and not what it reads from a file.
const cardSpec = `
name: card
model: m
offline: script.yaml
prices: {m: {input: 1, output: 1}}
agents: [{name: card, toolPreset: readwrite}]
policy: {rules: [{from: "tool:file_read", to: user, mode: minimal}]}
tasks: [{title: Card, assignee: card, description: Card.}]
`

// If a later turn of an attempt reads what the caller may not see, nothing shows how many turns follow, and every count that
// leaves them out is partial. No filter compares such a cost.
//
// Requirement: G68.
func TestCountsWithoutHiddenTurnsArePartial(t *testing.T) {
	t.Parallel()
	commands := []string{"show", "show Card", "show -o json", "show Card -o json", "show --usage", "show --usage -o json"}
	const list, result = "GET /runs", "run -o json"
	shown := func(reads int) map[string]string {
		script := `replies:
  - {task: Card, toolCalls: [{name: file_write, arguments: {path: c.txt, content: hi}}]}
` + strings.Repeat("  - {task: Card, toolCalls: [{name: file_read, arguments: {path: c.txt}}]}\n", reads) + "  - {task: Card, text: fine}\n"
		dir := clitest.Folder(t, map[string]string{"team.yaml": cardSpec, "script.yaml": script})
		got := offlineRun(t, call{dir: dir}, "team.yaml", "-o", "json")
		require.Equal(t, exit.StatusOK, got.status, got.stderr)
		s, forms := serveHere(t, call{dir: dir}), map[string]string{}
		forms[list] = s.get("/runs")
		for _, line := range commands {
			forms[line] = call{dir: dir, args: strings.Fields(line)}.run(t).stdout
		}
		forms[result] = got.stdout
		_, run, _ := strings.Cut(forms[list], `"runId":"`)
		for name, text := range forms {
			forms[name] = strings.ReplaceAll(withoutTimes(text, run[:36]), dir, "DIR")
		}
		for _, term := range []string{"min-cost=0", "max-cost=1000000"} {
			require.JSONEq(t, `{"runs":[],"more":false}`, s.get("/runs?"+term), term)
		}
		return forms
	}
	one, three := shown(1), shown(3)
	require.Equal(t, one, three)
	for _, name := range append(commands, list, result) {
		require.Contains(t, one[name], "partial", name)
		require.NotContains(t, one[name], "derivedFrom", name)
		require.NotContains(t, one[name], "requestId", name)
	}
	require.Contains(t, one["show Card -o json"], `"result":"fine"`)
}
