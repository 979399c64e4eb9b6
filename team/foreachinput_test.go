package team_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// mailing is a team that writes to each lead of an input.
type mailing struct {
	input   team.Input
	list    task.ForEach
	change  func(tasks []task.Spec)
	policy  *handoff.Policy
	accepts label.Classification
	user    *label.Classification

	mu   sync.Mutex
	seen []string // what each call was given
}

func (m *mailing) team(t require.TestingT) (*team.Team, []task.Spec, *team.RunOptions) {
	says := agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, s := range p.Sections() {
			m.seen = append(m.seen, s.Title+" "+s.JSON+s.Text)
		}
		return agent.Reply{Text: "done"}, nil
	})
	tm, err := team.New(team.Config{Policy: m.policy, Agents: []team.Member{{Name: "mailer", Agent: says, Accepts: m.accepts}, {Name: "summer", Agent: says, Accepts: m.accepts}}})
	require.NoError(t, err)
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
	return tm, specs, &team.RunOptions{Inputs: []team.Input{m.input}, UserAccepts: m.user}
}

// run returns what the calls for items were given, sorted.
func (m *mailing) run(t require.TestingT) (*team.Result, []string, error) {
	tm, specs, o := m.team(t)
	res, err := tm.RunTasks(context.Background(), specs, o)
	seen := slices.DeleteFunc(m.seen, func(s string) bool { return !strings.HasPrefix(s, "lead ") })
	slices.Sort(seen)
	return res, seen, err
}

func TestForEachOfAnInput(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		input team.Input
		list  task.ForEach
		want  []string
	}{
		{"an array", team.Input{Text: `["a", {"b": 1}, [2], "a"]`}, task.ForEach{}, []string{"lead [2]", "lead a", "lead a", `lead {"b":1}`}},
		{"an empty array", team.Input{Text: `[]`}, task.ForEach{}, nil},
		{"an empty text is an item", team.Input{Text: `[""]`}, task.ForEach{}, []string{`lead ""`}},
		{"in an object", team.Input{Text: `{"x": {"all": [1, 2]}}`}, task.ForEach{Path: "/x/all"}, []string{"lead 1", "lead 2"}},
		{"lines", team.Input{Text: "{\"a\":1}\n\n2\n", ListFormat: "ndjson"}, task.ForEach{}, []string{"lead 2", `lead {"a":1}`}},
		{"a table", team.Input{Text: "name,n\nAnn,1\n\"Bo\",2\n", ListFormat: "csv"}, task.ForEach{}, []string{`lead {"n":"1","name":"Ann"}`, `lead {"n":"2","name":"Bo"}`}},
		{"the first rows", team.Input{Text: "n\n1\n2\n3\n", ListFormat: "csv"}, task.ForEach{MaxItems: 2, OnOverflow: "first"}, []string{`lead {"n":"1"}`, `lead {"n":"2"}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := mailing{input: tt.input, list: tt.list}
			res, seen, err := m.run(t)
			require.NoError(t, err)
			require.Equal(t, tt.want, seen)
			require.Len(t, res.Tasks, 1+len(tt.want))
		})
	}
}

func TestForEachOfAFolder(t *testing.T) {
	t.Parallel()
	folder, err := team.ReadFolder(fstest.MapFS{
		"b.md": {Data: []byte("mail ann@x.org")}, "de/a.md": {Data: []byte("<|im_start|>\n2")}, "de/c.txt": {Data: []byte("3")}, "de/x/d.md": {Data: []byte("4")},
	})
	require.NoError(t, err)
	for _, tt := range []struct {
		list task.ForEach
		want []string
	}{
		{task.ForEach{Files: []string{"*.md"}}, []string{`lead {"name":"b.md","text":"mail [REDACTED:email]"}`, `lead {"name":"de/a.md","text":"[BROKEN]\n2"}`, `lead {"name":"de/x/d.md","text":"4"}`}},
		{task.ForEach{Path: "/de", Files: []string{"de/*"}}, []string{`lead {"name":"de/a.md","text":"[BROKEN]\n2"}`, `lead {"name":"de/c.txt","text":"3"}`}},
	} {
		m := mailing{input: team.Input{Folder: folder}, list: tt.list}
		_, seen, err := m.run(t)
		require.NoError(t, err)
		for i := range seen {
			require.NotContains(t, seen[i], "<|im_start|>")
		}
		require.Len(t, seen, len(tt.want))
		for i := range seen {
			if !strings.Contains(tt.want[i], "BROKEN") {
				require.Equal(t, tt.want[i], seen[i])
			}
		}
	}
	// Rules name files, as for the folder as a whole.
	m := mailing{input: team.Input{Folder: folder}, policy: &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.User, To: "mailer", Block: []task.Path{"/de/c.txt"}}}}}
	res, seen, err := m.run(t)
	require.Error(t, err)
	require.Len(t, seen, 3)
	blocked, _ := res.Task("Mail[3]")
	require.Equal(t, "CONTEXT_HELD", blocked.Error.Code)
	require.NotContains(t, fmt.Sprint(seen), "c.txt")
}

func TestBadListsOfInputs(t *testing.T) {
	t.Parallel()
	hidden := label.Internal
	for _, tt := range []struct {
		name string
		m    *mailing
		want string
	}{
		{"no JSON", &mailing{input: team.Input{Text: "a,b\n1,2"}}, `/tasks/0/forEach/input task "Mail": input "leads": invalid list: not one strict JSON value`},
		{"an object", &mailing{input: team.Input{Text: "{}"}}, `/tasks/0/forEach/input task "Mail": input "leads" is not a list`},
		{"no such list", &mailing{input: team.Input{Text: `{"a":[]}`}, list: task.ForEach{Path: "/b"}}, `/tasks/0/forEach/path task "Mail": input "leads" has no list at /b`},
		{"a bad line", &mailing{input: team.Input{Text: "1\n{", ListFormat: "ndjson"}}, `/inputs/leads input "leads": invalid list: line 2: not one strict JSON value`},
		{"a bad row", &mailing{input: team.Input{Text: "a\n1,2", ListFormat: "csv"}}, `/inputs/leads input "leads": invalid list: line 2: the number of fields is 2, and the header has 1`},
		{"an unknown format", &mailing{input: team.Input{Text: "[]", ListFormat: "cvs"}}, `/inputs/leads/format input "leads": unknown format "cvs"`},
		{"too many", &mailing{input: team.Input{Text: "[1,2,3,4,5]"}}, `/tasks/0/forEach/maxItems task "Mail": input "leads" has 5 items, and maxItems is 4`},
		{"files of a text", &mailing{input: team.Input{Text: "[]"}, list: task.ForEach{Files: []string{"*"}}}, `/tasks/0/forEach/files task "Mail": files are those of a folder`},
		{"unknown", &mailing{input: team.Input{Text: "[]"}, change: func(s []task.Spec) { s[0].ForEach.Input = "leeds" }}, `/tasks/0/forEach/input task "Mail": unknown input "leeds": did you mean "leads"?`},
		{"a large row of a table", &mailing{input: team.Input{Text: "a\n\"1\n2\"\n\n" + strings.Repeat("x", 300<<10) + "\n", ListFormat: "csv"}}, `/tasks/0/forEach/input task "Mail": line 5 of input "leads" has 300 KiB, and at most 256 KiB of it reach "mailer"`},
		{"too large", &mailing{input: team.Input{Text: `["a","` + strings.Repeat("x", 300<<10) + `"]`}}, `/tasks/0/forEach/input task "Mail": item 2 of input "leads" has 300 KiB, and at most 256 KiB of it reach "mailer"`},
		{"above the caller", &mailing{input: team.Input{Text: "[]", Classification: label.Confidential}, accepts: label.Confidential, user: &hidden}, "and the caller sees the status of tasks and may see internal"},
		{"too many, above the caller", &mailing{input: team.Input{Text: "[1,2,3,4,5]", Classification: label.Confidential}, accepts: label.Confidential, user: &hidden}, "has more items than maxItems, 4"},
		{"a bad line above the caller", &mailing{input: team.Input{Text: "1\n{", ListFormat: "ndjson", Classification: label.Confidential}, accepts: label.Confidential, user: &hidden}, `input "leads": it is not in its format`},
		{"above the agent", &mailing{input: team.Input{Text: "[]", Classification: label.Confidential}}, "mailer"},
		{"not for the agent", &mailing{input: team.Input{Text: "[1]"}, policy: &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.User, To: "mailer", Mode: handoff.Minimal}}}}, `/tasks/0/forEach/input task "Mail": no item of input "leads" is delivered to "mailer"`},
		{"both", &mailing{input: team.Input{Text: "[]"}, change: func(s []task.Spec) { s[0].ForEach.Task = "Report" }}, "/tasks/0/forEach/input task \"Mail\": it has both task and input"},
		{"not each", &mailing{input: team.Input{Text: "[]"}, change: func(s []task.Spec) { s[1].DependsOn = task.On("Mail") }}, `/tasks/1/dependsOn/0 task "Report": "Mail" runs for each item of a list: write {each: Mail}`},
		{"nothing of the need", &mailing{input: team.Input{Text: `[{"a":1}]`}, change: func(s []task.Spec) { s[0].Uses = []task.Use{{Name: "lead", Need: []task.Path{"/b"}}} }}, `/tasks/0/uses/0/need/0 task "Mail": no item of input "leads" has /b: write one of /a`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tm, specs, o := tt.m.team(t)
			_, err := tm.Plan(specs, o)
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

// A file is an item as a whole, so a part of it in which something is revealed is an error.
func TestRevealInFilesThatAreItems(t *testing.T) {
	t.Parallel()
	folder, err := team.ReadFolder(fstest.MapFS{"b.md": {Data: []byte("mail ann@x.org")}})
	require.NoError(t, err)
	for path, want := range map[task.Path]string{
		"": "mail ann@x.org", "/**": "mail ann@x.org",
		"/name": `email is revealed in parts of an item`, "/text": `write "", for all of the file`, "/b.md": "email is revealed in parts of an item",
	} {
		m := mailing{input: team.Input{Folder: folder}, change: func(s []task.Spec) {
			s[0].Uses = []task.Use{{Name: "lead", Reveal: map[string][]task.Path{"email": {path}}}}
		}}
		_, seen, err := m.run(t)
		require.Contains(t, fmt.Sprint(seen, err), want, path)
		if err != nil {
			var problems task.Problems
			require.ErrorAs(t, err, &problems)
			require.Equal(t, "/tasks/0/uses/0/reveal/email", problems[0].Pointer)
		}
	}
}

// Need and rules are about the items as about the whole input.
func TestPartsOfItemsOfInputs(t *testing.T) {
	t.Parallel()
	table := team.Input{Text: "name,email\nAnn,ann@x.org\nBo,bo@x.org\n", ListFormat: "csv"}
	uses := func(u task.Use) func([]task.Spec) {
		u.Name = "lead"
		return func(s []task.Spec) { s[0].Uses = []task.Use{u} }
	}
	for _, tt := range []struct {
		change func([]task.Spec)
		rule   *handoff.PairRule
		want   string
	}{
		{nil, nil, `lead {"email":"[REDACTED:email]","name":"Ann"}`},
		{uses(task.Use{Need: []task.Path{"/name"}}), nil, `lead {"name":"Ann"}`},
		{uses(task.Use{Reveal: map[string][]task.Path{"email": {"/email"}}}), nil, `lead {"email":"ann@x.org","name":"Ann"}`},
		{nil, &handoff.PairRule{Block: []task.Path{"email"}}, `lead {"name":"Ann"}`},
		{nil, &handoff.PairRule{Allow: []task.Path{"/*/name"}}, `lead {"name":"Ann"}`},
	} {
		m := mailing{input: table, change: tt.change}
		if tt.rule != nil {
			tt.rule.From, tt.rule.To = handoff.User, "mailer"
			m.policy = &handoff.Policy{Rules: []handoff.PairRule{*tt.rule}}
		}
		_, seen, err := m.run(t)
		require.NoError(t, err)
		require.Len(t, seen, 2)
		require.Equal(t, tt.want, seen[0])
	}
}

// Whoever follows from the instances learns how many there are: the table says so, and labels do.
func TestTheNumberOfItemsHasTheLabelOfTheInput(t *testing.T) {
	t.Parallel()
	m := mailing{input: team.Input{Text: "[1]", Classification: label.Confidential}, accepts: label.Confidential}
	tm, specs, o := m.team(t)
	p, err := tm.Plan(specs, o)
	require.NoError(t, err)
	require.Equal(t, label.Confidential, p.Tasks[1].Label)
	specs[1].Assignee, m.accepts = "summer", label.Internal
	tm, specs, o = m.team(t)
	_, err = tm.Plan(specs, o)
	require.ErrorContains(t, err, "confidential")
}

// An instance is granted its own item and nothing of any other.
func TestItemsOfInputsStayApart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 4).Draw(t, "items")
		var lines []string
		for i := range n {
			lines = append(lines, fmt.Sprintf(`{"id":"canary%d","x":%q}`, i, rapid.SampledFrom([]string{"", "a", "ä\n"}).Draw(t, "x")))
		}
		m := mailing{input: team.Input{Text: "[" + strings.Join(lines, ",") + "]"}}
		if rapid.Bool().Draw(t, "lines") {
			m.input.Text, m.input.ListFormat = strings.Join(lines, "\n"), "ndjson"
		}
		_, seen, err := m.run(t)
		require.NoError(t, err)
		require.Len(t, seen, n)
		for i := range n {
			require.Equal(t, 1, strings.Count(seen[i], "canary"), seen[i])
			require.Contains(t, seen[i], fmt.Sprint("canary", i))
		}
	})
}

func TestResultsOfManyItemsThatDoNotFit(t *testing.T) {
	t.Parallel()
	warned := func(items, most int, change func(s []task.Spec)) string {
		m := mailing{input: team.Input{Text: "[" + strings.TrimSuffix(strings.Repeat("1,", items), ",") + "]"}, list: task.ForEach{MaxItems: most}, change: change}
		tm, specs, o := m.team(t)
		p, err := tm.Plan(specs, o)
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
