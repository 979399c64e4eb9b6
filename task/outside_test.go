package task_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/task"
)

// Other tasks read the result of a loop, of judges or of a list, and not that of one round, which the
// loop may replace and the judges may reject.
func TestOtherTasksNameNoRoundAndNoItem(t *testing.T) {
	t.Parallel()
	specs := func(reader task.Spec) []task.Spec {
		reader.Title, reader.Description = "Read", "d"
		return []task.Spec{
			{Title: "Loop", Repeat: &task.Repeat{MaxRounds: 2, Until: task.Equals("Draft", "/done", true), Output: "Draft", Tasks: []task.Spec{{Title: "Draft", Description: "d"}}}},
			{Title: "Answer", Description: "d", Verify: &task.Verify{Judges: []task.Judge{{Agent: "lawyer"}}}},
			{Title: "Do", Description: "d", ForEach: &task.ForEach{Input: "list", MaxItems: 2}},
			{Title: "Plain", Key: "plain", Description: "d"},
			reader,
		}
	}
	const loop, judges, list = `depend on "Loop", whose result is that of its last round`, `depend on "Answer", whose result is that of its last round`, "depend on all items with each, or on the task that does"
	for _, tt := range []struct {
		name     string
		spec     task.Spec
		at, hint string
	}{
		{"a round", task.Spec{DependsOn: task.On("Draft#1")}, "/dependsOn/0", loop},
		{"another spelling", task.Spec{DependsOn: task.On("Plain", " DRAFT#2")}, "/dependsOn/1", loop},
		{"the id of a round", task.Spec{DependsOn: task.On(string(task.NewID("Draft#1")))}, "/dependsOn/0", loop},
		{"an alternative", task.Spec{DependsOn: []task.Ref{{OneOf: []string{"Plain", "Draft#2"}}}}, "/dependsOn/0", loop},
		{"an answer before the judges accept it", task.Spec{DependsOn: task.On("Answer#1")}, "/dependsOn/0", judges},
		{"a judge", task.Spec{DependsOn: task.On("Answer: judge lawyer#1")}, "/dependsOn/0", judges},
		{"a verdict", task.Spec{DependsOn: task.On("Answer: verdict#2")}, "/dependsOn/0", judges},
		{"an item", task.Spec{DependsOn: task.On("Do[2]")}, "/dependsOn/0", list},
		{"a condition", task.Spec{When: task.Equals("Draft#1", "/done", true)}, "/when", loop},
		{"part of a condition", task.Spec{When: task.Any(task.Exists("Plain", "/x"), task.Not(task.Exists("Draft#1", "/x")))}, "/when", loop},
		{"in a list", task.Spec{DependsOn: task.On("Do[1]"), ForEach: &task.ForEach{Input: "other", MaxItems: 2}}, "/dependsOn/0", list},
		{"of a judge", task.Spec{Verify: &task.Verify{Judges: []task.Judge{{Agent: "lawyer", DependsOn: task.On("Draft#1")}}}}, "/verify/judges/0/dependsOn/0", loop},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := task.Unroll(specs(tt.spec))
			var problems task.Problems
			require.ErrorAs(t, err, &problems)
			require.Equal(t, "/tasks/4"+tt.at, problems[0].Pointer)
			require.Equal(t, tt.hint, problems[0].Hint)
			require.ErrorIs(t, err, task.ErrInvalid)
		})
	}
	for name, spec := range map[string]task.Spec{
		"titles": {DependsOn: task.On("Loop", "Answer", "plain")},
		"ids":    {DependsOn: task.On(string(task.NewID("Loop")), string(task.NewID("Plain")))},
		"all":    {DependsOn: []task.Ref{{Each: "Do"}}, When: task.Equals("Loop", "/done", true)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := task.Unroll(specs(spec))
			require.NoError(t, err)
		})
	}
}
