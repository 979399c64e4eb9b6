package task_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/task"
)

// checked is a task whose result a lawyer and, twice, an editor judge.
func checked(v task.Verify) []task.Spec {
	v.Judges = []task.Judge{{Agent: "lawyer", DependsOn: task.On("Read")}, {Agent: "editor"}, {Agent: "editor"}}
	return []task.Spec{
		{Title: "Read", Description: "d"},
		{Title: "Write", Key: "w", Description: "For all.", Assignee: "writer", DependsOn: task.On("Read"), MaxRetries: 2, Reuse: "never", Verify: &v, Source: provenance.Source{Params: []provenance.Param{{Name: "who", Start: 4, End: 7}}}},
		{Title: "Print", Description: "d", DependsOn: task.On("w")},
	}
}

func TestUnrollOfJudges(t *testing.T) {
	t.Parallel()
	specs, places, err := task.Unroll(checked(task.Verify{}))
	require.NoError(t, err)
	var titles []string
	for i := range specs {
		titles = append(titles, specs[i].Title+" "+places[i].Pointer)
	}
	require.Equal(t, []string{
		"Read /tasks/0",
		"Write#1 /tasks/1", "Write: judge lawyer#1 /tasks/1/verify/judges/0", "Write: judge editor#1 /tasks/1/verify/judges/1", "Write: judge editor 2#1 /tasks/1/verify/judges/2", "Write: verdict#1 /tasks/1/verify/verdict",
		"Write#2 /tasks/1", "Write: judge lawyer#2 /tasks/1/verify/judges/0", "Write: judge editor#2 /tasks/1/verify/judges/1", "Write: judge editor 2#2 /tasks/1/verify/judges/2", "Write: verdict#2 /tasks/1/verify/verdict",
		"Write /tasks/1", "Print /tasks/2",
	}, titles)
	require.Equal(t, task.On("Read"), specs[1].DependsOn)
	require.Equal(t, []string{"Read", "Write#1", "Write: verdict#1"}, []string{specs[6].DependsOn[0].Task, specs[6].DependsOn[1].Task, specs[6].DependsOn[2].Task})
	require.Equal(t, task.Not(task.Equals("Write: verdict#1", "/accepted", true)), specs[6].Instance.Guard)
	judge := specs[2]
	require.Equal(t, []task.Ref{{Task: "Read"}, {Task: "Write#1", Title: "Proposed answer"}}, judge.DependsOn)
	require.Equal(t, 2, judge.MaxRetries)
	require.Equal(t, "never", judge.Reuse)
	at := judge.Source.Params[0]
	require.Equal(t, "all", judge.Description[at.Start:at.End], "the parameter is where it was")
	require.True(t, specs[5].CountsJudges())
	require.Equal(t, 2, specs[5].Instance.Quorum)
	require.False(t, specs[11].CountsJudges())
	require.Equal(t, "w", specs[11].Key)
	tasks, err := task.Resolve(specs, time.Time{})
	require.NoError(t, err)
	require.True(t, tasks[5].IsComputed())

	for onDissent, fails := range map[string]bool{"reject": true, "keep": false} {
		specs, _, err = task.Unroll(checked(task.Verify{OnDissent: onDissent}))
		require.NoError(t, err)
		require.Len(t, specs, 8, "there is one round")
		require.Equal(t, fails, specs[6].Instance.Fails)
	}
}

func TestJudgesThatCannotBeUnrolled(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(s *task.Spec, v *task.Verify){
		"/tasks/1/verify/judges verify: there are no judges":                                                                func(_ *task.Spec, v *task.Verify) { v.Judges = nil },
		"/tasks/1/verify/judges/1 verify: judges[1] names no agent":                                                         func(_ *task.Spec, v *task.Verify) { v.Judges[1].Agent = " " },
		"/tasks/1/verify/judges/1/lens verify: judges[1]: lens: no effect in mode refute":                                   func(_ *task.Spec, v *task.Verify) { v.Judges[1].Lens = "tone" },
		"/tasks/1/verify/judges/1/lens verify: judges[1]: lens: not one clean line: it has a line break (U+000A) at byte 1": func(_ *task.Spec, v *task.Verify) { v.Mode, v.Judges[1].Lens = "lens", "a\nb" },
		`/tasks/1/verify/mode verify: mode: unknown word "lense"`:                                                           func(_ *task.Spec, v *task.Verify) { v.Mode = "lense" },
		`/tasks/1/verify/onDissent verify: onDissent: unknown word "fail"`:                                                  func(_ *task.Spec, v *task.Verify) { v.OnDissent = "fail" },
		"/tasks/1/verify/quorum verify: quorum is 4 of 3 judges":                                                            func(_ *task.Spec, v *task.Verify) { v.Quorum = 4 },
		"/tasks/1/verify/quorum verify: quorum is -1 of 3 judges":                                                           func(_ *task.Spec, v *task.Verify) { v.Quorum = -1 },
		"/tasks/1/verify/maxRounds verify: maxRounds is 101":                                                                func(_ *task.Spec, v *task.Verify) { v.MaxRounds = 101 },
		"/tasks/1/verify/maxRounds verify: no effect with onDissent: keep, which ends after one round":                      func(_ *task.Spec, v *task.Verify) { v.MaxRounds, v.OnDissent = 2, "keep" },
		"/tasks/1/verify/onDissent verify: a task without an agent has the same result in each round":                       func(s *task.Spec, _ *task.Verify) { s.Template = "x" },
		"/tasks/1/verify it has both repeat and verify":                                                                     func(s *task.Spec, _ *task.Verify) { s.Repeat = &task.Repeat{} },
		`/tasks/1/verify/judges/0/dependsOn/0/round unknown round "next"`:                                                   func(_ *task.Spec, v *task.Verify) { v.Judges[0].DependsOn[0].Round = "next" },
		"/tasks/1/verify/judges/0/dependsOn/0/round the task is not in a loop, so it has no previous round":                 func(_ *task.Spec, v *task.Verify) { v.Judges[0].DependsOn[0].Round = task.Previous },
		"/tasks/1/when when: all has no conditions":                                                                         func(s *task.Spec, _ *task.Verify) { s.When = task.All() },
	} {
		specs := checked(task.Verify{})
		change(&specs[1], specs[1].Verify)
		_, _, err := task.Unroll(specs)
		var problems task.Problems
		require.ErrorAs(t, err, &problems, want)
		require.Equal(t, want, problems[0].Pointer+" "+problems[0].Message)
	}
	deep := checked(task.Verify{})[1]
	deep.DependsOn = nil
	deep.Verify.Judges[0].DependsOn = nil
	for range 3 {
		deep = task.Spec{Title: deep.Title + "+", Repeat: &task.Repeat{MaxRounds: 1, Until: task.Equals(deep.Title, "/x", true), Output: deep.Title, Tasks: []task.Spec{deep}}}
	}
	_, _, err := task.Unroll([]task.Spec{deep})
	require.ErrorContains(t, err, "verify: a task with verify is a loop, and loops and lists are nested deeper than 3")
}
