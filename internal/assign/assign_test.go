package assign_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// specs reads tasks from words such as "sink<mid,root" (it depends on both) and
// "note@ada" (it names its agent).
func specs(words ...string) []task.Spec {
	list := make([]task.Spec, len(words))
	for i, w := range words {
		title, deps, linked := strings.Cut(w, "<")
		title, list[i].Assignee, _ = strings.Cut(title, "@")
		list[i].Title, list[i].Description = title, "Do it."
		if linked {
			list[i].DependsOn = task.On(strings.Split(deps, ",")...)
		}
	}
	return list
}

func graphOf(t require.TestingT, specs []task.Spec) *graph.Graph {
	g, err := graph.Resolve(specs, time.Time{})
	require.NoError(t, err)
	return g
}

// named returns agents that differ only in their names.
func named(names ...string) []assign.Agent {
	agents := make([]assign.Agent, len(names))
	for i := range agents {
		agents[i].Name = names[i]
	}
	return agents
}

// chosen assigns tasks at label internal and returns the agents' names.
func chosen(t require.TestingT, specs []task.Spec, agents []assign.Agent, s assign.Strategy) string {
	indexes, err := assign.Tasks(graphOf(t, specs), make([]label.Classification, len(specs)), agents, s)
	require.NoError(t, err)
	names := make([]string, len(indexes))
	for i, k := range indexes {
		names[i] = agents[k].Name
	}
	return strings.Join(names, " ")
}

var strategies = []assign.Strategy{assign.DependencyFirst, assign.CapabilityMatch}

func TestStrategiesChooseByTurnAndLoad(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		strategy assign.Strategy
		agents   string
		give     string
		want     string
	}{
		{"in turn, and named tasks take no turn", "", "a b c", "1 2@c 3 4 5@a 6", "a c b c a a"},
		{"most dependents first", assign.DependencyFirst, "a b", "sink<mid mid<root root lone", "a b a b"},
		{"the default", "", "a b", "sink<mid lone mid<root root", "a b b a"},
		{"equal ones as they are", assign.DependencyFirst, "a b c", "1 2 3 4", "a b c a"},
		// both roots have three dependents: the second is not ahead for having four paths
		{"dependents count once", assign.DependencyFirst, "a b c d e f g h", "c1 c2<c1 c3<c2 c4<c3 d1 d2<d1 d3<d1 d4<d2,d3", "a c d g b e f h"},
		{"one agent", assign.DependencyFirst, "a", "sink<root root", "a a"},
		{"nothing shared is nothing chosen", assign.CapabilityMatch, "a b", "1 2 3@a 4", "b a a b"},
		{"all are named", assign.CapabilityMatch, "a b", "1@b 2@a", "b a"},
		{"no tasks", "", "a", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, chosen(t, specs(strings.Fields(tt.give)...), named(strings.Fields(tt.agents)...), tt.strategy))
		})
	}
}

// TestSkippedAgentsKeepTheirTurn shows what "in turn" means where not all
// are eligible for all.
func TestSkippedAgentsKeepTheirTurn(t *testing.T) {
	t.Parallel()
	agents := named("a", "b", "c")
	agents[1].Tools, agents[2].Tools = []string{"shell"}, []string{"shell"}
	give := specs("1", "2", "3", "4", "5", "6")
	for _, i := range []int{0, 1, 2, 4} {
		give[i].Requires = &task.Requires{Tools: []string{"shell"}}
	}
	// a waits at the head of the line until the fourth task, and is then at its end
	require.Equal(t, "b c b a c b", chosen(t, give, agents, ""))
}

func TestFitChoosesTheMostSharedWords(t *testing.T) {
	t.Parallel()
	agent := func(name, description, prompt string, capabilities ...string) assign.Agent {
		return assign.Agent{Name: name, Description: description, SystemPrompt: prompt, Capabilities: capabilities}
	}
	pair := func(a, b assign.Agent) []assign.Agent { a.Name, b.Name = "ann", "bob"; return []assign.Agent{a, b} }
	const five = "north south east west market, and an invoice"
	tests := []struct {
		name   string
		give   string
		agents []assign.Agent
		want   string
	}{
		{"a word of the description", "Look for signs of fraud.", pair(agent("", "Writes letters", ""), agent("", "Looks at fraud", "")), "bob"},
		{"a name", "Ask the lawyer.", []assign.Agent{agent("clerk", "", ""), agent("lawyer", "", "")}, "lawyer"},
		{"more words", "Draft a friendly letter.", pair(agent("", "letter", ""), agent("", "friendly letter", "")), "bob"},
		{"often is not more", "Letter, letter, letter: friendly and short.", pair(agent("", "letter", ""), agent("", "friendly short", "")), "bob"},
		{"four words of a prompt are no more than one of the description", five, pair(agent("", "invoice", ""), agent("", "", "north south east west")), "ann"},
		{"and no less", five, pair(agent("", "", "north south east west"), agent("", "invoice", "")), "ann"},
		{"five are more", five, pair(agent("", "invoice", ""), agent("", "", "north south east west market")), "bob"},
		{"three are less", five, pair(agent("", "", "north south east"), agent("", "invoice", "")), "bob"},
		{"a prompt says no more than the description", "invoice market", pair(agent("", "invoice", "market"), agent("", "invoice", "invoice, invoice")), "ann"},
		{"a capability of one word is no more than three words", five, pair(agent("", "north south east", ""), agent("", "", "", "west")), "ann"},
		{"and no less", five, pair(agent("", "", "", "west"), agent("", "north south east", "")), "ann"},
		{"a capability needs all its words", "data tomorrow morning", pair(agent("", "tomorrow morning", ""), agent("", "", "", "data recovery")), "ann"},
		{"capabilities in any order, apart", "Recovery of lost data", pair(agent("", "data recovery", ""), agent("", "", "", "data recovery")), "bob"},
		{"a capability in other words is the same", "data invoice market",
			[]assign.Agent{agent("ann", "", "", "data"), agent("bob", "", "", "Data, data"), agent("cyd", "invoice market", "")}, "cyd"},
		{"what all have counts nothing", "Write an invoice report",
			pair(agent("", "invoice report writes", ""), agent("", "invoice report writer market", "")), "ann"}, // a tie
		{"the rarer word", "invoice market", []assign.Agent{agent("ann", "invoice", ""), agent("bob", "invoice", ""), agent("cyd", "market", "")}, "cyd"},
		{"endings", "A review of contracts", pair(agent("", "drafts letters", ""), agent("", "contract reviewer", "")), "bob"},
		{"but the fifth letter counts", "market", pair(agent("", "drafts letters", ""), agent("", "marking", "")), "ann"},
		{"function words", "What should this be about?", pair(agent("", "nobody knows", ""), agent("", "about what this should be", "")), "ann"},
		{"function words are no cut words", "under and through", pair(agent("", "nobody knows", ""), agent("", "underwriting throughput", "")), "ann"},
		{"but longer words are", "underwriting", pair(agent("", "nobody knows", ""), agent("", "underwriter", "")), "bob"},
		{"short words", "a tax on the ads", pair(agent("", "nobody knows", ""), agent("", "tax on ads", "")), "ann"},
		{"short words of a capability", "a tax on the ads", pair(agent("", "nobody knows", ""), agent("", "", "", "tax")), "bob"},
		{"and then of everybody", "tax", []assign.Agent{agent("ann", "", ""), agent("bob", "tax", ""), agent("cyd", "", "", "tax law")}, "bob"},
		{"numbers in a name", "Write 2 pages", []assign.Agent{agent("ann 1", "", ""), agent("bob 2", "", "")}, "ann 1"},
		{"letter case and accents", "ΛΌΓΟΣ", pair(agent("", "αναφορές", ""), agent("", "λόγος", "")), "bob"},
		{"composed or not", "Pru\u0308fung", pair(agent("", "Übersetzung", ""), agent("", "Prüfungen", "")), "bob"},
		{"full width", "ＩＮＶＯＩＣＥ", pair(agent("", "reports", ""), agent("", "invoices", "")), "bob"},
		{"Russian", "Проверить договор", pair(agent("", "Пишет тексты", ""), agent("", "проверка договоров", "")), "bob"},
		{"Hindi", "अनुबंध की जाँच", pair(agent("", "पत्र लेखन", ""), agent("", "जाँच", "")), "bob"},
		{"Chinese", "请审查这份合同", pair(agent("", "撰写新闻稿", ""), agent("", "合同审查", "")), "bob"},
		{"Japanese and Latin", "Goサービスの設計", pair(agent("", "翻訳", ""), agent("", "サービス設計", "")), "bob"},
		{"a long vowel is no word", "サーバー", pair(agent("", "", ""), agent("", "コーヒー", "")), "ann"},
		{"one ideogram", "金", pair(agent("", "木", ""), agent("", "金。", "")), "bob"},
		{"Korean", "문서를 검색하세요", pair(agent("", "번역", ""), agent("", "검색", "")), "bob"},
		{"Thai", "ตรวจสัญญานี้", pair(agent("", "แปลภาษา", ""), agent("", "สัญญา", "")), "bob"},
		{"broken UTF-8", "\xff invoice \xc3", pair(agent("", "\xfe report", ""), agent("", "\xff invoice", "")), "bob"},
		{"marks and signs", "\u0301 ?! _", pair(agent("", "", ""), agent("", "\u0301 ?! _", "", "++", " ")), "ann"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			i, ok := assign.Best(tt.give, tt.agents, label.Internal)
			require.True(t, ok)
			require.Equal(t, tt.want, tt.agents[i].Name)

			g, err := graph.New([]task.Task{{ID: "1", Spec: task.Spec{Title: "?", Description: tt.give}}, {ID: "2", Spec: task.Spec{Title: tt.give, Description: "?"}}})
			require.NoError(t, err)
			for n := range 2 { // in the title or the description; on its own, since the second would break a tie by load
				one, err := graph.New(g.Tasks()[n : n+1 : n+1])
				require.NoError(t, err)
				got, err := assign.Tasks(one, make([]label.Classification, 1), tt.agents, assign.CapabilityMatch)
				require.NoError(t, err)
				require.Equal(t, tt.want, tt.agents[got[0]].Name)
			}
		})
	}
}

func TestFitLooksAtOneTaskAtATime(t *testing.T) {
	t.Parallel()
	agents := named("ann", "bob")
	agents[0].Description = "tomorrow morning"         // 8 points for the second task
	agents[1].Capabilities = []string{"data recovery"} // 4 for either, and 16 for both at once
	require.Equal(t, "bob ann", chosen(t, specs("data", "recovery tomorrow morning"), agents, assign.CapabilityMatch))
}

func TestFitTiesGoToTheLessBusy(t *testing.T) {
	t.Parallel()
	agents := named("clerk a", "clerk b", "cook")
	give := specs("clerk 1", "clerk 2", "clerk 3", "cook", "letter@clerk a")
	require.Equal(t, "clerk b clerk a clerk b cook clerk a", chosen(t, give, agents, assign.CapabilityMatch))
}

func TestEveryHardFilter(t *testing.T) {
	t.Parallel()
	all := &task.Requires{Tools: []string{"shell"}, Capabilities: []string{"Code Review"}, Backend: "Process", Provider: "OpenAI"}
	able := assign.Agent{
		Name: "able", Tools: []string{"read", " shell"}, Capabilities: []string{"go", " code review "}, Backend: "process", Provider: "openai ",
		Clearance: label.Confidential, Produces: label.Confidential, OutputTags: []string{"facts", "terms"}, MaxSession: time.Hour,
	}
	but := func(change func(*assign.Agent)) assign.Agent { a := able; a.Name = "other"; change(&a); return a }
	tests := map[string]assign.Agent{
		"tool":         but(func(a *assign.Agent) { a.Tools = []string{"Shell"} }),
		"capability":   but(func(a *assign.Agent) { a.Capabilities = []string{"code", "review"} }),
		"backend":      but(func(a *assign.Agent) { a.Backend = "" }),
		"provider":     but(func(a *assign.Agent) { a.Provider = "other" }),
		"clearance":    but(func(a *assign.Agent) { a.Clearance = label.Internal }),
		"production":   but(func(a *assign.Agent) { a.Produces = label.Public }),
		"tag":          but(func(a *assign.Agent) { a.OutputTags = []string{"facts"} }),
		"tag's case":   but(func(a *assign.Agent) { a.OutputTags = []string{"facts", "Terms"} }),
		"session":      but(func(a *assign.Agent) { a.MaxSession = time.Minute }),
		"half an hour": but(func(a *assign.Agent) { a.MaxSession = 30*time.Minute - 1 }),
	}
	s := specs("task")
	s[0].Requires, s[0].RequiredTags, s[0].Timeout = all, []string{"terms", "facts"}, 30*time.Minute
	for name, other := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, strategy := range strategies {
				got, err := assign.Tasks(graphOf(t, s), []label.Classification{label.Confidential}, []assign.Agent{other, able}, strategy)
				require.NoError(t, err)
				require.Equal(t, []int32{1}, got)
				_, err = assign.Tasks(graphOf(t, s), []label.Classification{label.Confidential}, []assign.Agent{other}, strategy)
				require.ErrorIs(t, err, assign.ErrNoAgent)
			}
		})
	}
	unbounded := but(func(a *assign.Agent) { a.MaxSession = 0 })
	got, err := assign.Tasks(graphOf(t, s), []label.Classification{label.Confidential}, []assign.Agent{unbounded}, "")
	require.NoError(t, err)
	require.Equal(t, []int32{0}, got)
}

func TestLevelsAreComparedAsWritten(t *testing.T) {
	t.Parallel()
	agents := named("public", "secret")
	agents[0].Clearance, agents[0].Produces = label.Public, label.Public
	agents[1].Clearance, agents[1].Produces = label.Secret, label.Secret
	for level, want := range map[label.Classification]int{label.Public: 0, label.Internal: 1, label.Secret: 1, -9: 0, 9: -1, 127: -1} {
		i, ok := assign.Best("", agents, level)
		require.Equal(t, want >= 0, ok, "%v", level)
		if ok {
			require.Equal(t, want, i, "%v", level)
		}
	}
}

func TestMoreThanSixtyFourAgents(t *testing.T) {
	t.Parallel()
	agents := make([]assign.Agent, 130)
	for i := range agents {
		agents[i].Name = "agent"
	}
	agents[129].Tools = []string{"shell"}
	s := specs("1", "2")
	s[0].Requires = &task.Requires{Tools: []string{"shell"}}
	got, err := assign.Tasks(graphOf(t, s), make([]label.Classification, 2), agents, "")
	require.NoError(t, err)
	require.Equal(t, []int32{129, 0}, got)
}

func TestBestWithoutAgents(t *testing.T) {
	t.Parallel()
	_, ok := assign.Best("goal", nil, label.Public)
	require.False(t, ok)
	_, ok = assign.Best("goal", named("a"), label.Confidential)
	require.False(t, ok)
	i, ok := assign.Best("nothing shared", named("a", "b"), label.Internal)
	require.True(t, ok)
	require.Zero(t, i)
}

func TestStrategyNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"dependency-first", "capability-match"}, assign.Strategies())
	for given, want := range map[assign.Strategy]assign.Strategy{
		"": assign.DependencyFirst, assign.DependencyFirst: assign.DependencyFirst, assign.CapabilityMatch: assign.CapabilityMatch,
		"round-robin": assign.DependencyFirst, "least-busy": assign.DependencyFirst, "composite": assign.CapabilityMatch,
	} {
		require.True(t, given.Valid(), given)
		require.Equal(t, want, given.Current(), given)
		d := specs("sink<root", "ann", "root", "bob@ann")
		require.Equal(t, chosen(t, d, named("ann", "bob"), want), chosen(t, d, named("ann", "bob"), given))
	}
	for _, s := range []assign.Strategy{"Round-Robin", "random", " "} {
		require.False(t, s.Valid())
	}
}

func TestLabelsAreParallelToTasks(t *testing.T) {
	t.Parallel()
	_, err := assign.Tasks(graphOf(t, specs("1", "2")), make([]label.Classification, 1), named("a"), "")
	require.ErrorIs(t, err, task.ErrInvalid)
	require.ErrorContains(t, err, "1 labels for 2 tasks")
}

func TestGraphIsNotChanged(t *testing.T) {
	t.Parallel()
	g := graphOf(t, specs("sink<root", "root"))
	_, err := assign.Tasks(g, make([]label.Classification, 2), named("a", "b"), "")
	require.NoError(t, err)
	require.Empty(t, g.Task(0).Assignee)
	require.Empty(t, g.Task(1).Assignee)
}
