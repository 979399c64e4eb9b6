package task

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/runteam/runteam/internal/naming"
)

// The conditions of references between tasks. A [Problem] carries one of them.
var (
	ErrUnknown   = errors.New("unknown task")
	ErrAmbiguous = errors.New("ambiguous reference")
	ErrDuplicate = errors.New("duplicate")
	ErrSelf      = errors.New("task depends on itself")
	ErrCycle     = errors.New("dependency cycle") // a [*CycleError] wraps it
	ErrInvalid   = errors.New("invalid value")
	ErrTooMany   = errors.New("too many tasks")
)

// A Graph is tasks and what depends on what, without cycles. [Resolve] and
// [NewGraph] make one; the zero value is the graph of no tasks. A task is
// named by its index, its place in the input.
//
// A Graph may be read by any number of goroutines; only [Graph.Assign] changes
// it. It owns its tasks: what its methods return must not be written to.
type Graph struct {
	tasks []Task
	index table
	edges
	order  []int32 // a topological order
	height []int32 // longest path to a sink
}

// edges are the arrows of a graph in both directions, as arrays of indexes
// (compressed sparse rows): those of task i are up[upStart[i]:upStart[i+1]].
// Two slices of an int32 for each edge are all that a run reads, so a hundred
// thousand tasks cost two allocations and stay close together in memory.
type edges struct {
	upStart, up     []int32
	downStart, down []int32
	optional        []bool // parallel to down; nil when no edge is optional
}

// NewGraph returns the graph of tasks whose dependencies are ids, or [Problems]
// with every duplicate id, unknown or repeated dependency and cycle. It takes
// over the slice.
func NewGraph(tasks []Task) (*Graph, error) {
	links := 0
	for i := range tasks {
		links += len(tasks[i].DependsOn)
	}
	if err := checkCount(max(len(tasks), links)); err != nil {
		return nil, err
	}
	g := &Graph{tasks: tasks, index: newTable(len(tasks))}
	found := &findings{}
	for i := range tasks {
		t := &tasks[i]
		if first, ok := g.enter(i); !ok {
			found.add(i, Problem{
				Pointer: pointer(i, "id"), Subject: subject(i, t.Title), Err: ErrDuplicate,
				Message: fmt.Sprintf("id %q is that of task %q too", t.ID, tasks[first].Title),
			})
		}
	}
	l := newLinker(g, links)
	for i := range tasks {
		t := &tasks[i]
		for k, d := range t.DependsOn {
			j, ok := g.Index(d.Task)
			if !ok {
				found.add(i, Problem{
					Pointer: pointer(i, "dependsOn", k), Subject: subject(i, t.Title), Err: ErrUnknown,
					Message: fmt.Sprintf("dependsOn[%d]: no task with the id %q", k, d.Task),
				})
				continue
			}
			if p, bad := l.link(i, j, k, d.Optional); bad {
				found.add(i, p)
			}
		}
		l.next()
	}
	return l.finish(found)
}

// checkCount keeps indexes and edges within int32.
func checkCount(n int) error {
	if n >= math.MaxInt32 {
		return Problems{{Err: ErrTooMany, Message: fmt.Sprintf("%v: %d tasks or dependencies", ErrTooMany, n)}}
	}
	return nil
}

// Len returns the number of tasks.
func (g *Graph) Len() int { return len(g.tasks) }

// Tasks returns all tasks in the order of the input. The graph owns them.
func (g *Graph) Tasks() []Task { return g.tasks }

// Task returns task i, owned by the graph.
func (g *Graph) Task(i int) *Task { return &g.tasks[i] }

// Assign gives task i to an agent. It is for whoever made the graph, before
// anybody else reads it.
func (g *Graph) Assign(i int, agent string) { g.tasks[i].Assignee = agent }

// Index returns the index of the task with this id.
func (g *Graph) Index(id ID) (i int, ok bool) {
	n, ok := g.index.get(string(id), g.id)
	return int(n), ok
}

// enter makes task i known by its id, unless another one is.
func (g *Graph) enter(i int) (first int, ok bool) {
	n, ok := g.index.put(string(g.tasks[i].ID), int32(i), g.id)
	return int(n), ok
}

func (g *Graph) id(i int32) string { return string(g.tasks[i].ID) }

// Upstream returns the dependencies of task i, parallel to its DependsOn.
func (g *Graph) Upstream(i int) []int32 { return g.up[g.upStart[i]:g.upStart[i+1]] }

// Downstream returns the tasks that depend on task i directly, in the order of the input.
func (g *Graph) Downstream(i int) []int32 { return g.down[g.downStart[i]:g.downStart[i+1]] }

// OptionalDownstream says which of [Graph.Downstream] depend on task i only
// optionally. It is nil when no dependency of the whole graph is optional.
func (g *Graph) OptionalDownstream(i int) []bool {
	if g.optional == nil {
		return nil
	}
	return g.optional[g.downStart[i]:g.downStart[i+1]]
}

// Order returns all tasks such that each comes after its dependencies. Tasks
// without dependencies come first, in the order of the input; every other one
// follows as soon as its last dependency has.
func (g *Graph) Order() []int32 { return g.order }

// Height returns the number of edges on the longest path from task i to a
// sink: how much must still happen after it, one task after another.
func (g *Graph) Height(i int) int { return int(g.height[i]) }

// Sinks returns the tasks on which no other depends, in the order of the input.
func (g *Graph) Sinks() []int32 {
	var sinks []int32
	for i := range g.tasks {
		if g.downStart[i] == g.downStart[i+1] {
			sinks = append(sinks, int32(i))
		}
	}
	return sinks
}

// A linker adds the edges of a graph, task by task in the order of the input.
type linker struct {
	g           *Graph
	seen        []int32 // the last task, from 1, that named this one; later the starts of the rows down
	anyOptional bool
	optional    []bool // parallel to up, once anyOptional is true
}

// newLinker makes all arrays of g in one piece, for at most that many edges.
func newLinker(g *Graph, links int) *linker {
	n := len(g.tasks)
	slab := make([]int32, 4*n+2+2*links)
	cut := func(size int) []int32 {
		part := slab[:size:size]
		slab = slab[size:]
		return part
	}
	g.upStart, g.downStart = cut(n + 1)[:1], cut(n+1)
	g.order, g.height = cut(n)[:0], cut(n)
	g.up, g.down = cut(links)[:0], cut(links)
	return &linker{g: g, seen: g.height}
}

// link adds the edge i → j, which is dependency k of task i, unless it is wrong.
func (l *linker) link(i, j, k int, optional bool) (p Problem, bad bool) {
	fault, err := "", error(nil)
	switch {
	case i == j:
		fault, err = "it depends on itself", ErrSelf
	case l.seen[j] == int32(i)+1:
		fault, err = fmt.Sprintf("%s is named before", naming.Quote(l.g.tasks[j].Title)), ErrDuplicate
	}
	if err != nil {
		return Problem{
			Pointer: pointer(i, "dependsOn", k), Subject: subject(i, l.g.tasks[i].Title), Err: err,
			Message: fmt.Sprintf("dependsOn[%d]: %s", k, fault), Hint: "remove it",
		}, true
	}
	l.seen[j] = int32(i) + 1
	if optional && !l.anyOptional {
		l.anyOptional = true
		l.optional = make([]bool, len(l.g.up), cap(l.g.up))
	}
	l.g.up = append(l.g.up, int32(j))
	if l.anyOptional {
		l.optional = append(l.optional, optional)
	}
	return Problem{}, false
}

// next ends the edges of one task.
func (l *linker) next() { l.g.upStart = append(l.g.upStart, int32(len(l.g.up))) }

// finish turns the edges round, orders the tasks, and returns the graph unless
// something was found.
func (l *linker) finish(found *findings) (*Graph, error) {
	g := l.g
	l.turn()
	g.sort()
	if len(g.order) < len(g.tasks) {
		g.findCycles(found)
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	g.measure()
	return g, nil
}

// turn fills down from up, by counting.
func (l *linker) turn() {
	g := l.g
	g.down = g.down[:len(g.up)]
	if l.anyOptional {
		g.optional = make([]bool, len(g.up))
	}
	for _, j := range g.up {
		g.downStart[j+1]++
	}
	for i := range g.tasks {
		g.downStart[i+1] += g.downStart[i]
	}
	at := g.height // scratch: the next free place of each row
	copy(at, g.downStart)
	for i := range g.tasks {
		for k := g.upStart[i]; k < g.upStart[i+1]; k++ {
			j := g.up[k]
			g.down[at[j]] = int32(i)
			if l.anyOptional {
				g.optional[at[j]] = l.optional[k]
			}
			at[j]++
		}
	}
}

// sort fills order (Kahn): order doubles as the queue of tasks without open
// dependencies, so equal inputs give equal orders.
func (g *Graph) sort() {
	open := g.height // scratch: dependencies not yet in order
	for i := range g.tasks {
		open[i] = g.upStart[i+1] - g.upStart[i]
		if open[i] == 0 {
			g.order = append(g.order, int32(i))
		}
	}
	for head := 0; head < len(g.order); head++ {
		for _, j := range g.Downstream(int(g.order[head])) {
			if open[j]--; open[j] == 0 {
				g.order = append(g.order, j)
			}
		}
	}
}

// measure fills height, from the sinks up.
func (g *Graph) measure() {
	clear(g.height)
	for _, i := range slices.Backward(g.order) {
		for _, j := range g.Upstream(int(i)) {
			g.height[j] = max(g.height[j], g.height[i]+1)
		}
	}
}
