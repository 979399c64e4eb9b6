package team_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

func TestConditions(t *testing.T) {
	t.Parallel()
	schema := []byte(`{"type":"object","properties":{"team":{"enum":["billing","technical","other"]},"why":{"type":"string"}},"required":["team","why"],"additionalProperties":false}`)
	for name, want := range map[string]map[string]task.Status{
		"billing":   {"Triage": "completed", "Billing": "completed", "Technical": "not_needed", "Other": "not_needed", "Answer": "completed", "Note": "completed"},
		"technical": {"Triage": "completed", "Billing": "not_needed", "Technical": "completed", "Other": "not_needed", "Answer": "completed", "Note": "not_needed"},
		"other":     {"Triage": "completed", "Billing": "not_needed", "Technical": "not_needed", "Other": "completed", "Answer": "completed", "Note": "not_needed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			says := func(text string) agent.Agent {
				return agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
					require.NotContains(t, p.Text(), "because")
					return agent.Reply{Text: text}, nil
				})
			}
			tm, err := team.New(team.Config{Agents: []team.Member{
				{Name: "router", Agent: says(`{"team":"` + name + `","why":"because"}`)}, {Name: "worker", Agent: says("done")},
			}})
			require.NoError(t, err)
			res, err := tm.RunTasks(t.Context(), []task.Spec{
				{Title: "Triage", Description: "d", Assignee: "router", OutputSchema: schema},
				{Title: "Billing", Description: "d", Assignee: "worker", When: task.Equals("Triage", "/team", "billing")},
				{Title: "Technical", Description: "d", Assignee: "worker", When: task.In("Triage", "/team", "technical")},
				{Title: "Other", Description: "d", Assignee: "worker", When: task.Otherwise()},
				{Title: "Answer", Description: "d", Assignee: "worker", DependsOn: []task.Ref{{OneOf: []string{"Billing", "Technical", "Other"}}}},
				{Title: "Note", Description: "d", Assignee: "worker", DependsOn: task.On("Billing")},
			}, nil)
			require.NoError(t, err)
			got := map[string]task.Status{}
			for i := range res.Tasks {
				got[res.Tasks[i].Title] = res.Tasks[i].Status
			}
			require.Equal(t, want, got)
			require.Equal(t, team.StatusOK, res.Status)
			require.NotEmpty(t, res.Output)
		})
	}
}
