// Package dag holds directed graphs of numbered nodes: what each node depends on,
// what depends on it, an order, and the cycles that rule an order out.
//
//	b := dag.NewBuilder(2, 1)
//	b.Next()         // node 0 depends on nothing
//	b.Edge(0, false) // node 1 depends on node 0
//	b.Next()
//	g := b.Build()   // g.Order() is [0 1]
package dag

import "slices"

// A Graph is the edges between numbered nodes. The zero value has no nodes. A Graph
// does not change, so any number of goroutines may read it; what its methods return
// must not be written to.
//
// The edges are kept in both directions as index arrays (compressed sparse rows):
// the dependencies of node i are up[upStart[i]:upStart[i+1]]. A hundred thousand
// nodes cost one allocation and stay close together in memory.
type Graph struct {
	upStart, up     []int32
	downStart, down []int32
	optional        []bool  // parallel to down; nil when no edge is optional
	order           []int32 // a topological order
	height          []int32 // longest path to a sink
}

// Len returns the number of nodes.
func (g *Graph) Len() int { return max(len(g.upStart)-1, 0) }

// Upstream returns what node i depends on, in the order in which it was added.
func (g *Graph) Upstream(i int) []int32 { return g.up[g.upStart[i]:g.upStart[i+1]] }

// Downstream returns the nodes that depend on node i directly, in ascending order.
func (g *Graph) Downstream(i int) []int32 { return g.down[g.downStart[i]:g.downStart[i+1]] }

// OptionalDownstream says which of [Graph.Downstream] depend on node i only
// optionally. It is nil when no edge of the whole graph is optional.
func (g *Graph) OptionalDownstream(i int) []bool {
	if g.optional == nil {
		return nil
	}
	return g.optional[g.downStart[i]:g.downStart[i+1]]
}

// Order returns the nodes such that each comes after those that it depends on. Nodes
// without dependencies come first, in ascending order; every other one follows as
// soon as its last dependency has. Nodes on a cycle, and those that depend on one,
// are missing.
func (g *Graph) Order() []int32 { return g.order }

// Height returns the number of edges on the longest path from node i to a sink: how
// much must still happen after it, one node after another. It needs a graph without
// cycles.
func (g *Graph) Height(i int) int { return int(g.height[i]) }

// Sinks returns the nodes on which no other depends, in ascending order.
func (g *Graph) Sinks() []int32 {
	var sinks []int32
	for i := range g.Len() {
		if g.downStart[i] == g.downStart[i+1] {
			sinks = append(sinks, int32(i))
		}
	}
	return sinks
}

// A Builder adds the edges of a graph, node by node in ascending order.
type Builder struct {
	g           Graph
	nodes       int
	seen        []int32 // the last node, counted from 1, that named this one
	anyOptional bool
	optional    []bool // parallel to up, once anyOptional is true
}

// NewBuilder returns a builder with room for that many nodes and edges.
func NewBuilder(nodes, edges int) *Builder {
	slab := make([]int32, 4*nodes+2+2*edges)
	cut := func(size int) []int32 {
		part := slab[:size:size]
		slab = slab[size:]
		return part
	}
	b := &Builder{nodes: nodes}
	g := &b.g
	g.upStart, g.downStart = cut(nodes + 1)[:1], cut(nodes+1)
	g.order, g.height = cut(nodes)[:0], cut(nodes)
	g.up, g.down = cut(edges)[:0], cut(edges)
	b.seen = g.height
	return b
}

// Edge makes the current node depend on node j. It reports false, and adds nothing,
// if the current node depends on j already.
func (b *Builder) Edge(j int, optional bool) bool {
	g := &b.g
	current := int32(len(g.upStart)) // counted from 1
	if b.seen[j] == current {
		return false
	}
	b.seen[j] = current
	if optional && !b.anyOptional {
		b.anyOptional = true
		b.optional = make([]bool, len(g.up), cap(g.up))
	}
	g.up = append(g.up, int32(j))
	if b.anyOptional {
		b.optional = append(b.optional, optional)
	}
	return true
}

// EdgeAgain makes the current node depend on node j, also if it does so already.
func (b *Builder) EdgeAgain(j int, optional bool) {
	b.seen[j] = 0
	b.Edge(j, optional)
}

// Next ends the edges of the current node.
func (b *Builder) Next() { b.g.upStart = append(b.g.upStart, int32(len(b.g.up))) }

// Build returns the graph, after Next was called for every node. The builder must
// not be used afterwards.
func (b *Builder) Build() *Graph {
	g := &b.g
	b.reverse()
	g.sort()
	if len(g.order) == b.nodes {
		g.measure()
	}
	return g
}

// reverse fills down from up, by counting.
func (b *Builder) reverse() {
	g := &b.g
	g.down = g.down[:len(g.up)]
	if b.anyOptional {
		g.optional = make([]bool, len(g.up))
	}
	for _, j := range g.up {
		g.downStart[j+1]++
	}
	for i := range b.nodes {
		g.downStart[i+1] += g.downStart[i]
	}
	next := g.height // scratch: the next free place of each row
	copy(next, g.downStart)
	for i := range b.nodes {
		for k := g.upStart[i]; k < g.upStart[i+1]; k++ {
			j := g.up[k]
			g.down[next[j]] = int32(i)
			if b.anyOptional {
				g.optional[next[j]] = b.optional[k]
			}
			next[j]++
		}
	}
}

// sort fills order (Kahn): order doubles as the queue of nodes without open
// dependencies, so equal inputs give equal orders.
func (g *Graph) sort() {
	open := g.height // scratch: dependencies not yet in order
	for i := range open {
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
