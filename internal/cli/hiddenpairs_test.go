package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
)

// What a journal shows of two runs that differ in the length and the usage of a hidden value is equal, times and IDs
// aside.
//
// Requirement: G68.
func TestStoredPairsOfHiddenValuesGiveEqualBytes(t *testing.T) {
	t.Parallel()
	const spec = `
model: m
baseURL: http://127.0.0.1:1/v1
output: Open
prices: {m: {input: 3, output: 15}}
agents: [{name: solo, accepts: secret}]
inputs: {key: {file: key.md, classification: secret}}
policy: {rules: [{from: user, to: solo, mode: full}]}
tasks:
  - {title: Open, assignee: solo, description: Say what is open.}
  - {title: Closed, assignee: solo, uses: [key], dependsOn: [Open], description: Say what is secret.}
`
	unequal := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|[0-9a-f]{64}|"(startedAt|endedAt|timestamp|createdAt|time|spec)": ?"[^"]*"|"(took|duration|start|end)Ms": ?\d+`)
	shown := func(key, usage string) map[string]string {
		script := `replies: [{task: Open, text: open, usage: {input: 5, output: 1}}, {task: Closed, text: 'It is {{ input "key" }}', usage: ` + usage + `}]`
		dir := clitest.Folder(t, map[string]string{"team.yaml": spec, "key.md": key, "script.yaml": script})
		got := offlineRun(t, call{dir: dir}, "--script", "script.yaml")
		require.Equal(t, 0, got.status, "%+v", got)
		forms := map[string]string{}
		for _, args := range []string{"show -o json", "show Closed -o json", "show --usage -o json", "show --usage", "explain -o json"} {
			got := call{dir: dir, args: strings.Fields(args)}.run(t)
			require.Equal(t, 0, got.status, "%s %+v", args, got)
			forms[args] = unequal.ReplaceAllString(got.stdout, "")
		}
		return forms
	}
	short := shown("word", "{input: 7, output: 2}")
	require.Equal(t, short, shown(strings.Repeat("another word ", 900), "{input: 70000, output: 20000}"))
	require.Contains(t, short["show --usage -o json"], `"partial":true`)
	require.NotContains(t, short["show -o json"], "fingerprint", "it differs by what is secret")
}
