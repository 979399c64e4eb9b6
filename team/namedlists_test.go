package team_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

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
		_, err := agentsNamed(t, `{"ok":true}`, "a").Plan(specs, &team.RunOptions{Inputs: []team.Input{{Name: "leads", Text: `["x"]`}}})
		var problems task.Problems
		require.ErrorAs(t, err, &problems, pointer)
		require.Len(t, problems, 1, pointer)
		require.Equal(t, pointer, problems[0].Pointer)
		require.Contains(t, problems[0].Message, `"Mail" runs for each item of a list`)
		require.Contains(t, problems[0].Hint, "{each: Mail}")
	}
}
