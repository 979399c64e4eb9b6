package planning_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/planning"
	"github.com/runteam/runteam/task"
)

// A person who approves a plan sees everything that it has, and who gets each task.
func TestADraftHasAllOfAPlan(t *testing.T) {
	t.Parallel()
	text := `Here it is: [{"repeat": {"maxRounds": 2, "tasks": [{"description": "<b>", "title": "A"}]}, "title": "L"},
		{"verify": {"judges": ["b"]}, "title": "B", "zzz": [1], "assignee": "b", "description": "d"}]`
	got, err := planning.Draft(text, []task.Spec{{Repeat: &task.Repeat{Tasks: []task.Spec{{Assignee: "a"}}}}, {Assignee: "b"}})
	require.NoError(t, err)
	require.JSONEq(t, `[{"repeat": {"maxRounds": 2, "tasks": [{"description": "<b>", "title": "A", "assignee": "a"}]}, "title": "L"},
		{"verify": {"judges": ["b"]}, "title": "B", "zzz": [1], "assignee": "b", "description": "d"}]`, got)
	require.Regexp(t, `(?s)"title": "B",.*"description": "d",.*"assignee": "b",.*"verify".*"zzz"`, got)
	require.Contains(t, got, "<b>")
}
