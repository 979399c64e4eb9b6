package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
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

func TestBadTasksForEachItem(t *testing.T) {
	t.Parallel()
	r, err := newRoster(plan.Config{Agents: []plan.Member{{Name: "a", Agent: unused}}})
	require.NoError(t, err)
	for want, change := range map[string]func(s []task.Spec){
		`/tasks/0/forEach/output task "Leads": the list has no task "Nobody"`:                                                   func(s []task.Spec) { s[0].ForEach.Output = "Nobody" },
		`/tasks/0/forEach task "Leads": a list of tasks has a title, a key, a condition, onFailure and tasks, and nothing else`: func(s []task.Spec) { s[0].Description = "d" },
		`/tasks/0/forEach/tasks/2/dependsOn/0 task "Send": dependsOn[0]: no task "Later"`:                                       func(s []task.Spec) { s[0].ForEach.Tasks[2].DependsOn = task.On("Later") },
		`/tasks/0/forEach/tasks/0/uses/0 task "Look": at is for folders`:                                                        func(s []task.Spec) { s[0].ForEach.Tasks[0].Uses[0].At = "x" },
		`/tasks/0/forEach/tasks/0/uses/0 task "Look": unknown input "led"`:                                                      func(s []task.Spec) { s[0].ForEach.Tasks[0].Uses[0].Name = "led" },
		`/tasks/1/dependsOn/0 task "Report": dependsOn[0]: no task "Send"`:                                                      func(s []task.Spec) { s[1].DependsOn = task.On("Send") },
		`/tasks/0/when task "Look": when: no task "Nobody"`:                                                                     func(s []task.Spec) { s[0].When = task.Equals("Nobody", "/x", 1) },
		`/tasks/0/forEach/maxItems task "Leads": maxItems is 0`:                                                                 func(s []task.Spec) { s[0].ForEach.MaxItems = 0 },
		`/tasks/0/forEach/tasks/0/forEach/tasks/0/forEach/tasks/0/forEach task "L0": loops and lists are nested deeper than 3`: func(s []task.Spec) {
			inner := s[0].ForEach.Tasks[0]
			for k := range 3 {
				end := task.Spec{Title: fmt.Sprint("End", k), Description: "d", Assignee: "a"}
				inner = task.Spec{Title: fmt.Sprint("L", k), ForEach: &task.ForEach{Input: "leads", As: fmt.Sprint("l", k), MaxItems: 1, Output: end.Title, Tasks: []task.Spec{inner, end}}}
			}
			s[0].ForEach.Tasks[0], s[0].ForEach.Tasks[1].Repeat.Tasks[0].DependsOn = inner, nil
		},
		`/tasks/0/forEach/maxParallel task "Leads": maxParallel is -1`: func(s []task.Spec) { s[0].ForEach.MaxParallel = -1 },
		"have more than 100000 tasks together": func(s []task.Spec) {
			s[0].ForEach.MaxItems = 10000
			s[0].ForEach.Tasks[1].Repeat.MaxRounds = 100
		},
	} {
		specs := sales()
		change(specs)
		_, err := r.plan(specs, &plan.Options{Inputs: []plan.Input{{Name: "leads", Text: `["a"]`}}})
		var problems task.Problems
		require.ErrorAs(t, err, &problems, want)
		var all []string
		for _, p := range problems {
			all = append(all, p.Pointer+" "+p.Error())
		}
		require.Contains(t, strings.Join(all, "\n"), want)
		require.Len(t, problems, 1, all)
	}
}

// A task for each item has many results, so nothing that needs one result can name it.
func TestNamesOfListsWhereOneResultIsNeeded(t *testing.T) {
	t.Parallel()
	mail := task.Spec{Title: "Mail", Description: "d", Assignee: "a", OutputSchema: []byte(okSchema), ForEach: &task.ForEach{Input: "leads", MaxItems: 3}}
	one := task.Spec{Title: "One", Description: "d", Assignee: "a", OutputSchema: []byte(okSchema)}
	when, choice, list := one, one, mail
	when.When = task.Equals("Mail", "/ok", true)
	choice.DependsOn = []task.Ref{{OneOf: []string{"Mail", "Other"}}}
	list.Title, list.ForEach = "List", &task.ForEach{Task: "Mail", Path: "/items", MaxItems: 2}
	loop := func(until, output string) []task.Spec {
		return []task.Spec{{Title: "Loop", Repeat: &task.Repeat{MaxRounds: 2, Until: task.Equals(until, "/ok", true), Output: output, Tasks: []task.Spec{one, mail}}}}
	}
	for pointer, specs := range map[string][]task.Spec{
		"/tasks/1/when":          {mail, when},
		"/tasks/1/dependsOn/0":   {mail, choice},
		"/tasks/1/forEach/task":  {mail, list},
		"/tasks/0/repeat/until":  loop("Mail", "One"),
		"/tasks/0/repeat/output": loop("One", "Mail"),
	} {
		_, err := newTeam(t, cleared("a", label.Secret)).plan(specs, &plan.Options{Inputs: []plan.Input{{Name: "leads", Text: `["x"]`}}})
		var problems task.Problems
		require.ErrorAs(t, err, &problems, pointer)
		require.Len(t, problems, 1, pointer)
		require.Equal(t, pointer, problems[0].Pointer)
		require.Contains(t, problems[0].Message, `"Mail" runs for each item of a list`)
		require.Contains(t, problems[0].Hint, "{each: Mail}")
	}
}
