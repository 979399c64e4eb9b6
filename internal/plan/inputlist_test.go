package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// mailing is a team that writes to each lead of an input.
type mailing struct {
	input   plan.Input
	list    task.ForEach
	change  func(tasks []task.Spec)
	policy  *handoff.Policy
	accepts label.Classification
	user    *label.Classification
}

func (m *mailing) team(t testing.TB) (roster, []task.Spec, *plan.Options) {
	r := governed(t, m.policy, cleared("mailer", m.accepts), cleared("summer", m.accepts))
	if m.list.MaxItems == 0 {
		m.list.MaxItems = 4
	}
	m.input.Name, m.list.Input, m.list.As = "leads", "leads", "lead"
	specs := []task.Spec{
		{Title: "Mail", Description: "d", Assignee: "mailer", ForEach: &m.list},
		{Title: "Report", Description: "d", Assignee: "summer", DependsOn: []task.Ref{{Each: "Mail", Optional: true}}},
	}
	if m.change != nil {
		m.change(specs)
	}
	return r, specs, &plan.Options{Inputs: []plan.Input{m.input}, UserAccepts: m.user}
}

func TestBadListsOfInputs(t *testing.T) {
	t.Parallel()
	hidden := label.Internal
	for _, tt := range []struct {
		name string
		m    *mailing
		want string
	}{
		{"no JSON", &mailing{input: plan.Input{Text: "a,b\n1,2"}}, `/tasks/0/forEach/input task "Mail": input "leads": invalid list: not one strict JSON value`},
		{"an object", &mailing{input: plan.Input{Text: "{}"}}, `/tasks/0/forEach/input task "Mail": input "leads" is not a list`},
		{"no such list", &mailing{input: plan.Input{Text: `{"a":[]}`}, list: task.ForEach{Path: "/b"}}, `/tasks/0/forEach/path task "Mail": input "leads" has no list at /b`},
		{"a bad line", &mailing{input: plan.Input{Text: "1\n{", ListFormat: "ndjson"}}, `/inputs/leads input "leads": invalid list: line 2: not one strict JSON value`},
		{"a bad row", &mailing{input: plan.Input{Text: "a\n1,2", ListFormat: "csv"}}, `/inputs/leads input "leads": invalid list: line 2: the number of fields is 2, and the header has 1`},
		{"an unknown format", &mailing{input: plan.Input{Text: "[]", ListFormat: "cvs"}}, `/inputs/leads/format input "leads": unknown format "cvs"`},
		{"too many", &mailing{input: plan.Input{Text: "[1,2,3,4,5]"}}, `/tasks/0/forEach/maxItems task "Mail": input "leads" has 5 items, and maxItems is 4`},
		{"files of a text", &mailing{input: plan.Input{Text: "[]"}, list: task.ForEach{Files: []string{"*"}}}, `/tasks/0/forEach/files task "Mail": files are those of a folder`},
		{"unknown", &mailing{input: plan.Input{Text: "[]"}, change: func(s []task.Spec) { s[0].ForEach.Input = "leeds" }}, `/tasks/0/forEach/input task "Mail": unknown input "leeds": did you mean "leads"?`},
		{"a large row of a table", &mailing{input: plan.Input{Text: "a\n\"1\n2\"\n\n" + strings.Repeat("x", 300<<10) + "\n", ListFormat: "csv"}}, `/tasks/0/forEach/input task "Mail": line 5 of input "leads" has 300 KiB, and at most 256 KiB of it reach "mailer"`},
		{"too large", &mailing{input: plan.Input{Text: `["a","` + strings.Repeat("x", 300<<10) + `"]`}}, `/tasks/0/forEach/input task "Mail": item 2 of input "leads" has 300 KiB, and at most 256 KiB of it reach "mailer"`},
		{"above the caller", &mailing{input: plan.Input{Text: "[]", Classification: label.Confidential}, accepts: label.Confidential, user: &hidden}, "and the caller sees the status of tasks and may see internal"},
		{"too many, above the caller", &mailing{input: plan.Input{Text: "[1,2,3,4,5]", Classification: label.Confidential}, accepts: label.Confidential, user: &hidden}, "has more items than maxItems, 4"},
		{"a bad line above the caller", &mailing{input: plan.Input{Text: "1\n{", ListFormat: "ndjson", Classification: label.Confidential}, accepts: label.Confidential, user: &hidden}, `input "leads": it is not in its format`},
		{"above the agent", &mailing{input: plan.Input{Text: "[]", Classification: label.Confidential}}, "mailer"},
		{"not for the agent", &mailing{input: plan.Input{Text: "[1]"}, policy: &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.User, To: "mailer", Mode: handoff.Minimal}}}}, `/tasks/0/forEach/input task "Mail": no item of input "leads" is delivered to "mailer"`},
		{"both", &mailing{input: plan.Input{Text: "[]"}, change: func(s []task.Spec) { s[0].ForEach.Task = "Report" }}, "/tasks/0/forEach/input task \"Mail\": it has both task and input"},
		{"not each", &mailing{input: plan.Input{Text: "[]"}, change: func(s []task.Spec) { s[1].DependsOn = task.On("Mail") }}, `/tasks/1/dependsOn/0 task "Report": "Mail" runs for each item of a list: write {each: Mail}`},
		{"nothing of the need", &mailing{input: plan.Input{Text: `[{"a":1}]`}, change: func(s []task.Spec) { s[0].Uses = []task.Use{{Name: "lead", Need: []task.Path{"/b"}}} }}, `/tasks/0/uses/0/need/0 task "Mail": no item of input "leads" has /b: write one of /a`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, specs, o := tt.m.team(t)
			_, err := r.plan(specs, o)
			var problems task.Problems
			require.ErrorAs(t, err, &problems)
			var all []string
			for _, p := range problems {
				all = append(all, p.Pointer+" "+p.Error())
			}
			require.Contains(t, strings.Join(all, "\n"), tt.want)
			require.Len(t, problems, 1, all)
		})
	}
}

func TestResultsOfManyItemsThatDoNotFit(t *testing.T) {
	t.Parallel()
	warned := func(items, most int, change func(s []task.Spec)) string {
		m := mailing{input: plan.Input{Text: "[" + strings.TrimSuffix(strings.Repeat("1,", items), ",") + "]"}, list: task.ForEach{MaxItems: most}, change: change}
		r, specs, o := m.team(t)
		p, err := r.plan(specs, o)
		require.NoError(t, err)
		var all []string
		for _, w := range p.Warnings {
			all = append(all, w.Pointer+" "+w.Error())
		}
		return strings.Join(all, "\n")
	}
	require.Empty(t, warned(300, 1000, nil), "the list is known")
	require.Equal(t, `/tasks/0/forEach/maxItems task "Mail": input "leads" has 3 items, and only the first 2 are taken`, warned(3, 2, func(s []task.Spec) { s[0].ForEach.OnOverflow = "first" }))
	require.Contains(t, warned(600, 1000, nil), `/tasks/1/dependsOn/0 task "Report": a prompt of "summer" has 512 KiB, so each of the 600 results of "Mail" has room for 873 bytes of it`)
	require.Contains(t, warned(10, 10, func(s []task.Spec) { s[1].DependsOn[0].MaxContextBytes = 100 << 10 }), "each of the 10 results")
	require.Empty(t, warned(600, 1000, func(s []task.Spec) { s[1].DependsOn[0].Need = []task.Path{""} }))
}

// Whoever follows from the instances learns how many there are: the table says so, and labels do.
func TestTheNumberOfItemsHasTheLabelOfTheInput(t *testing.T) {
	t.Parallel()
	m := mailing{input: plan.Input{Text: "[1]", Classification: label.Confidential}, accepts: label.Confidential}
	r, specs, o := m.team(t)
	p, err := r.plan(specs, o)
	require.NoError(t, err)
	require.Equal(t, label.Confidential, p.Tasks[1].Label)
	specs[1].Assignee, m.accepts = "summer", label.Internal
	r, specs, o = m.team(t)
	_, err = r.plan(specs, o)
	require.ErrorContains(t, err, "confidential")
}
