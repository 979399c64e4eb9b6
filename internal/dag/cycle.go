package dag

import (
	"slices"

	"github.com/dominikbraun/graph"
)

// maxComponents bounds what is handed to the graph library, whose search for
// components is recursive: a cycle of this length takes some hundred MB of
// stack, and a stack that outgrows its limit ends the process.
const maxComponents = 120_000

// Cycles returns one cycle of every group of nodes that depend on each other. Each
// node of a cycle depends on the next one, and the last on the first, which is the
// lowest. Cycles are sorted by their first nodes' groups.
func (g *Graph) Cycles() [][]int32 {
	if len(g.order) == g.Len() {
		return nil
	}
	var cycles [][]int32
	for _, group := range g.groups() {
		cycles = append(cycles, g.cycleWithin(group))
	}
	return cycles
}

// groups returns the strongly connected components of two nodes and more, each
// sorted, in the order of their lowest nodes. Far too many nodes for the library
// count as one group, so that one cycle is named.
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
			continue // between two cycles; a node never depends on itself
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

// core returns the nodes that are missing in the order, without those that merely
// depend on a cycle: Kahn's pass once more, from the sinks.
func (g *Graph) core() []int32 {
	left := make([]bool, g.Len())
	for i := range left {
		left[i] = true
	}
	for _, i := range g.order {
		left[i] = false
	}
	open := make([]int32, len(left)) // dependents left
	var sinks []int32
	for i := range left {
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
	for i := range left {
		if left[i] {
			core = append(core, int32(i))
		}
	}
	return core
}

// cycleWithin returns a cycle within a group, in which every node has a dependency:
// a walk upstream from any of them meets a node twice. The cycle is the shortest one through
// that node.
func (g *Graph) cycleWithin(group []int32) []int32 {
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
	path := g.shortestCycle(at, in)
	first := slices.Index(path, slices.Min(path))
	return append(path[first:len(path):len(path)], path[:first]...)
}

// shortestCycle returns the shortest cycle through a node that is on one (breadth first).
func (g *Graph) shortestCycle(start int32, in map[int32]bool) []int32 {
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
