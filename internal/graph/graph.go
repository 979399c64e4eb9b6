// Package graph holds the tasks of a run and what depends on what, by index.
package graph

import (
	"time"

	"github.com/runteam/runteam/internal/dag"
	"github.com/runteam/runteam/task"
)

// A Graph is tasks and what depends on what, without cycles. The zero value is the
// graph of no tasks. A task is named by its index, its place in the input.
//
// A Graph may be read by any number of goroutines; only [Graph.Assign] changes
// it. It owns its tasks: what its methods return must not be written to.
type Graph struct {
	dag.Graph
	tasks []task.Task
	index map[task.ID]int32
}

// Resolve returns the graph of the tasks that [task.Resolve] makes from specs.
func Resolve(specs []task.Spec, at time.Time) (*Graph, error) {
	tasks, err := task.Resolve(specs, at)
	if err != nil {
		return nil, err
	}
	return New(tasks)
}

// New returns the graph of tasks whose dependencies are IDs, or what
// [task.Validate] finds wrong with them. It takes over the slice.
func New(tasks []task.Task) (*Graph, error) {
	edges := 0
	for i := range tasks {
		edges += len(tasks[i].DependsOn)
	}
	g := &Graph{tasks: tasks, index: make(map[task.ID]int32, len(tasks))}
	for i := range tasks {
		g.index[tasks[i].ID] = int32(i)
	}
	if len(g.index) < len(tasks) {
		return nil, task.Validate(tasks)
	}
	b := dag.NewBuilder(len(tasks), edges)
	for i := range tasks {
		for k := range tasks[i].DependsOn {
			d := &tasks[i].DependsOn[k]
			j, ok := g.index[task.ID(d.Task)]
			switch reads := k >= len(tasks[i].DependsOn)-tasks[i].Reads; {
			case !ok || int(j) == i:
				return nil, task.Validate(tasks)
			case reads:
				b.EdgeAgain(int(j), d.Optional)
			case !b.Edge(int(j), d.MayBeMissing()):
				return nil, task.Validate(tasks)
			}
		}
		b.Next()
	}
	g.Graph = *b.Build()
	if len(g.Order()) < len(tasks) {
		return nil, task.Validate(tasks)
	}
	return g, nil
}

// Tasks returns all tasks in the order of the input. The graph owns them.
func (g *Graph) Tasks() []task.Task { return g.tasks }

// Task returns task i, owned by the graph.
func (g *Graph) Task(i int) *task.Task { return &g.tasks[i] }

// Assign gives task i to an agent. Only the owner of the graph calls it, before
// anyone else reads the graph.
func (g *Graph) Assign(i int, agent string) { g.tasks[i].Assignee = agent }

// Index returns the index of the task with this id.
func (g *Graph) Index(id task.ID) (i int, ok bool) {
	n, ok := g.index[id]
	return int(n), ok
}
