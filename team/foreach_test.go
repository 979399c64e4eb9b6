package team_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// research plans so many searches, makes each, and reports all.
func research(t *testing.T, searches int, change func(specs []task.Spec)) (*team.Result, error) {
	t.Helper()
	says := func(does func(p prompt.Prompt) (string, error)) agent.Agent {
		return agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			text, err := does(p)
			return agent.Reply{Text: text}, err
		})
	}
	tm, err := team.New(team.Config{Agents: []team.Member{
		{Name: "planner", Agent: says(func(prompt.Prompt) (string, error) {
			queries := []map[string]any{}
			for i := range searches {
				queries = append(queries, map[string]any{"query": fmt.Sprint("q", i+1)})
			}
			raw, err := json.Marshal(map[string]any{"searches": queries, "secret": "hidden"})
			return string(raw), err
		})},
		{Name: "searcher", Agent: says(func(p prompt.Prompt) (string, error) {
			require.True(t, strings.HasPrefix(p.Text(), "# Task: Search\n"), p.Text())
			require.NotContains(t, p.Text(), "hidden")
			require.Len(t, p.Sections(), 1)
			item := p.Sections()[0]
			require.Equal(t, "item", item.Title)
			if item.JSON == `{"query":"q3"}` {
				return "", fmt.Errorf("no network")
			}
			return "found " + item.JSON, nil
		})},
		{Name: "writer", Agent: says(func(p prompt.Prompt) (string, error) {
			var all []string
			for _, s := range p.Sections() {
				all = append(all, s.Title+"="+s.Text+s.Withheld)
			}
			return strings.Join(all, " "), nil
		})},
	}})
	require.NoError(t, err)
	specs := []task.Spec{
		{Title: "Plan", Description: "d", Assignee: "planner", OutputSchema: []byte(`{"type":"object","properties":{"searches":{"type":"array","items":{"type":"object","properties":{"query":{"type":"string"}}}},"secret":{"type":"string"}},"required":["searches"]}`)},
		{Title: "Search", Description: "d", Assignee: "searcher", ForEach: &task.ForEach{Task: "Plan", Path: "/searches", MaxItems: 4}},
		{Title: "Report", Description: "d", Assignee: "writer", DependsOn: []task.Ref{{Each: "Search", Optional: true}}},
	}
	if change != nil {
		change(specs)
	}
	return tm.RunTasks(t.Context(), specs, nil)
}

func TestForEach(t *testing.T) {
	t.Parallel()
	for searches, want := range map[int]string{
		0: "",
		2: `Search[1]=found {"query":"q1"} Search[2]=found {"query":"q2"}`,
		4: `Search[1]=found {"query":"q1"} Search[2]=found {"query":"q2"} Search[3]=failed Search[4]=found {"query":"q4"}`,
	} {
		res, err := research(t, searches, nil)
		require.Equal(t, searches >= 3, err != nil, err)
		report, _ := res.Task("Report")
		require.Equal(t, want, report.Result)
		require.Len(t, res.Tasks, 2+searches)
	}
}

func TestForEachOfATooLongList(t *testing.T) {
	t.Parallel()
	res, err := research(t, 5, nil)
	require.Error(t, err)
	search, _ := res.Task("Search[1]")
	require.Equal(t, "LIST_TOO_LONG", search.Error.Code)
	res, _ = research(t, 5, func(specs []task.Spec) { specs[1].ForEach.OnOverflow = "first" })
	require.Len(t, res.Tasks, 6)
	require.Equal(t, []string{"/searches of Plan: the list has 5 items, and only the first 4 are taken"}, res.Warnings)
	res, _ = research(t, 4, func(specs []task.Spec) { specs[1].ForEach.OnOverflow = "first" })
	require.Empty(t, res.Warnings)
}

func TestForEachRequired(t *testing.T) {
	t.Parallel()
	res, err := research(t, 3, func(specs []task.Spec) { specs[2].DependsOn[0].Optional = false })
	require.Error(t, err)
	report, _ := res.Task("Report")
	require.Equal(t, "DEPENDENCY_FAILED", report.Error.Code)
	res, err = research(t, 2, func(specs []task.Spec) { specs[2].DependsOn[0].Optional = false })
	require.NoError(t, err)
	require.Equal(t, team.StatusOK, res.Status)
}

// listed runs an instance for each item of a list that another agent gives, and returns by title
// what each was given, or why it did not complete.
func listed(t *testing.T, list string, rule handoff.PairRule, change func(do *task.Spec)) (*team.Result, map[string]string) {
	t.Helper()
	says := func(does func(p prompt.Prompt) string) agent.Agent {
		return agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: does(p)}, nil })
	}
	rule.From, rule.To = "planner", "worker"
	tm, err := team.New(team.Config{
		Agents: []team.Member{
			{Name: "planner", Agent: says(func(prompt.Prompt) string { return `{"kind":"a","items":` + list + `}` })},
			{Name: "checker", Agent: says(func(prompt.Prompt) string { return `{"ok":true}` })},
			{Name: "worker", Agent: says(func(p prompt.Prompt) string {
				return p.Sections()[0].JSON + p.Sections()[0].Text
			})},
		},
		Policy: &handoff.Policy{Rules: []handoff.PairRule{rule}},
	})
	require.NoError(t, err)
	do := task.Spec{Title: "Do", Description: "d", Assignee: "worker", ForEach: &task.ForEach{Task: "Plan", Path: "/items", MaxItems: 4}}
	if change != nil {
		change(&do)
	}
	res, err := tm.RunTasks(t.Context(), []task.Spec{
		{Title: "Plan", Description: "d", Assignee: "planner", OutputSchema: []byte(`{"type":"object","properties":{"kind":{"enum":["a","b"]},"items":{}},"required":["kind"]}`)},
		{Title: "Check", Description: "d", Assignee: "checker", OutputSchema: []byte(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`)},
		do,
		{Title: "End", Description: "d", Assignee: "checker", DependsOn: []task.Ref{{Each: "Do", Optional: true}}},
	}, nil)
	require.NotNil(t, res, err)
	results := map[string]string{}
	for i := range res.Tasks {
		if of := &res.Tasks[i]; strings.HasPrefix(of.Title, "Do[") {
			results[of.Title] = of.Result
			if of.Status != task.Completed {
				results[of.Title] = string(of.Status)
			}
			if of.Error != nil {
				results[of.Title] = of.Error.Code
			}
		}
	}
	return res, results
}

// An item that a rule blocks does not move the others, and the instance that has it fails.
func TestForEachWithBlockedItems(t *testing.T) {
	t.Parallel()
	const list = `[{"q":1},{"s":2},{"q":3}]`
	want := map[string]string{"Do[1]": `{"q":1}`, "Do[2]": "CONTEXT_HELD", "Do[3]": `{"q":3}`}
	_, got := listed(t, list, handoff.PairRule{Block: []task.Path{"/items/1"}}, nil)
	require.Equal(t, want, got, "blocked by its number")
	_, got = listed(t, list, handoff.PairRule{Block: []task.Path{"/items/0"}}, nil)
	require.Equal(t, map[string]string{"Do[1]": "CONTEXT_HELD", "Do[2]": `{"s":2}`, "Do[3]": `{"q":3}`}, got)
	_, got = listed(t, list, handoff.PairRule{Allow: []task.Path{"/kind", "/items/*/q"}}, nil)
	require.Equal(t, want, got, "not allowed")
}

func TestForEachOfWhatIsNoList(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]map[string]string{
		`null`: {}, `[]`: {}, `[[1,2],[]]`: {"Do[1]": "[1,2]", "Do[2]": "[]"},
		`{"0":1}`: {"Do[1]": "AGENT_ERROR", "Do[2]": "AGENT_ERROR", "Do[3]": "AGENT_ERROR", "Do[4]": "AGENT_ERROR"},
	} {
		_, got := listed(t, list, handoff.PairRule{Mode: handoff.Full}, nil)
		require.Equal(t, want, got, list)
	}
}

// One condition may leave values, also if there are many instances, and results of instances that
// are not needed are left out.
func TestForEachWithACondition(t *testing.T) {
	t.Parallel()
	both := task.All(task.Equals("Plan", "/kind", "a"), task.Equals("Check", "/ok", true))
	for _, when := range []*task.Condition{task.Equals("Plan", "/kind", "a"), both} {
		res, got := listed(t, `[1,2]`, handoff.PairRule{Mode: handoff.Full}, func(do *task.Spec) { do.When = when })
		require.Equal(t, team.StatusOK, res.Status, res.Errors)
		require.Equal(t, map[string]string{"Do[1]": "1", "Do[2]": "2"}, got)
	}
	res, got := listed(t, `[1,2]`, handoff.PairRule{Mode: handoff.Full}, func(do *task.Spec) { do.When = task.Equals("Plan", "/kind", "b") })
	require.Equal(t, team.StatusOK, res.Status, res.Errors)
	require.Equal(t, map[string]string{"Do[1]": "not_needed", "Do[2]": "not_needed"}, got)
}

// How many instances there were is as sensitive as the list, so their results displace none that
// an agent below it finds in the shared memory.
func TestInstancesDisplaceNoMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		items := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]" }
		for _, n := range []int{0, 300} {
			says := func(text string) agent.Agent {
				return agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: text}, nil })
			}
			tm, err := team.New(team.Config{Agents: []team.Member{
				{Name: "planner", Accepts: label.Confidential, Agent: says(`{"items":` + items(n) + `}`)},
				{Name: "worker", Accepts: label.Confidential, Agent: says("hidden")},
				{Name: "noter", Agent: says("a note")},
				{Name: "waiter", Agent: agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) {
					time.Sleep(300 * time.Millisecond)
					return agent.Reply{Text: "waited"}, nil
				})},
				{Name: "reader", Agent: agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
					require.Contains(t, p.Text(), "a note")
					require.NotContains(t, p.Text(), "hidden")
					return agent.Reply{Text: "read"}, nil
				})},
			}})
			require.NoError(t, err)
			_, err = tm.RunTasks(t.Context(), []task.Spec{
				{Title: "Note", Description: "d", Assignee: "noter"},
				{Title: "Plan", Description: "d", Assignee: "planner", DependsOn: task.On("Note"), Classification: label.Confidential, OutputSchema: []byte(`{"type":"object","properties":{"items":{"type":"array"}}}`)},
				{Title: "Do", Description: "d", Assignee: "worker", ForEach: &task.ForEach{Task: "Plan", Path: "/items", MaxItems: 300}},
				{Title: "Wait", Description: "d", Assignee: "waiter"},
				{Title: "Read", Description: "d", Assignee: "reader", MemoryScope: task.ScopeAll, DependsOn: task.On("Wait")},
			}, &team.RunOptions{UserAccepts: new(label.Confidential)})
			require.NoError(t, err)
		}
	})
}
