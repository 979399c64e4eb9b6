package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/task"
)

// TestCoordinatorPromptsDoNotSayWhyContextWasWithheld runs a goal with two results
// that the coordinator may not read. The gate holds both for the next task, for
// different reasons. The coordinator reads that this task failed, and the same
// words in both runs.
//
// Requirement: G54.
func TestCoordinatorPromptsDoNotSayWhyContextWasWithheld(t *testing.T) {
	t.Parallel()
	const plan = `[
  {"title": "Make", "description": "Make it.", "assignee": "ada"},
  {"title": "Read", "description": "Read it.", "assignee": "bob", "dependsOn": ["Make"]}
]`
	details := map[string]bool{}
	play := func(result string) []string {
		c := &planner{plans: []string{plan}}
		tm, err := engine.New(engine.Config{
			Agents:      []engine.Member{member("ada", says(result)), member("bob", never(t))},
			Coordinator: &engine.Coordinator{Agent: c},
			Policy: &handoff.Policy{Rules: []handoff.PairRule{
				{From: "ada", To: "bob", Mode: handoff.Scoped, Allow: []task.Path{"/sum"}}, {From: "ada", To: handoff.Coordinator, Mode: handoff.Minimal},
			}},
		})
		require.NoError(t, err)
		res, err := tm.RunTeam(t.Context(), engine.Goal{Text: "Do it."}, &engine.RunOptions{RunID: "run"})
		require.NoError(t, err)
		require.Equal(t, gate.CodeWithheld, of(t, res, "Read").Error.Code)
		details[of(t, res, "Read").Error.Message] = true
		return c.prompts
	}
	prompts := play("a text of ada")
	require.Equal(t, prompts, play(`{"name": "Ada"}`))
	require.Len(t, details, 2, "the caller reads the reason")
	require.Contains(t, prompts[len(prompts)-1], `dependency from "ada" was withheld: rule`)
}
