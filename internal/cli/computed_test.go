package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
)

// computed is a team with a value, an agent and a template.
var computed = map[string]string{
	"team.yaml": `name: computed
model: m
offline: script.yaml
agents: [{name: solo}]
tasks:
  - {title: Limits, key: limits, value: {most: 500}}
  - {title: Assess, assignee: solo, dependsOn: [limits], description: d}
  - {title: Letter, dependsOn: [Assess], template: {file: letter.tmpl}}
`,
	"letter.tmpl": "We pay {{.results.Assess}}.",
	"script.yaml": "replies: [{task: Assess, text: '{{ dependency \"Limits\" | field \"most\" }}'}]\n",
}

func TestTasksWithoutAModelAreShown(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, computed)
	run := func(args string) string {
		got := call{dir: dir, args: strings.Fields(args)}.run(t)
		require.Equal(t, exit.StatusOK, got.status, got.stderr)
		return got.stdout
	}
	require.Contains(t, run("check"), "3 tasks, 1 agent")
	plan := run("plan")
	require.Contains(t, plan, "3 tasks, 1 agent")
	require.Contains(t, plan, "computed by value at internal, stays in this process")
	require.Contains(t, plan, "computed by template at internal, stays in this process")
	require.Regexp(t, `reads +result +Limits +from computed`, plan)
	require.Contains(t, run("plan -o mermaid"), "Letter<br>template, internal")
	require.Contains(t, run("plan -o dot"), "value, internal")
	require.Equal(t, "We pay 500.\n", run("run --offline"))
	require.Regexp(t, `completed +Letter +computed +internal`, run("show"))
	require.Contains(t, run("explain Letter"), "result of Assess from solo, internal")
	usage := run("show --usage")
	require.NotContains(t, usage, "computed ")
	require.Contains(t, usage, "sum: 1 call")
	require.Equal(t, "We pay 500.\n", run("replay"))
	require.Equal(t, "We pay 500.\n", run("run --offline --reuse"))
}
