package task_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/task"
)

func TestCyclesAreNamedIfAndOnlyIfThereAreAny(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "n")
		tasks := make([]task.Task, n)
		for i := range tasks {
			tasks[i].ID = task.ID(fmt.Sprint(i))
			for j := range n {
				if i != j && rapid.IntRange(0, 6).Draw(t, "edge") == 0 {
					tasks[i].DependsOn = append(tasks[i].DependsOn, task.Ref{Task: fmt.Sprint(j)})
				}
			}
		}
		dependsOn := func(a, b task.ID) bool {
			i := slices.IndexFunc(tasks, func(t task.Task) bool { return t.ID == a })
			return slices.ContainsFunc(tasks[i].DependsOn, func(d task.Ref) bool { return d.Task == string(b) })
		}
		reach := closure(tasks)
		groups := map[string]bool{} // the strongly connected components, by their members
		for i := range tasks {
			if reach[i][i] {
				var members strings.Builder
				for j := range tasks {
					if reach[i][j] && reach[j][i] {
						members.WriteString(fmt.Sprint(j, ","))
					}
				}
				groups[members.String()] = true
			}
		}
		err := task.Validate(tasks)
		problems, _ := errors.AsType[task.Problems](err)
		require.Len(t, problems, len(groups))
		for _, p := range problems {
			cycle, ok := errors.AsType[*task.CycleError](p)
			require.True(t, ok)
			for k, id := range cycle.Path {
				require.True(t, dependsOn(id, cycle.Path[(k+1)%len(cycle.Path)]))
			}
			require.Len(t, slices.Compact(slices.Sorted(slices.Values(cycle.Path))), len(cycle.Path))
		}
		again := task.Validate(slices.Clone(tasks))
		require.Equal(t, err, again)
	})
}

// closure says which task depends on which, directly or not.
func closure(tasks []task.Task) [][]bool {
	reach := make([][]bool, len(tasks))
	for i, one := range tasks {
		reach[i] = make([]bool, len(tasks))
		for _, d := range one.DependsOn {
			j := slices.IndexFunc(tasks, func(t task.Task) bool { return string(t.ID) == d.Task })
			reach[i][j] = true
		}
	}
	for k := range tasks {
		for i := range tasks {
			for j := range tasks {
				reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
			}
		}
	}
	return reach
}

func TestValidateReportsProblems(t *testing.T) {
	t.Parallel()
	on := func(ids ...string) (deps []task.Ref) {
		for _, id := range ids {
			deps = append(deps, task.Ref{Task: id})
		}
		return deps
	}
	err := task.Validate([]task.Task{
		{ID: "1", Spec: task.Spec{Title: "a", DependsOn: on("1")}},
		{ID: "2", Spec: task.Spec{Title: "b", DependsOn: on("9", "1", "1")}},
		{ID: "2", Spec: task.Spec{Title: "c"}},
	})
	require.EqualError(t, err, `task "a": dependsOn[0]: it depends on itself: remove it
task "b": dependsOn[0]: no task with the id "9"
task "b": dependsOn[2]: "a" is named before: remove it
task "c": id "2" is that of task "b" too`)
	for _, is := range []error{task.ErrSelf, task.ErrUnknown, task.ErrDuplicate} {
		require.ErrorIs(t, err, is)
	}
	require.NoError(t, task.Validate([]task.Task{{ID: "1"}, {ID: "2", Spec: task.Spec{DependsOn: on("1")}}}))
}

func TestOrder(t *testing.T) {
	t.Parallel()
	tasks := []task.Task{
		{ID: "write", Spec: task.Spec{DependsOn: []task.Ref{{Task: "research"}}}}, {ID: "plan"}, {ID: "research"},
	}
	ids, err := task.Order(tasks)
	require.NoError(t, err)
	require.Equal(t, []task.ID{"plan", "research", "write"}, ids)
	tasks[2].DependsOn = []task.Ref{{Task: "write"}}
	_, err = task.Order(tasks)
	require.ErrorIs(t, err, task.ErrCycle)
	require.ErrorContains(t, err, "dependency cycle")
}

func TestPositionsAndPointersAreWritten(t *testing.T) {
	t.Parallel()
	require.Equal(t, "team.yaml:3", provenance.Position{File: "team.yaml", Line: 3, Column: 5}.String())
	require.Empty(t, provenance.Position{}.String())
	require.Equal(t, "/tasks/2/a~1b~0", naming.Pointer("tasks", 2, "a/b~"))
}

func TestCycleWithoutTitlesIsNamedByIDs(t *testing.T) {
	t.Parallel()
	require.EqualError(t, &task.CycleError{Path: []task.ID{"a", "b"}}, "dependency cycle: a -> b -> a")
	require.EqualError(t, &task.CycleError{}, "dependency cycle")
}
