package team_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// Problems with conditions and lists point at where these are written.
func TestProblemsPointAtConditionsAndLists(t *testing.T) {
	t.Parallel()
	schema := []byte(`{"type":"object","properties":{"ok":{"type":"boolean"},"free":{"type":"string"},"to":{"type":"array","items":{"type":"string"}}},"required":["ok","free","to"]}`)
	work := func(title string, set func(*task.Spec)) task.Spec {
		s := task.Spec{Title: title, Description: "d", Assignee: "worker", OutputSchema: schema}
		if set != nil {
			set(&s)
		}
		return s
	}
	group := func(from string, when *task.Condition) task.Spec {
		return task.Spec{Title: "Group", When: when, ForEach: &task.ForEach{Task: from, Path: "/to", MaxItems: 2, Output: "In", Tasks: []task.Spec{work("In", nil), work("In2", func(s *task.Spec) { s.Uses = []task.Use{{Name: "item"}} })}}}
	}
	each := work("A", func(s *task.Spec) { s.DependsOn = []task.Ref{{Each: "Group"}} })
	for name, tt := range map[string]struct {
		tasks []task.Spec
		want  string
	}{
		"the condition of a list":         {[]task.Spec{work("A", nil), group("A", task.Equals("A", "/free", "x"))}, `/tasks/1/when/path`},
		"one of several in it":            {[]task.Spec{work("A", nil), group("A", task.Any(task.Equals("A", "/ok", true), task.Equals("A", "/free", "x")))}, `/tasks/1/when/any/1/path`},
		"the condition, not the list":     {[]task.Spec{work("A", nil), work("C", nil), group("C", task.Equals("A", "/free", "x"))}, `/tasks/2/when/path`},
		"a cycle of conditions":           {[]task.Spec{work("A", func(s *task.Spec) { s.When = task.Equals("B", "/ok", true) }), work("B", func(s *task.Spec) { s.When = task.Equals("A", "/ok", true) })}, `/tasks/0/when`},
		"a cycle through a list":          {[]task.Spec{group("A", nil), each}, `/tasks/0/forEach/path`},
		"a cycle through an item":         {[]task.Spec{work("Group", func(s *task.Spec) { s.ForEach = &task.ForEach{Task: "A", Path: "/to", MaxItems: 2} }), each}, `/tasks/0/forEach/path`},
		"a cycle through its condition":   {[]task.Spec{work("C", nil), group("C", task.Equals("A", "/ok", true)), each}, `/tasks/1/when`},
		"a cycle of dependencies":         {[]task.Spec{work("A", func(s *task.Spec) { s.DependsOn = task.On("B") }), work("B", func(s *task.Spec) { s.DependsOn = task.On("A") })}, `/tasks/0/dependsOn`},
		"an item that another task names": {[]task.Spec{work("A", nil), group("A", nil), work("B", func(s *task.Spec) { s.DependsOn = task.On("In[2]") })}, `/tasks/2/dependsOn/0`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tm, err := team.New(team.Config{Agents: []team.Member{{Name: "worker", Agent: agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, nil })}}})
			require.NoError(t, err)
			_, err = tm.Plan(tt.tasks, nil)
			problems, ok := errors.AsType[task.Problems](err)
			require.True(t, ok, err)
			require.Len(t, problems, 1, problems)
			require.Equal(t, tt.want, problems[0].Pointer, problems[0].Message)
		})
	}
}
