package team_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
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
