package specfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/task"
)

// listed is a spec with tasks for each row of a table, in lines 5 to 14.
const listed = `agents: [{name: writer}]
inputs: {leads: {file: leads.csv}}
taskDefaults: {assignee: writer}
tasks:
- title: Leads
  key: leads
  forEach:
    input: leads
    as: lead
    maxItems: 3
    output: Send
    tasks:
    - {title: Look, description: Look., uses: [{name: lead, need: [/name]}]}
    - {title: Send, description: Send., dependsOn: [Look]}
- {title: Report, description: Report., dependsOn: [{each: leads}]}
`

// loadListed loads the spec with a file of leads in its folder.
func loadListed(t *testing.T, spec, file, leads string, inputs map[string]string) (*specfile.File, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"team.yaml": spec, file: leads} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for name, path := range inputs {
		inputs[name] = filepath.Join(dir, path)
	}
	return specfile.Load(specfile.Options{Path: filepath.Join(dir, "team.yaml"), Inputs: inputs})
}

func TestListsOfInputs(t *testing.T) {
	t.Parallel()
	f, err := loadListed(t, listed, "leads.csv", "name,n\nAnn,1\n", nil)
	require.NoError(t, err)
	require.Empty(t, f.Warnings)
	require.Equal(t, "csv", f.Run.Inputs[0].ListFormat)
	list := f.Tasks[0].ForEach
	require.Equal(t, "leads", list.Input)
	require.Equal(t, "Send", list.Output)
	require.Len(t, list.Tasks, 2)
	require.Equal(t, "writer", list.Tasks[0].Assignee, "defaults count in lists")
	require.Empty(t, f.Tasks[0].Assignee, "and not for a list")
	require.Equal(t, []task.Use{{Name: "lead", Need: []task.Path{"/name"}}}, list.Tasks[0].Uses)

	data, _, err := f.WithPlan(engine.Goal{}, f.Tasks, f.Dir)
	require.NoError(t, err)
	again, err := loadListed(t, string(data), "leads.csv", "name,n\nAnn,1\n", nil)
	require.NoError(t, err, string(data))
	require.Equal(t, list.Tasks[0].Uses, again.Tasks[0].ForEach.Tasks[0].Uses)
	require.Equal(t, list.Output, again.Tasks[0].ForEach.Output)
}

func TestFormatsOfInputs(t *testing.T) {
	t.Parallel()
	const planned = "agents: [{name: a}]\ninputs: {leads: {file: leads.csv}}\ngoal: Write to them.\ncoordinator: {mayPlan: [forEach], mayGrant: [inputs]}\n"
	for _, tt := range []struct{ spec, file, text, want string }{
		{listed, "leads.csv", "name\nAnn\n", "csv"},
		{strings.ReplaceAll(listed, "leads.csv", "leads.jsonl"), "leads.jsonl", `{"name":"Ann"}`, "ndjson"},
		{strings.ReplaceAll(listed, "leads.csv", "leads.txt"), "leads.txt", `[{"name":"Ann"}]`, ""},
		{strings.ReplaceAll(listed, "{file: leads.csv}", "{file: leads.txt, format: csv}"), "leads.txt", "name\nAnn\n", "csv"},
		{strings.ReplaceAll(listed, "{file: leads.csv}", `{text: '[{"name":"Ann"}]'}`), "x", "", ""},
		{"agents: [{name: a}]\ninputs: {leads: {file: leads.csv}}\ntasks: [{title: A, description: d, assignee: a, uses: [leads]}]\n", "leads.csv", "no,table\n1", ""},
		{planned, "leads.csv", "name\nAnn\n", "csv"},
		{strings.ReplaceAll(planned, "forEach", "verify"), "leads.csv", "no,table\n1", ""},
		{strings.ReplaceAll(planned, "inputs]", "memory]"), "leads.csv", "no,table\n1", ""},
	} {
		f, err := loadListed(t, tt.spec, tt.file, tt.text, nil)
		require.NoError(t, err, tt.spec)
		require.Equal(t, tt.want, f.Run.Inputs[0].ListFormat)
	}
	f, err := loadListed(t, strings.ReplaceAll(listed, "{file: leads.csv}", "null"), "given.ndjson", `{"name":"Ann"}`, map[string]string{"leads": "given.ndjson"})
	require.NoError(t, err)
	require.Equal(t, "ndjson", f.Run.Inputs[0].ListFormat, "an option brings it")
}

// A line of a file is named with the file, which an option may bring.
func TestBadTextsOfListsNameTheirFile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ spec, file, text, option, want string }{
		{listed, "leads.csv", "name,n\nAnn\n", "", `input "leads": leads.csv: invalid list: line 2: `},
		{listed, "given.jsonl", "{\n", "given.jsonl", `given.jsonl: invalid list: line 1: `},
		{strings.ReplaceAll(listed, "leads.csv", "leads.txt"), "leads.txt", "[1,", "", `input "leads": leads.txt: invalid list: `},
	} {
		given := map[string]string{}
		spec := tt.spec
		if tt.option != "" {
			given["leads"], spec = tt.option, strings.ReplaceAll(spec, "{file: leads.csv}", "null")
		}
		f, err := loadListed(t, spec, tt.file, tt.text, given)
		require.NoError(t, err)
		tm, err := f.Build(idle)
		require.NoError(t, err)
		_, err = tm.Plan(f.Tasks, &f.Run)
		require.ErrorContains(t, f.Locate(err), tt.want)
	}
}

func TestBadListsOfSpecs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, old, fresh, want string }{
		{"an assignee", "  key: leads\n", "  assignee: writer\n", `6:3: task "Leads": assignee: a list does not have it`},
		{"an unknown input", "input: leads\n", "input: leeds\n", `8:12: task "Look": unknown input "leeds"`},
		{"no output", "    output: Send\n", "", `8:5: task "Leads": output is missing`},
		{"an item that is named twice", "uses: [{name: lead, need: [/name]}]", "uses: [lead, lead]", `13:54: task "Look": "lead" is named before`},
		{"the title of an item", "- {title: Report", "- {title: 'Send[2]', description: Send.}\n- {title: Report", `15:11: task "Send[2]": title: it is that of one of the rounds or items of task 1`},
		{"a task of the list by its title", "dependsOn: [{each: leads}]", "dependsOn: [Look]", `hint: it is one of the tasks for each item of a list; depend on {each: …} with the title of that list`},
		{"an unknown key", "    as: lead\n", "    az: lead\n", `9:5: task "Leads": unknown key "az" in forEach`},
		{"a need that no row has", "need: [/name]", "need: [/nmae]", "13:68: task \"Look\": no item of input \"leads\" has /nmae\n"},
		{"the columns of a list", "need: [/name]", "need: [/nmae]", `hint: did you mean "/name"? the columns are n, name`},
		{"the columns of a list without a header", "need: [/name]", "need: [/address]", `hint: the columns by line 1 are n, name; if that is no header, add one`},
		{"a need of a column that is a text", "need: [/name]", "need: [/name/first]", `task "Look": no item of input "leads" has /name/first`},
		{"too few", "maxItems: 3", "maxItems: 1", `10:15: task "Look": input "leads" has 2 items, and maxItems is 1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, listed, tt.old)
			f, err := loadListed(t, strings.Replace(listed, tt.old, tt.fresh, 1), "leads.csv", "name,n\nAnn,1\nBo,2\n", nil)
			if err == nil {
				var tm *engine.Team
				tm, err = f.Build(idle)
				require.NoError(t, err)
				_, err = tm.Plan(f.Tasks, &f.Run)
				err = f.Locate(err)
			}
			require.Error(t, err)
			require.Contains(t, err.Error(), tt.want)
		})
	}
}
