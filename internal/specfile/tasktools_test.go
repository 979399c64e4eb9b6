package specfile_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/synth"
	"github.com/runteam/runteam/task"
)

const twoServers = `
tools:
  search: {mcp: {command: search}, allow: [find, read.page], accepts: public}
  open: {mcp: {url: "https://open.example/mcp"}, allow: [x, y]}
`

const withTools = twoServers + "agents: [{name: a, tools: [search/find, open/x, open/y]}, {name: b, tools: [search]}, {name: c}]\n"

func TestToolsOfATask(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		task, defaults string
		want           []string
		problem        string
	}{
		{"assignee: a", "", nil, ""},
		{"assignee: a, tools: []", "", []string{}, ""},
		{"assignee: a, tools: [search, open/y]", "", []string{"search__find", "open__y"}, ""},
		{"assignee: b, tools: [search]", "", []string{"search__find", "search__read_page"}, ""},
		{"assignee: a, tools: [open, open/x]", "", []string{"open__x", "open__y"}, ""},
		{"tools: [search/read.page]", "", []string{"search__read_page"}, ""},
		{"assignee: a", "tools: [open/x]", []string{"open__x"}, ""},
		{"assignee: a, tools: []", "tools: [open/x]", []string{}, ""},
		{"assignee: a, tools: [open/z]", "", nil, `:7:57: task "T": tools: agent "a" does not have the tool "open/z"`},
		{"assignee: a, tools: [search/read.page]", "", nil, `task "T": tools: agent "a" does not have the tool "search/read.page"`},
		{"assignee: c, tools: [bash]", "", nil, `task "T": tools: agent "c" does not have the tool "bash"`},
		{"tools: [serach]", "", nil, `task "T": tools: no agent has the tool "serach"`},
		{"assignee: c", "tools: [open/x]", nil, `tools: agent "c" does not have the tool "open/x"`},
	} {
		f, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(withTools + "taskDefaults: {" + tt.defaults + "}\ntasks: [{title: T, description: d, " + tt.task + "}]\n")})
		if tt.problem != "" {
			require.ErrorContains(t, err, tt.problem, tt.task)
			continue
		}
		require.NoError(t, err, tt.task)
		require.Equal(t, tt.want, f.Tasks[0].Tools, tt.task)
	}
}

// A saved plan grants the tools that the plan granted, as a spec names them, and no others.
func TestSavedPlanKeepsTheToolsOfItsTasks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "team.yaml", "goal: Go.\ncoordinator: {mayGrant: [tools]}\n"+withTools)
	f, err := specfile.Load(specfile.Options{Path: dir})
	require.NoError(t, err)
	require.Equal(t, synth.Grants{Tools: true}, f.Coordinator.MayGrant)
	require.Empty(t, f.Warnings)
	from := provenance.Source{Record: &provenance.Record{From: "coordinator"}}
	tasks := []task.Spec{
		{Title: "One", Description: "d", Assignee: "a", Tools: []string{"open__x", "search__find"}, Source: from},
		{Title: "Two", Description: "d", Assignee: "a", Tools: []string{}, Source: from},
	}
	path, left := save(t, f, *f.Goal, tasks, dir)
	require.Empty(t, left)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "open/x")
	require.Contains(t, string(text), "tools: []")
	got, err := specfile.Load(specfile.Options{Path: path})
	require.NoError(t, err)
	require.Equal(t, tasks[0].Tools, got.Tasks[0].Tools)
	require.Equal(t, tasks[1].Tools, got.Tasks[1].Tools)
}

// So does one of a team whose agents have only tools of the runtime. An edge that the plan does not use, or that
// nobody reads, keeps it from running as little as it kept the coordinator from planning it.
func TestSavedPlanKeepsTheToolsOfTheRuntime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "team.yaml", "model: m\ngoal: Go.\ncoordinator: {mayGrant: [tools]}\nagents: [{name: a, spawn: {}}, {name: b}, {name: c}]\nedges: [{from: a, to: b, bidirectional: true, transfer: true}]\npolicy: {hideIdentity: true}\n")
	f, err := specfile.Load(specfile.Options{Path: dir})
	require.NoError(t, err)
	require.Empty(t, f.Warnings)
	from := provenance.Source{Record: &provenance.Record{From: "coordinator"}}
	for _, tools := range [][]string{{"send_handoff", "spawn_agent", "transfer_to_b"}, {"transfer_to_agent_2"}, {}} {
		tasks := []task.Spec{
			{Title: "One", Description: "d", Assignee: "b", Tools: []string{}, Source: from},
			{Title: "Two", Description: "d", Assignee: "a", DependsOn: task.On("One"), Tools: tools, Source: from},
		}
		path, left := save(t, f, *f.Goal, tasks, dir)
		require.Empty(t, left)
		got, err := specfile.Load(specfile.Options{Path: path})
		require.NoError(t, err)
		require.Equal(t, []string{}, got.Tasks[0].Tools)
		require.Equal(t, tools, got.Tasks[1].Tools)
		tm, err := got.Build(idle)
		require.NoError(t, err)
		_, err = tm.Plan(got.Tasks, &got.Run)
		require.NoError(t, err)
	}
}

func TestToolsThatNoPlannedTaskCanHave(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"goal: Go.\n": {`agent "a": no planned task can have its tools: write coordinator: {mayGrant: [tools]}`, `agent "b": no planned task`},
		"goal: Go.\ncoordinator: {mayGrant: [inputs]}\n":              {`agent "a"`, `agent "b"`},
		"goal: Go.\ncoordinator: {mayGrant: [inputs, tools]}\n":       nil,
		"tasks: [{title: T, description: d}]\n":                       nil,
		"goal: Go.\ntasks: [{title: T, description: d, tools: []}]\n": nil,
	} {
		f, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(text + withTools)})
		require.NoError(t, err, text)
		require.Len(t, f.Warnings, len(want), text)
		for i, w := range want {
			require.Contains(t, f.Warnings[i].Message+": "+f.Warnings[i].Hint, w, text)
		}
	}
	const team = "model: m\ngoal: Go.\nagents: [{name: a, spawn: {}}, {name: b}, {name: c}]\nedges: [{from: a, to: b}, {from: c, to: b, bidirectional: true}]\n"
	for text, want := range map[string][]string{
		"": {`agent "a": no planned task can spawn children or use its edges`, `agent "b": no planned task can use its edges`, `agent "c": no planned task can use its edges`},
		"messages: [{from: c, to: b, text: Hello.}]\n": {`agent "a"`, `agent "b"`},
		"coordinator: {mayGrant: [tools]}\n":           nil,
	} {
		f, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(team + text)})
		require.NoError(t, err, text)
		require.Len(t, f.Warnings, len(want), text)
		for i, w := range want {
			require.Contains(t, f.Warnings[i].Message, w, text)
		}
	}
}

// The parameters of a server are known when it is connected, those of a built-in tool always.
func TestDeclassifiedArgumentsInASpec(t *testing.T) {
	t.Parallel()
	text := func(tool, path string) string {
		return twoServers + `  glob: {accepts: internal}
agents: [{name: a, tools: [search, open, glob], allowUntrusted: [search], accepts: confidential}]
inputs: {i: {text: t, classification: confidential}}
tasks: [{title: T, description: d, uses: [i], tools: [` + tool + `]}]
policy: {declassify: [{name: n, from: a, to: "tool:` + tool + `", paths: [` + path + `], lowerTo: public, reason: r}]}
`
	}
	_, err := check(specfile.Options{Path: "-", Stdin: strings.NewReader(text("glob", "/pattern"))})
	require.ErrorContains(t, err, `an argument of tool "glob": /pattern is not bounded`)
	require.ErrorContains(t, err, ":9:")
	f, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(text("search/find", "/year"))})
	require.NoError(t, err)
	tm, err := f.Build(idle)
	require.NoError(t, err)
	p, err := tm.Plan(f.Tasks, &f.Run)
	require.NoError(t, err)
	require.Contains(t, task.Problems(p.Warnings).Error(), `the parameters of tool "search__find" are not known yet`)
}
