package graph_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/graph"
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
				tasks[i].DependsOn = append(tasks[i].DependsOn, task.Ref{
					Task: fmt.Sprint("id", j), Optional: rapid.Bool().Draw(t, "optional"),
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
		g, err := graph.New(tasks)
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
				require.EqualValues(t, d.Task, g.Task(int(j)).ID)
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
func requireTopological(t require.TestingT, g *graph.Graph) {
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

func TestGraphOfNothing(t *testing.T) {
	t.Parallel()
	g, err := graph.New(nil)
	require.NoError(t, err)
	for _, g := range []*graph.Graph{g, new(graph.Graph)} {
		require.Zero(t, g.Len())
		require.Empty(t, g.Order())
		_, ok := g.Index("x")
		require.False(t, ok)
	}
}
