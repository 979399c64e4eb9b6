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
	"github.com/runteam/runteam/task"
)

// drawTasks returns tasks in any order whose dependencies form no cycle.
func drawTasks(t *rapid.T) []task.Task {
	n := rapid.IntRange(0, 30).Draw(t, "n")
	place := rapid.Permutation(seq(n)).Draw(t, "place") // place[i]: where task i stands in a valid order
	tasks := make([]task.Task, n)
	for i := range tasks {
		tasks[i].ID, tasks[i].Title = task.ID(fmt.Sprint("id", i)), fmt.Sprint("t", i)
		for j := range n {
			if place[j] < place[i] && rapid.IntRange(0, 4).Draw(t, "edge") == 0 {
				tasks[i].DependsOn = append(tasks[i].DependsOn, task.Dependency{
					Task: task.ID(fmt.Sprint("id", j)), Optional: rapid.Bool().Draw(t, "optional"),
				})
			}
		}
		slices.Reverse(tasks[i].DependsOn)
	}
	return tasks
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

func TestGraphAgreesWithItsTasks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tasks := drawTasks(t)
		g, err := task.NewGraph(tasks)
		require.NoError(t, err)
		require.Equal(t, len(tasks), g.Len())
		var down [30][]int32
		var optional [30][]bool
		anyOptional := false
		for i, one := range tasks {
			at, ok := g.Index(one.ID)
			require.True(t, ok)
			require.Equal(t, i, at)
			require.Len(t, g.Upstream(i), len(one.DependsOn))
			for k, d := range one.DependsOn {
				j := g.Upstream(i)[k]
				require.Equal(t, d.Task, g.Task(int(j)).ID)
				down[j] = append(down[j], int32(i))
				optional[j] = append(optional[j], d.Optional)
				anyOptional = anyOptional || d.Optional
			}
		}
		var sinks []int32
		for i := range tasks {
			require.ElementsMatch(t, down[i], g.Downstream(i))
			require.True(t, slices.IsSorted(g.Downstream(i)))
			if anyOptional {
				require.Len(t, g.OptionalDownstream(i), len(down[i]))
				for k, j := range g.Downstream(i) {
					require.Equal(t, optional[i][slices.Index(down[i], j)], g.OptionalDownstream(i)[k])
				}
			} else {
				require.Nil(t, g.OptionalDownstream(i))
			}
			height := 0
			for _, j := range down[i] {
				height = max(height, g.Height(int(j))+1)
			}
			require.Equal(t, height, g.Height(i))
			if height == 0 {
				sinks = append(sinks, int32(i))
			}
		}
		require.Equal(t, sinks, g.Sinks())
		requireTopological(t, g)
	})
}

// requireTopological requires that the order has every task after its
// dependencies, and is that of a first-in-first-out queue.
func requireTopological(t require.TestingT, g *task.Graph) {
	place := map[int32]int{}
	for k, i := range g.Order() {
		place[i] = k
	}
	require.Len(t, place, g.Len())
	free := 0
	for i := range g.Len() {
		if len(g.Upstream(i)) == 0 {
			require.EqualValues(t, i, g.Order()[free])
			free++
		}
		for _, j := range g.Upstream(i) {
			require.Less(t, place[j], place[int32(i)])
		}
	}
}

func TestCyclesAreNamedIfAndOnlyIfThereAreAny(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "n")
		tasks := make([]task.Task, n)
		for i := range tasks {
			tasks[i].ID = task.ID(fmt.Sprint(i))
			for j := range n {
				if i != j && rapid.IntRange(0, 6).Draw(t, "edge") == 0 {
					tasks[i].DependsOn = append(tasks[i].DependsOn, task.Dependency{Task: task.ID(fmt.Sprint(j))})
				}
			}
		}
		dependsOn := func(a, b task.ID) bool {
			i := slices.IndexFunc(tasks, func(t task.Task) bool { return t.ID == a })
			return slices.ContainsFunc(tasks[i].DependsOn, func(d task.Dependency) bool { return d.Task == b })
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
		_, err := task.NewGraph(tasks)
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
		_, again := task.NewGraph(slices.Clone(tasks))
		require.Equal(t, err, again)
	})
}

// closure says which task depends on which, directly or not.
func closure(tasks []task.Task) [][]bool {
	reach := make([][]bool, len(tasks))
	for i, one := range tasks {
		reach[i] = make([]bool, len(tasks))
		for _, d := range one.DependsOn {
			j := slices.IndexFunc(tasks, func(t task.Task) bool { return t.ID == d.Task })
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

func TestValidateNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	on := func(ids ...task.ID) (deps []task.Dependency) {
		for _, id := range ids {
			deps = append(deps, task.Dependency{Task: id})
		}
		return deps
	}
	err := task.Validate([]task.Task{
		{ID: "1", Title: "a", DependsOn: on("1")},
		{ID: "2", Title: "b", DependsOn: on("9", "1", "1")},
		{ID: "2", Title: "c"},
	})
	require.EqualError(t, err, `task "a": dependsOn[0]: it depends on itself: remove it
task "b": dependsOn[0]: no task with the id "9"
task "b": dependsOn[2]: "a" is named before: remove it
task "c": id "2" is that of task "b" too`)
	for _, is := range []error{task.ErrSelf, task.ErrUnknown, task.ErrDuplicate} {
		require.ErrorIs(t, err, is)
	}
	require.NoError(t, task.Validate([]task.Task{{ID: "1"}, {ID: "2", DependsOn: on("1")}}))
}

func TestOrder(t *testing.T) {
	t.Parallel()
	tasks := []task.Task{
		{ID: "write", DependsOn: []task.Dependency{{Task: "research"}}}, {ID: "plan"}, {ID: "research"},
	}
	ids, err := task.Order(tasks)
	require.NoError(t, err)
	require.Equal(t, []task.ID{"plan", "research", "write"}, ids)
	tasks[2].DependsOn = []task.Dependency{{Task: "write"}}
	_, err = task.Order(tasks)
	require.ErrorIs(t, err, task.ErrCycle)
	require.ErrorContains(t, err, "dependency cycle")
}

func TestPositionsAndPointersAreWritten(t *testing.T) {
	t.Parallel()
	require.Equal(t, "team.yaml:3", task.Position{File: "team.yaml", Line: 3, Column: 5}.String())
	require.Empty(t, task.Position{}.String())
	require.Equal(t, "/tasks/2/a~1b~0", naming.Pointer("tasks", 2, "a/b~"))
}

func TestACycleWithoutTitlesIsToldByIDs(t *testing.T) {
	t.Parallel()
	require.EqualError(t, &task.CycleError{Path: []task.ID{"a", "b"}}, "dependency cycle: a -> b -> a")
	require.EqualError(t, &task.CycleError{}, "dependency cycle: ")
}
