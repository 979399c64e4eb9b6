// Package graphlayout says where the nodes of a graph go, in layers from top to bottom.
//
//	l := graphlayout.New(sizes, edges)
//	l.Nodes[0].X, l.Edges[0] // the corner of a node, the points of a line
//
// An edge points from a node to one in a lower layer. The order in each layer has few crossings,
// and lines that pass a layer pass between its nodes. Equal arguments give an equal layout. The
// time is about proportional to nodes and edges: edges that would pass too many layers share a lane
// at the right of the nodes.
package graphlayout

// A Size is how large a node is drawn.
type Size struct{ W, H int }

// An Edge is a line from one node to another, by index.
type Edge struct{ From, To int }

// A Point is a point of a line.
type Point struct{ X, Y int }

// A Place is where a node is drawn: its layer from 0, and its upper left corner.
type Place struct{ Layer, X, Y int }

// A Layout is a drawing of a graph, from 0, 0 to Width, Height.
type Layout struct {
	Width, Height int
	Nodes         []Place
	Edges         [][]Point // from the lower side of one node to the upper side of the other; nil for an edge to the node itself
	Crossings     int       // of lines between neighbouring layers, without those in the lane
}

// The distances between what is drawn.
const (
	nodeGap  = 28 // between nodes of a layer
	lineGap  = 14 // between a line and what is beside it
	layerGap = 56 // between layers
)

// New lays out a graph. In a graph with cycles, an edge that closes one is drawn upwards. It panics if
// an edge names no node.
func New(nodes []Size, edges []Edge) *Layout {
	d := newDrawing(nodes, edges)
	d.assignLayers()
	d.addLines()
	d.orderLayers()
	d.position()
	return d.layout()
}

// A drawing is a graph while it is laid out. Its vertices are the nodes, then the places where
// lines pass a layer.
type drawing struct {
	sizes []Size
	edges []Edge
	down  []Edge // the edges as they are drawn, from top to bottom; those to the node itself are empty
	loops []bool // of each edge: whether it is to the node itself
	nodes int

	layer  []int     // of each vertex
	layers [][]int32 // the vertices of each layer, in order
	place  []int32   // of each vertex, its index in its layer
	center []float64 // of each vertex
	lines  [][]int32 // of each edge, the vertices that it passes; nil if it passes none or is in the lane
	lane   []bool    // of each edge: whether it is in the lane

	above, below neighbours // of each vertex in the neighbouring layers
	crossings    int
}

// newDrawing returns the drawing of a graph with all its edges pointing down.
func newDrawing(nodes []Size, edges []Edge) *drawing {
	d := &drawing{
		sizes: nodes, edges: edges, nodes: len(nodes),
		down: make([]Edge, len(edges)), loops: make([]bool, len(edges)), lane: make([]bool, len(edges)), lines: make([][]int32, len(edges)),
	}
	for i, e := range edges {
		if e.From == e.To {
			d.loops[i] = true
			_ = nodes[e.From] // it must exist
		}
		d.down[i] = e
	}
	for _, i := range d.closing() {
		d.down[i] = Edge{edges[i].To, edges[i].From}
	}
	return d
}

// closing returns the edges that close a cycle, found by a walk from the first node on.
func (d *drawing) closing() (found []int32) {
	const (
		unseen = iota
		open
		done
	)
	out := groupBy(d.nodes, len(d.down), func(i int) int { return unless(d.loops[i], d.down[i].From) })
	state, next := make([]uint8, d.nodes), make([]int32, d.nodes)
	var stack []int32
	for root := range d.nodes {
		if state[root] != unseen {
			continue
		}
		state[root] = open
		stack = append(stack[:0], int32(root))
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			list := out.of(int(at))
			if int(next[at]) == len(list) {
				state[at], stack = done, stack[:len(stack)-1]
				continue
			}
			edge := list[next[at]]
			next[at]++
			switch to := d.down[edge].To; state[to] {
			case unseen:
				state[to] = open
				stack = append(stack, int32(to))
			case open:
				found = append(found, edge)
			}
		}
	}
	return found
}

// unless returns owner, or -1 if nothing is true.
func unless(nothing bool, owner int) int {
	if nothing {
		return -1
	}
	return owner
}

// groups hold for each owner the indices of what belongs to it.
type groups struct{ start, all []int32 }

// groupBy groups n things by owner. A thing with a negative owner belongs to none.
func groupBy(owners, n int, owner func(int) int) groups {
	g := groups{start: make([]int32, owners+2)}
	for i := range n {
		if o := owner(i); o >= 0 {
			g.start[o+2]++
		}
	}
	for k := 2; k < len(g.start); k++ {
		g.start[k] += g.start[k-1]
	}
	g.all = make([]int32, g.start[len(g.start)-1])
	for i := range n {
		if o := owner(i); o >= 0 {
			g.all[g.start[o+1]] = int32(i)
			g.start[o+1]++
		}
	}
	return g
}

func (g *groups) of(owner int) []int32 { return g.all[g.start[owner]:g.start[owner+1]] }
