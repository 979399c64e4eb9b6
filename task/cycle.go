package task

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dominikbraun/graph"
)

// A CycleError lists the tasks on a cycle, each depending on the next and the
// last on the first.
type CycleError struct {
	Path   []ID
	Titles []string // parallel to Path
}

// Error reads like `dependency cycle: a -> b -> a`, with titles. The middle of
// a long cycle is left out.
func (e *CycleError) Error() string { return fmt.Sprintf("%v: %s", ErrCycle, e.String()) }

// Unwrap returns [ErrCycle].
func (e *CycleError) Unwrap() error { return ErrCycle }

// String returns the cycle alone: `a -> b -> a`.
func (e *CycleError) String() string {
	const head, tail = 5, 3
	names := e.Titles
	if len(names) != len(e.Path) {
		names = make([]string, len(e.Path))
		for i, id := range e.Path {
			names[i] = string(id)
		}
	}
	if len(names) == 0 {
		return ""
	}
	shown := slices.Clone(names)
	if len(names) > head+tail+1 {
		gap := fmt.Sprintf("(%d more)", len(names)-head-tail)
		shown = slices.Concat(names[:head], []string{gap}, names[len(names)-tail:])
	}
	return strings.Join(append(shown, names[0]), " -> ")
}

// maxComponents bounds what is handed to the graph library, whose search for
// components is recursive: a cycle of this length takes some hundred MB of
// stack, and a stack that outgrows its limit ends the process.
const maxComponents = 120_000

// findCycles names a cycle in every group of tasks that wait for each other.
// Kahn's order has left out exactly these groups and what depends on them.
func (g *Graph) findCycles(found *findings) {
	for _, group := range g.groups() {
		path := g.walk(group)
		e := &CycleError{Path: make([]ID, len(path)), Titles: make([]string, len(path))}
		for k, i := range path {
			e.Path[k], e.Titles[k] = g.tasks[i].ID, g.tasks[i].Title
		}
		first := path[0]
		found.add(int(first), Problem{
			Pointer: pointer(int(first), "dependsOn"), Subject: subject(int(first), g.tasks[first].Title),
			Message: e.Error(), Hint: "remove one of these dependencies", Err: e,
		})
	}
}

// groups returns the strongly connected components of what Kahn left over, in
// the order of the input. Far too many tasks for the library count as one
// group, so that one cycle is named.
func (g *Graph) groups() [][]int32 {
	left := g.core()
	if len(left) > maxComponents {
		return [][]int32{left}
	}
	// The library takes the zero value of a vertex for the end of a component,
	// so vertices count from 1.
	d := graph.New(func(i int32) int32 { return i + 1 }, graph.Directed())
	in := make(map[int32]bool, len(left))
	for _, i := range left {
		in[i] = true
		_ = d.AddVertex(i) // cannot exist yet
	}
	for _, i := range left {
		for _, j := range g.Upstream(int(i)) {
			if in[j] {
				_ = d.AddEdge(i+1, j+1) // no edge is there twice
			}
		}
	}
	components, _ := graph.StronglyConnectedComponents(d) // fails on undirected graphs only
	var groups [][]int32
	for _, c := range components {
		if len(c) < 2 {
			continue // between two cycles; a self-dependency is no edge here
		}
		for k := range c {
			c[k]--
		}
		slices.Sort(c)
		groups = append(groups, c)
	}
	slices.SortFunc(groups, func(a, b []int32) int { return int(a[0] - b[0]) })
	return groups
}

// core returns the tasks that Kahn left over, without those that merely depend
// on a cycle: Kahn's pass once more, from the sinks.
func (g *Graph) core() []int32 {
	left := make([]bool, len(g.tasks))
	for i := range left {
		left[i] = true
	}
	for _, i := range g.order {
		left[i] = false
	}
	open := make([]int32, len(g.tasks)) // dependents left
	var sinks []int32
	for i := range g.tasks {
		open[i] = int32(len(g.Downstream(i)))
		if left[i] && open[i] == 0 {
			sinks = append(sinks, int32(i))
		}
	}
	for head := 0; head < len(sinks); head++ {
		left[sinks[head]] = false
		for _, j := range g.Upstream(int(sinks[head])) {
			if open[j]--; open[j] == 0 && left[j] {
				sinks = append(sinks, j)
			}
		}
	}
	var core []int32
	for i := range g.tasks {
		if left[i] {
			core = append(core, int32(i))
		}
	}
	return core
}

// walk returns a cycle within a group, in which every task has a dependency:
// from any of them upstream the way must cross itself. The shortest way back
// from there is the cycle, told from its first task in the input.
func (g *Graph) walk(group []int32) []int32 {
	in := make(map[int32]bool, len(group))
	for _, i := range group {
		in[i] = true
	}
	seen := make(map[int32]bool)
	at := group[0]
	for !seen[at] {
		seen[at] = true
		for _, j := range g.Upstream(int(at)) {
			if in[j] {
				at = j
				break
			}
		}
	}
	path := g.back(at, in)
	first := slices.Index(path, slices.Min(path))
	return append(path[first:len(path):len(path)], path[:first]...)
}

// back returns the shortest cycle through a task that is on one (breadth first).
func (g *Graph) back(start int32, in map[int32]bool) []int32 {
	from := make(map[int32]int32)
	queue := []int32{start}
	for head := 0; ; head++ {
		i := queue[head]
		for _, j := range g.Upstream(int(i)) {
			if j == start {
				path := []int32{i}
				for i != start {
					i = from[i]
					path = append(path, i)
				}
				slices.Reverse(path)
				return path
			}
			if _, ok := from[j]; in[j] && !ok {
				from[j] = i
				queue = append(queue, j)
			}
		}
	}
}
