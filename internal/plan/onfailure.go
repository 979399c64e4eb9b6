package plan

import (
	"slices"

	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/task"
)

// acceptedInVain returns the tasks whose failure is accepted and fails the run all the same: every task that depends on
// them needs their result, and does not accept to fail without it.
func acceptedInVain(g *graph.Graph) (tasks []int) {
	failsRun, optional := make([]bool, g.Len()), make([]bool, g.Len())
	for i := range g.Len() {
		t := g.Task(i)
		for j, up := range g.Upstream(i) {
			if t.DependsOn[j].Optional {
				optional[up] = true
			} else if t.OnFailure != task.ContinueRun {
				failsRun[up] = true
			}
		}
	}
	for i := range g.Len() {
		if g.Task(i).OnFailure == task.ContinueRun && failsRun[i] && !optional[i] {
			tasks = append(tasks, i)
		}
	}
	return tasks
}

// acceptsNoAnswer reports whether the run can succeed without an answer: the failures of all tasks whose results make the
// answer are accepted.
func acceptsNoAnswer(g *graph.Graph, outputs []int32) bool {
	return !slices.ContainsFunc(outputs, func(i int32) bool { return g.Task(int(i)).OnFailure != task.ContinueRun })
}
