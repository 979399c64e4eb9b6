package team_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// sales looks at each lead, drafts a letter in up to two rounds, and reports all letters.
func sales() []task.Spec {
	verdict := []byte(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`)
	return []task.Spec{
		{Title: "Leads", Key: "leads", ForEach: &task.ForEach{
			Input: "leads", As: "lead", MaxItems: 3, Output: "Send",
			Tasks: []task.Spec{
				{Title: "Look", Description: "d", Assignee: "a", Uses: []task.Use{{Name: "lead"}}},
				{Title: "Letter", Repeat: &task.Repeat{
					MaxRounds: 2, Output: "Write", Until: task.Equals("Check", "/ok", true),
					Tasks: []task.Spec{
						{Title: "Write", Description: "d", Assignee: "a", DependsOn: []task.Ref{{Task: "Look"}, {Task: "Check", Round: task.Previous, Optional: true}}, Uses: []task.Use{{Name: "lead", Need: []task.Path{"/name"}}}},
						{Title: "Check", Description: "d", Assignee: "a", DependsOn: task.On("Write"), OutputSchema: verdict},
					},
				}},
				{Title: "Send", Description: "d", Assignee: "a", DependsOn: task.On("Letter")},
			},
		}},
		{Title: "Report", Description: "d", Assignee: "a", DependsOn: []task.Ref{{Each: "leads", Optional: true}}},
	}
}

// sell runs such tasks. It returns what each task was given, by the title as written and the result
// of its Look.
func sell(t *testing.T, specs []task.Spec, leads string, reply func(p prompt.Prompt) string) (*team.Result, []string, error) {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "a", Agent: agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		title, _, _ := strings.Cut(strings.TrimPrefix(p.Text(), "# Task: "), "\n")
		words := []string{title}
		for _, s := range p.Sections() {
			words = append(words, s.Title+"="+s.Text+s.JSON)
		}
		mu.Lock()
		seen = append(seen, strings.Join(words, " "))
		mu.Unlock()
		if reply != nil {
			if text := reply(p); text == "FAIL" {
				return agent.Reply{}, fmt.Errorf("it failed")
			} else if text != "" {
				return agent.Reply{Text: text}, nil
			}
		}
		if title == "Check" {
			return agent.Reply{Text: fmt.Sprintf(`{"ok":%v}`, strings.Contains(p.Text(), "Ann"))}, nil
		}
		return agent.Reply{Text: strings.Join(words, " ")}, nil
	})}}})
	require.NoError(t, err)
	res, err := tm.RunTasks(t.Context(), specs, &team.RunOptions{Inputs: []team.Input{{Name: "leads", Text: leads}}})
	slices.Sort(seen)
	return res, seen, err
}

func TestTasksForEachItem(t *testing.T) {
	t.Parallel()
	res, seen, err := sell(t, sales(), `[{"name":"Ann","n":1},{"name":"Bo","n":2}]`, nil)
	require.NoError(t, err)
	var titles []string
	for i := range res.Tasks {
		titles = append(titles, res.Tasks[i].Title+" "+string(res.Tasks[i].Status))
	}
	require.Equal(t, []string{
		"Look[1] completed", "Write[1]#1 completed", "Check[1]#1 completed", "Letter[1] completed", "Send[1] completed",
		"Look[2] completed", "Write[2]#1 completed", "Check[2]#1 completed", "Write[2]#2 completed", "Check[2]#2 completed", "Letter[2] completed", "Send[2] completed",
		"Report completed",
	}, titles, "the third item and the round that is not needed are left out")
	require.Contains(t, seen, `Look lead={"n":1,"name":"Ann"}`)
	for _, s := range seen {
		if !strings.HasPrefix(s, "Report") {
			require.False(t, strings.Contains(s, "Ann") && strings.Contains(s, "Bo"), "an instance has nothing of another: %s", s)
		}
		require.False(t, strings.HasPrefix(s, "Write") && strings.Contains(strings.SplitN(s, "Look=", 2)[0], `"n"`), "only the part that it needs: %s", s)
	}
	report, _ := res.Task("Report")
	require.Contains(t, report.Result, "Send[1]=Send")
	require.Contains(t, report.Result, "Send[2]=Send")
}

// What fails for one item fails nothing for another.
func TestTasksForEachItemFailApart(t *testing.T) {
	t.Parallel()
	res, _, err := sell(t, sales(), `[{"name":"Ann"},{"name":"Bo"}]`, func(p prompt.Prompt) string {
		if strings.HasPrefix(p.Text(), "# Task: Look") && strings.Contains(p.Text(), "Bo") {
			return "FAIL"
		}
		return ""
	})
	require.Error(t, err)
	sent, _ := res.Task("Send[1]")
	require.Equal(t, task.Completed, sent.Status)
	sent, _ = res.Task("Send[2]")
	require.NotEqual(t, task.Completed, sent.Status)
	report, _ := res.Task("Report")
	require.Equal(t, task.Completed, report.Status)
}

// The condition of a list decides about all of its tasks.
func TestTasksForEachItemWithACondition(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]int{"a": 2 + 2*5, "b": 2} {
		specs := append([]task.Spec{{Title: "Route", Description: "d", Assignee: "a", OutputSchema: []byte(`{"type":"object","properties":{"kind":{"enum":["a","b"]}},"required":["kind"]}`)}}, sales()...)
		specs[1].When = task.Equals("Route", "/kind", "a")
		specs[1].ForEach.Tasks[1].Repeat.MaxRounds = 1
		res, _, err := sell(t, specs, `[{"name":"Ann"},{"name":"Bo"}]`, func(p prompt.Prompt) string {
			if strings.HasPrefix(p.Text(), "# Task: Route") {
				return `{"kind":"` + kind + `"}`
			}
			return ""
		})
		require.NoError(t, err)
		completed := 0
		for i := range res.Tasks {
			if res.Tasks[i].Status == task.Completed {
				completed++
			}
		}
		require.Equal(t, want, completed)
	}
}

// A list in a loop, and a list for each item of another.
func TestNestedLists(t *testing.T) {
	t.Parallel()
	points := []byte(`{"type":"object","properties":{"points":{"type":"array","items":{"type":"string"}}},"required":["points"]}`)
	specs := []task.Spec{
		{Title: "Leads", ForEach: &task.ForEach{Input: "leads", As: "lead", MaxItems: 2, Output: "Join", Tasks: []task.Spec{
			{Title: "Plan", Description: "d", Assignee: "a", Uses: []task.Use{{Name: "lead"}}, OutputSchema: points},
			{Title: "Do", Description: "d", Assignee: "a", ForEach: &task.ForEach{Task: "Plan", Path: "/points", As: "point", MaxItems: 2}, Uses: []task.Use{{Name: "lead"}}},
			{Title: "Join", Description: "d", Assignee: "a", DependsOn: []task.Ref{{Each: "Do"}}},
		}}},
		{Title: "Report", Description: "d", Assignee: "a", DependsOn: []task.Ref{{Each: "Leads"}}},
	}
	res, seen, err := sell(t, specs, `["Ann"]`, func(p prompt.Prompt) string {
		if strings.HasPrefix(p.Text(), "# Task: Plan") {
			return `{"points":["x","y"]}`
		}
		return ""
	})
	require.NoError(t, err)
	require.Equal(t, []string{"Do lead=Ann point=x", "Do lead=Ann point=y"}, seen[:2])
	require.Contains(t, seen, "Join Do[1]=Do lead=Ann point=x Do[2]=Do lead=Ann point=y")
	require.Len(t, res.Tasks, 5)
}

// A template writes what it is granted of the results of all items, and an item by its name.
func TestTemplatesOfLists(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{
		{Title: "Line", Template: "{{.inputs.lead.name}}: {{.inputs.lead.n}}", ForEach: &task.ForEach{Input: "leads", As: "lead", MaxItems: 3}},
		{Title: "All", DependsOn: []task.Ref{{Each: "Line", Optional: true}}, Template: "{{range .results.Line}}- {{.}}\n{{end}}"},
	}
	res, _, err := sell(t, specs, `[{"name":"Ann","n":1},{"name":"Bo","n":2}]`, nil)
	require.NoError(t, err)
	require.Equal(t, "- Ann: 1\n- Bo: 2\n", res.Output)
}

// At most maxParallel tasks of a list run at the same time, and other tasks do not wait for them.
func TestForEachInParallel(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]time.Duration{0: time.Second, 1: 4 * time.Second, 3: 2 * time.Second, 9: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var running, peak atomic.Int32
			start, other := time.Now(), time.Duration(0)
			says := agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
				if strings.HasPrefix(p.Text(), "# Task: Other") {
					other = time.Since(start)
					return agent.Reply{Text: "other"}, nil
				}
				now := running.Add(1)
				defer running.Add(-1)
				for high := peak.Load(); now > high && !peak.CompareAndSwap(high, now); high = peak.Load() {
				}
				time.Sleep(time.Second)
				return agent.Reply{Text: "done"}, nil
			})
			tm, err := team.New(team.Config{Agents: []team.Member{{Name: "a", Agent: says}}})
			require.NoError(t, err)
			_, err = tm.RunTasks(t.Context(), []task.Spec{
				{Title: "Do", Description: "d", Assignee: "a", ForEach: &task.ForEach{Input: "list", MaxItems: 5, MaxParallel: most}},
				{Title: "Other", Description: "d", Assignee: "a"},
			}, &team.RunOptions{MaxConcurrency: 10, Inputs: []team.Input{{Name: "list", Text: "[1,2,3,4]"}}})
			require.NoError(t, err)
			require.Equal(t, want, time.Since(start))
			require.Zero(t, other)
			if most > 0 {
				require.LessOrEqual(t, int(peak.Load()), most)
			}
		})
	}
}
