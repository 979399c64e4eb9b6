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
