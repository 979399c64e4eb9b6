package team_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// The result of a loop is the result of its last round, so an assertion about one of the two holds
// only if it holds for the other. The writer's draft is the result of an inner and an outer loop.
func TestAssertionsAboutTheResultOfALoop(t *testing.T) {
	t.Parallel()
	const broken = "BROKEN"
	tests := map[string]string{
		"task Write /text never reaches publisher":    broken,
		"task Write /note never reaches publisher":    "", // a rule blocks it
		"task Write /text never reaches user":         broken,
		"task Inner /text never reaches publisher":    broken,
		"task Draft /text never reaches publisher":    broken,
		"task Draft /text never reaches critic":       broken, // which reads each draft
		"task Draft /note never reaches critic":       "",     // which is not granted it
		"task Critique /note never reaches publisher": "",
		"task Write /note never derives into critic":  broken, // what the writer wrote of it
	}
	does := agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, nil })
	tm, err := team.New(team.Config{
		Agents: []team.Member{{Name: "writer", Agent: does}, {Name: "critic", Agent: does}, {Name: "publisher", Agent: does}},
		Policy: &handoff.Policy{Rules: []handoff.PairRule{{From: "writer", To: "publisher", Block: []task.Path{"/note"}}}},
	})
	require.NoError(t, err)
	text := []byte(`{"type":"object","properties":{"text":{"type":"string"},"note":{"type":"string"},"ok":{"type":"boolean"}},"required":["text","ok"]}`)
	specs := []task.Spec{
		{Title: "Draft", Repeat: &task.Repeat{MaxRounds: 2, Until: task.Equals("Inner", "/ok", true), Output: "Inner", Tasks: []task.Spec{
			{Title: "Inner", Repeat: &task.Repeat{MaxRounds: 3, Until: task.Equals("Critique", "/ok", true), Output: "Write", Tasks: []task.Spec{
				{Title: "Write", Description: "d", Assignee: "writer", OutputSchema: text},
				{Title: "Critique", Description: "d", Assignee: "critic", OutputSchema: text, DependsOn: []task.Ref{{Task: "Write", Need: []task.Path{"/text"}}}},
			}}},
		}}},
		{Title: "Publish", Description: "d", Assignee: "publisher", DependsOn: task.On("Draft")},
	}
	for assertion, want := range tests {
		p, err := tm.Plan(specs, &team.RunOptions{Assert: []string{assertion}})
		require.NoError(t, err, assertion)
		if want == broken {
			require.Error(t, p.Err(), assertion)
		} else {
			require.NoError(t, p.Err(), assertion)
		}
	}
}
