package task_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/task"
)

// writer is a loop in which an editor says what a writer is to change.
func writer() []task.Spec {
	return []task.Spec{
		{Title: "Research", Description: "d"},
		{Title: "Draft", Repeat: &task.Repeat{
			MaxRounds: 3, Until: task.Equals("Check", "/valid", true), Output: "Write",
			Tasks: []task.Spec{
				{Title: "Write", Description: "d", DependsOn: []task.Ref{{Task: "Research"}, {Task: "Check", Round: task.Previous, Need: []task.Path{"/feedback"}, Optional: true}}},
				{Title: "Check", Description: "d", DependsOn: task.On("Write")},
			},
		}},
		{Title: "Publish", Description: "d", DependsOn: task.On("Draft")},
	}
}

func TestUnroll(t *testing.T) {
	t.Parallel()
	specs, places, err := task.Unroll(writer())
	require.NoError(t, err)
	var titles []string
	for i := range specs {
		titles = append(titles, specs[i].Title+" "+places[i].Pointer)
	}
	require.Equal(t, []string{
		"Research /tasks/0",
		"Write#1 /tasks/1/repeat/tasks/0", "Check#1 /tasks/1/repeat/tasks/1",
		"Write#2 /tasks/1/repeat/tasks/0", "Check#2 /tasks/1/repeat/tasks/1",
		"Write#3 /tasks/1/repeat/tasks/0", "Check#3 /tasks/1/repeat/tasks/1",
		"Draft /tasks/1", "Publish /tasks/2",
	}, titles)
	require.Nil(t, specs[1].Instance.Guard)
	require.Equal(t, task.On("Research"), specs[1].DependsOn, "the first round has no previous one")
	require.Equal(t, []task.Ref{{Task: "Research"}, {Task: "Check#1", Need: []task.Path{"/feedback"}, Optional: true}}, specs[3].DependsOn)
	require.Equal(t, task.Not(task.Equals("Check#1", "/valid", true)), specs[3].Instance.Guard)
	require.Equal(t, []string{"Write#3", "Write#2", "Write#1"}, specs[7].DependsOn[0].OneOf)
	_, err = task.Resolve(specs, at)
	require.NoError(t, err)
}

func TestLoopsThatCannotBeUnrolled(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(s *task.Spec, r *task.Repeat){
		"/tasks/1/repeat/maxRounds maxRounds is 0":                                 func(_ *task.Spec, r *task.Repeat) { r.MaxRounds = 0 },
		"/tasks/1/repeat/maxRounds maxRounds is 101":                               func(_ *task.Spec, r *task.Repeat) { r.MaxRounds = 101 },
		"/tasks/1/repeat/tasks the loop has no tasks":                              func(_ *task.Spec, r *task.Repeat) { r.Tasks = nil },
		`/tasks/1/repeat/output the loop has no task "Nobody"`:                     func(_ *task.Spec, r *task.Repeat) { r.Output = "Nobody" },
		"/tasks/1/repeat/until the loop has no condition to end":                   func(_ *task.Spec, r *task.Repeat) { r.Until = nil },
		`/tasks/1/repeat/until the loop has no task "Research"`:                    func(_ *task.Spec, r *task.Repeat) { r.Until = task.Equals("Research", "/x", 1) },
		"/tasks/1/repeat/until else is no condition of a loop":                     func(_ *task.Spec, r *task.Repeat) { r.Until = task.Otherwise() },
		`/tasks/1/repeat/onLimit onLimit: unknown word "never"`:                    func(_ *task.Spec, r *task.Repeat) { r.OnLimit = "never" },
		"/tasks/1/repeat a loop does not have assignee, tools, maxRetries":         func(s *task.Spec, _ *task.Repeat) { s.Assignee, s.Tools, s.MaxRetries = "a", []string{}, 1 },
		"/tasks/1/repeat/tasks/0/dependsOn/1 the first round has no previous one":  func(_ *task.Spec, r *task.Repeat) { r.Tasks[0].DependsOn[1].Optional = false },
		`/tasks/1/repeat/tasks/0/dependsOn/1/task the loop has no task "Research"`: func(_ *task.Spec, r *task.Repeat) { r.Tasks[0].DependsOn[1].Task = "Research" },
		`/tasks/1/repeat/tasks/0/dependsOn/1/round unknown round "next"`:           func(_ *task.Spec, r *task.Repeat) { r.Tasks[0].DependsOn[1].Round = "next" },
	} {
		specs := writer()
		change(&specs[1], specs[1].Repeat)
		_, _, err := task.Unroll(specs)
		var problems task.Problems
		require.ErrorAs(t, err, &problems, want)
		require.Equal(t, want, problems[0].Pointer+" "+problems[0].Message)
	}
}

// Loops inside of loops number their rounds by all of them, and at most 3 are inside each other.
func TestNestedLoops(t *testing.T) {
	t.Parallel()
	loop := func(title string, inner task.Spec) task.Spec {
		return task.Spec{Title: title, Repeat: &task.Repeat{
			MaxRounds: 2, Until: task.Equals("Check "+title, "/ok", true), Output: inner.Title,
			Tasks: []task.Spec{inner, {Title: "Check " + title, Description: "d", DependsOn: task.On(inner.Title)}},
		}}
	}
	specs := []task.Spec{loop("a", loop("b", task.Spec{Title: "c", Description: "d"}))}
	out, _, err := task.Unroll(specs)
	require.NoError(t, err)
	var titles []string
	for i := range out {
		titles = append(titles, out[i].Title)
	}
	require.Equal(t, []string{
		"c#1.1", "Check b#1.1", "c#1.2", "Check b#1.2", "b#1", "Check a#1",
		"c#2.1", "Check b#2.1", "c#2.2", "Check b#2.2", "b#2", "Check a#2", "a",
	}, titles)
	require.Equal(t, task.On("b#2"), out[11].DependsOn)
	require.Equal(t, task.All(task.Not(task.Equals("Check a#1", "/ok", true))), task.All(out[6].Instance.Guard))
	require.Equal(t, task.Not(task.Equals("Check b#2.1", "/ok", true)), out[8].Instance.Guard)
	_, err = task.Resolve(out, at)
	require.NoError(t, err)
	_, _, err = task.Unroll([]task.Spec{loop("x", loop("y", specs[0]))})
	require.ErrorContains(t, err, "loops and lists are nested deeper than 3")
}

// What is wrong with a condition that only the tasks of a loop have is reported at the loop.
func TestConditionsOfLoops(t *testing.T) {
	t.Parallel()
	for want, bad := range map[string]*task.Condition{
		"not has 0 conditions":       task.Not(nil),
		"all has no conditions":      task.All(),
		"gte has 0 values":           {Op: "gte", Task: "Check", Path: "/valid"},
		"unknown operator":           {Op: "bogus"},
		"write the path of one":      task.Equals("Check", "", true),
		"else is the whole":          task.All(task.Equals("Check", "/valid", true), task.Otherwise()),
		"compares texts, numbers, t": task.Equals("Check", "/valid", []int{1}),
	} {
		specs := writer()
		specs[1].When = bad
		_, _, err := task.Unroll(specs)
		require.ErrorContains(t, err, want)
		specs = writer()
		specs[1].Repeat.Until = bad
		_, _, err = task.Unroll(specs)
		require.ErrorContains(t, err, want)
	}
}

// A loop that takes what other tasks leave runs in these cases only, and what a loop takes is left
// out of what others take.
func TestElseBesideLoops(t *testing.T) {
	t.Parallel()
	specs := writer()
	specs[1].When = task.Otherwise()
	_, _, err := task.Unroll(specs)
	require.ErrorContains(t, err, "it is not clear which values else takes")
	billing := task.Equals("Research", "/team", "billing")
	specs[2].When = billing
	out, _, err := task.Unroll(specs)
	require.NoError(t, err)
	require.Equal(t, task.Not(task.Any(billing)), out[1].Instance.Guard)
	specs[1].When, specs[2].When = billing, task.Otherwise()
	out, _, err = task.Unroll(specs)
	require.NoError(t, err)
	require.Equal(t, task.Not(task.Any(billing)), out[len(out)-1].When)
}

func TestUnrollOfTitlesWithSpaces(t *testing.T) {
	t.Parallel()
	specs := writer()
	specs[1].Title, specs[1].Repeat.Tasks[0].Title = " Draft ", " Write "
	out, _, err := task.Unroll(specs)
	require.NoError(t, err)
	require.Equal(t, "Write#1", out[1].Title)
	require.Equal(t, "Draft", out[1].Instance.Loop)
	_, err = task.Resolve(out, at)
	require.NoError(t, err)
}

func TestListsThatCannotBeUnrolled(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(list, reader *task.Spec){
		`"/groups/*/items" may be several lists`:  func(list, _ *task.Spec) { list.ForEach.Path = "/groups/*/items" },
		"each is beside task, oneOf or round":     func(_, reader *task.Spec) { reader.DependsOn[0].Task = "Plan" },
		"each is beside task, oneOf or round: wr": func(_, reader *task.Spec) { reader.DependsOn[0].Round = task.Previous },
	} {
		specs := []task.Spec{
			{Title: "Plan", Description: "d"},
			{Title: "Do", Description: "d", ForEach: &task.ForEach{Task: "Plan", Path: "/items", MaxItems: 2}},
			{Title: "Read", Description: "d", DependsOn: []task.Ref{{Each: "Do"}}},
		}
		change(&specs[1], &specs[2])
		_, _, err := task.Unroll(specs)
		require.ErrorContains(t, err, want)
	}
}

// Instances that each read all instances of another task are too many, long before they fill the
// memory.
func TestUnrollOfManyReads(t *testing.T) {
	t.Parallel()
	many := task.ForEach{Task: "Plan", Path: "/items", MaxItems: 1_001}
	_, _, err := task.Unroll([]task.Spec{
		{Title: "Plan", Description: "d"},
		{Title: "Do", Description: "d", ForEach: &many},
		{Title: "Compare", Description: "d", ForEach: &many, DependsOn: []task.Ref{{Each: "Do"}}},
	})
	require.ErrorContains(t, err, "read more than 1000000 instances together")
	problems, ok := errors.AsType[task.Problems](err)
	require.True(t, ok)
	require.Len(t, problems, 1)
}

// A condition may read the result that has the list, and others.
func TestConditionsBesideAList(t *testing.T) {
	t.Parallel()
	specs, _, err := task.Unroll([]task.Spec{
		{Title: "Plan", Description: "d"}, {Title: "Check", Description: "d"},
		{Title: "Do", Description: "d", ForEach: &task.ForEach{Task: "Plan", Path: "/items", MaxItems: 1}, When: task.All(task.Equals("Plan", "/kind", "a"), task.Equals("Check", "/ok", true))},
	})
	require.NoError(t, err)
	tasks, err := task.Resolve(specs, at)
	require.NoError(t, err)
	of := tasks[2].DependsOn[1:]
	require.Equal(t, []task.Path{"/kind", "/items/*", "/items/*/**"}, of[0].Need)
	require.Equal(t, task.Path("/items/0"), of[0].Item)
	require.Equal(t, []task.Path{"/ok"}, of[1].Need)
	require.Empty(t, of[1].Item)
}
