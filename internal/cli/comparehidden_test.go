package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
)

// A comparison says nothing of a task that the caller may not see: whoever compares a run with a guess of a secret
// input reads the same for a right guess and for a wrong one of another length.
func TestComparisonsSayNothingOfHiddenTasks(t *testing.T) {
	t.Parallel()
	const spec = `
model: m
baseURL: http://127.0.0.1:1/v1
output: Open
agents: [{name: solo, accepts: secret}]
inputs: {key: {file: key.md, classification: secret}}
policy: {rules: [{from: user, to: solo, mode: full}]}
tasks:
  - {title: Open, assignee: solo, description: Say what is open.}
  - {title: Closed, assignee: solo, uses: [key], description: Say what is secret.}
`
	script := `replies: [{task: Open, text: open}, {task: Closed, text: 'It is {{ input "key" }}'}]`
	compared := func(guess string) map[string]string {
		dir := clitest.Folder(t, map[string]string{"team.yaml": spec, "key.md": "the word", "guess.md": guess, "script.yaml": script})
		first := offlineRun(t, call{dir: dir}, "--script", "script.yaml")
		require.Equal(t, 0, first.status, "%+v", first)
		offlineRun(t, call{dir: dir}, "--script", "script.yaml", "--input", "key=guess.md")
		list := listRuns(t, call{dir: dir})
		forms := map[string]string{}
		for name, args := range map[string][]string{
			"text": {"replay", list[1].Run, "--diff", list[0].Run}, "json": {"replay", list[1].Run, "--diff", list[0].Run, "-o", "json"},
		} {
			got := call{dir: dir, args: args}.run(t)
			forms[name] = strings.NewReplacer(list[0].Run, "after", list[1].Run, "before", list[0].Run[:8], "after", list[1].Run[:8], "before").Replace(got.stdout + got.stderr)
		}
		return forms
	}
	right := compared("the word")
	require.Equal(t, right, compared(strings.Repeat("another word ", 900)))
	var d struct {
		Before struct{ Partial bool }
		Tasks  []struct{ Title, Prompt, Result string }
	}
	require.NoError(t, json.Unmarshal([]byte(right["json"]), &d), right)
	require.True(t, d.Before.Partial)
	require.Equal(t, []struct{ Title, Prompt, Result string }{{"Open", "same", "same"}, {"Closed", "withheld", "withheld"}}, d.Tasks)
}
