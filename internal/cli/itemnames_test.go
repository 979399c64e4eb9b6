package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
)

// namedSpec has a task of a command and one of a person for each row of a table with a key.
const namedSpec = `
name: mails
inputs: {people: {text: "mail,x\nann@x.org,1\nbo@x.org,2\n", format: csv}}
agents:
  - {name: writer, backend: {kind: process, command: cat}}
  - {name: editor, backend: {kind: person}}
tasks:
  - title: All
    forEach:
      input: people
      key: /mail
      as: person
      maxItems: 3
      output: Decide
      tasks:
        - {title: Mail, assignee: writer, description: Write., uses: [{name: person, need: [/x]}]}
        - {title: Decide, assignee: editor, description: Send it?, dependsOn: [Mail]}
`

// People read, and name, the instances of a list by the keys of their items: in progress, files, questions and
// answers, and in the journal. Positions are names too.
func TestInstancesAreNamedByKeys(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": namedSpec})
	at := func(args ...string) outcome { return call{dir: dir, args: args}.run(t) }
	got := at("run", "--save", "out", "--progress", "plain")
	require.Equal(t, exit.StatusWaiting, got.status, got.stderr)
	require.Contains(t, got.stderr, "completed Mail[ann@x.org] (writer)")
	require.Contains(t, got.stderr, `Answer "Decide[bo@x.org]" for editor:`)
	saved, err := filepath.Glob(filepath.Join(dir, "out", "*.md"))
	require.NoError(t, err)
	require.Len(t, saved, 2)
	require.Equal(t, "01-Mail-ann-x-org.md", filepath.Base(saved[0]))
	raw, err := os.ReadFile(filepath.Join(dir, "out", "result.json"))
	require.NoError(t, err)
	var doc struct {
		RunID string
		Tasks []struct{ Title, Name string }
	}
	require.NoError(t, json.Unmarshal(raw, &doc))
	require.Equal(t, [2]string{"Decide[2]", "Decide[bo@x.org]"}, [2]string{doc.Tasks[3].Title, doc.Tasks[3].Name})
	run := doc.RunID[:8]

	questions := at("questions").stdout
	require.Contains(t, questions, `"Decide[ann@x.org]" for editor`)
	require.Regexp(t, "runteam answer "+run+` 'Decide\[ann@x\.org\]' --question [0-9a-f]{8} '…'`, questions)
	got = at("answer", run, "decide[BO@x.org]", "yes")
	require.Zero(t, got.status, got.stderr)
	require.Contains(t, got.stdout, `answered "Decide[bo@x.org]"`)
	got = at("answer", run, "Decide[1]", "no")
	require.Zero(t, got.status, got.stderr)
	got = at("resume", run)
	require.Zero(t, got.status, got.stderr)
	require.Contains(t, got.stdout, "# Decide[bo@x.org]\n\nyes\n")

	for _, name := range []string{"Decide[bo@x.org]", "Decide[2]"} {
		shown := at("show", run, name)
		require.Contains(t, shown.stdout, "# Decide[bo@x.org]\n\nyes\n", shown.stderr)
		explained := at("explain", name)
		require.Contains(t, explained.stdout, "Decide[bo@x.org] · editor", explained.stderr)
	}
	all := at("show").stdout
	for _, name := range []string{"Mail[ann@x.org]", "Mail[bo@x.org]", "Decide[ann@x.org]"} {
		require.Equal(t, 1, strings.Count(all, "completed  "+name+" "), all)
	}
	require.NotContains(t, all, "Mail[1]")
	unknown := at("show", run, "Decide[cy@x.org]")
	require.Equal(t, exit.StatusUsage, unknown.status)
	require.Contains(t, unknown.stderr, `unknown task "Decide[cy@x.org]"`)
	require.Contains(t, at("replay").stderr, "equal to the byte")
}

// Commands that take a task take the name of an item, and suggest items that the list has.
func TestOptionsNameItems(t *testing.T) {
	t.Parallel()
	spec := strings.Replace(namedSpec, `        - {title: Decide, assignee: editor, description: Send it?, dependsOn: [Mail]}
`, `        - {title: Decide, assignee: writer, description: Check it., dependsOn: [Mail]}
  - {title: Report, assignee: writer, description: Count them., dependsOn: [{each: All}]}
`, 1)
	dir := clitest.Folder(t, map[string]string{"team.yaml": spec})
	at := func(args ...string) outcome { return call{dir: dir, args: args}.run(t) }
	got := at("run")
	require.Zero(t, got.status, got.stderr)
	require.Contains(t, got.stderr, "replay --without 'Decide[bo@x.org]'")
	got = at("replay", "--without", "Decide[bo@x.org]")
	require.Zero(t, got.status, got.stderr)
	require.Contains(t, got.stdout, "without task Decide[bo@x.org]")
	require.Regexp(t, `Decide\[bo@x.org\] +omitted`, got.stdout)
	require.Contains(t, at("replay").stderr, "equal to the byte", "the experiment")
	for _, args := range [][]string{{"show", "Mail[cy]"}, {"replay", "--without", "Mail[cy]"}, {"resume", "--fresh", "Mail[cy]"}} {
		got := at(args...)
		require.Equal(t, exit.StatusUsage, got.status, got.stderr)
		require.Contains(t, got.stderr, "Mail[ann@x.org]", args)
		require.NotContains(t, got.stderr, "Mail[3]", args)
	}
	got = at("run", "--reuse", "--fresh", "Mail[ann@x.org]")
	require.Equal(t, exit.StatusUsage, got.status, got.stderr)
	require.Contains(t, got.stderr, "items have names once the list is known; write a position, such as Mail[1], or Mail for all")
	got = at("run", "--reuse", "--fresh", "Mail[1]")
	require.Zero(t, got.status, got.stderr)
	got = at("resume", "--fresh", "Mail[ann@x.org]")
	require.Zero(t, got.status, got.stderr)
	require.Contains(t, got.stderr, "completed Mail[ann@x.org]")
	require.NotContains(t, got.stderr, "completed Mail[bo@x.org]")
}

// A list has the bound of the outputSchema of the agent that its task names.
func TestListsAreBoundedByTheAgentsSchema(t *testing.T) {
	t.Parallel()
	const spec = `
schemas: {found: {type: object, properties: {searches: {type: array, maxItems: 2, items: {type: string}}}, required: [searches], additionalProperties: false}}
agents:
  - {name: planner, model: m, outputSchema: found}
  - {name: reader, model: m}
tasks:
  - {title: Plan, ASSIGNEE description: Plan.}
  - {title: Search, assignee: reader, description: Search., forEach: {task: Plan, path: /searches, as: search}}
  - {title: End, assignee: reader, description: End., dependsOn: [{each: Search}]}
`
	dir := clitest.Folder(t, map[string]string{"team.yaml": strings.Replace(spec, "ASSIGNEE", "assignee: planner,", 1), "open.yaml": strings.Replace(spec, "ASSIGNEE", "", 1),
		"script.yaml": `replies: [{task: Plan, text: '{"searches":["a","b"]}'}, {text: done}]`})
	got := call{dir: dir, args: []string{"plan", "team.yaml"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "Search ×≤2, for each item of /searches of Plan")
	got = call{dir: dir, args: []string{"run", "team.yaml", "--offline", "--script", "script.yaml"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	got = call{dir: dir, args: []string{"check", "open.yaml"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "its agent is not known before items are written out: %+v", got)
	require.Contains(t, got.stderr, `neither maxItems nor the outputSchema of "Plan" says how many items there may be`)
	require.Contains(t, got.stderr, "that of its agent counts if the task names the agent")
}
