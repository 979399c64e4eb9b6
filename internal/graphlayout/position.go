package graphlayout

import (
	"math"
	"slices"
)

// rounds is how often the vertices are moved towards their neighbours, from the top and from the
// bottom.
const rounds = 3

// position sets the centers of all vertices. It moves each layer to where its neighbours are, as near
// as the order and the gaps allow.
func (d *drawing) position() {
	d.center = make([]float64, len(d.layer))
	for _, layer := range d.layers {
		x := 0.0
		for i, v := range layer {
			if i > 0 {
				x += d.apart(layer[i-1], v)
			}
			d.center[v] = x
		}
		for _, v := range layer {
			d.center[v] -= x / 2
		}
	}
	p := &positioner{drawing: d}
	for range rounds {
		for l := 1; l < len(d.layers); l++ {
			p.move(d.layers[l], &d.above, nil)
		}
		for l := len(d.layers) - 2; l >= 0; l-- {
			p.move(d.layers[l], &d.below, nil)
		}
	}
	for l := range d.layers {
		p.move(d.layers[l], &d.above, &d.below)
	}
}

// apart returns how far the centers of two vertices beside each other have to be apart.
func (d *drawing) apart(left, right int32) float64 {
	gap := lineGap
	if int(left) < d.nodes && int(right) < d.nodes {
		gap = nodeGap
	}
	return float64(d.width(left)+d.width(right))/2 + float64(gap)
}

// width returns how wide a vertex is: a line has no width.
func (d *drawing) width(v int32) int {
	if int(v) < d.nodes {
		return d.sizes[v].W
	}
	return 0
}

// A positioner moves the vertices of layers, with memory that it uses again.
type positioner struct {
	*drawing
	offset []float64
	blocks []block
}

// A block is vertices beside each other that touch: moved together, they are where they want to be on
// average.
type block struct {
	first       int
	sum, weight float64
}

// lineWeight is how much more a line wants to be straight than a node wants to be in the middle.
const lineWeight = 4

// move moves the vertices of a layer to the mean of their neighbours. It solves for the positions with
// the least squares of the distances: from the left to the right, what would overlap is joined to
// a block, whose place is the weighted mean of its members.
func (p *positioner) move(layer []int32, next, also *neighbours) {
	p.offset, p.blocks = p.offset[:0], p.blocks[:0]
	offset := 0.0
	for i, v := range layer {
		if i > 0 {
			offset += p.apart(layer[i-1], v)
		}
		p.offset = append(p.offset, offset)
		want, weight := p.wanted(v, next, also)
		p.blocks = append(p.blocks, block{i, (want - offset) * weight, weight})
		for n := len(p.blocks); n > 1 && p.blocks[n-1].mean() < p.blocks[n-2].mean(); n-- {
			last := p.blocks[n-1]
			p.blocks = p.blocks[:n-1]
			p.blocks[n-2].sum += last.sum
			p.blocks[n-2].weight += last.weight
		}
	}
	for k, b := range p.blocks {
		end := len(layer)
		if k+1 < len(p.blocks) {
			end = p.blocks[k+1].first
		}
		for i := b.first; i < end; i++ {
			p.center[layer[i]] = b.mean() + p.offset[i]
		}
	}
}

func (b block) mean() float64 { return b.sum / b.weight }

// wanted returns where a vertex wants to be, and how much. One without neighbours wants to stay.
func (p *positioner) wanted(v int32, next, also *neighbours) (at, weight float64) {
	sum, n := 0.0, 0
	for _, of := range [...]*neighbours{next, also} {
		if of == nil {
			continue
		}
		for _, w := range of.of(v) {
			sum += p.center[w]
			n++
		}
	}
	weight = 1
	if int(v) >= p.nodes {
		weight = lineWeight
	}
	if n == 0 {
		return p.center[v], weight / lineWeight
	}
	return sum / float64(n), weight
}

// layout returns the drawing with whole coordinates from 0, 0 on.
func (d *drawing) layout() *Layout {
	l := &Layout{Nodes: make([]Place, d.nodes), Edges: make([][]Point, len(d.edges)), Crossings: d.crossings}
	left, right := math.Inf(1), math.Inf(-1)
	for v := range d.layer {
		half := float64(d.width(int32(v))) / 2
		left, right = min(left, d.center[v]-half), max(right, d.center[v]+half)
	}
	if d.nodes == 0 {
		return l
	}
	top, high := d.rows()
	last := len(top) - 1
	l.Width, l.Height = int(math.Ceil(right-left)), top[last]+high[last]
	for i := range d.nodes {
		at := d.layer[i]
		l.Nodes[i] = Place{at, int(math.Round(d.center[i] - float64(d.sizes[i].W)/2 - left)), top[at] + (high[at]-d.sizes[i].H)/2}
	}
	for i, e := range d.edges {
		if d.loops[i] {
			continue
		}
		if d.lane[i] {
			l.Width = int(math.Ceil(right-left)) + lineGap
		}
		l.Edges[i] = d.points(l, i, top, high, left)
		if e != d.down[i] {
			slices.Reverse(l.Edges[i])
		}
	}
	return l
}

// points returns the points of an edge, from the upper node to the lower one: through each layer it goes
// straight down.
func (d *drawing) points(l *Layout, i int, top, high []int, left float64) []Point {
	from, to := d.down[i].From, d.down[i].To
	start, end := l.Nodes[from].X+d.sizes[from].W/2, l.Nodes[to].X+d.sizes[to].W/2
	above, below := top[d.layer[from]]+high[d.layer[from]], top[d.layer[to]]
	points := []Point{{start, l.Nodes[from].Y + d.sizes[from].H}, {start, above}}
	if d.lane[i] {
		points = append(points, Point{l.Width, above + layerGap/2}, Point{l.Width, below - layerGap/2})
	}
	for _, v := range d.lines[i] {
		x, at := int(math.Round(d.center[v]-left)), d.layer[v]
		points = append(points, Point{x, top[at]}, Point{x, top[at] + high[at]})
	}
	return straight(append(points, Point{end, below}, Point{end, l.Nodes[to].Y}))
}

// rows returns where each layer begins, and how high it is.
func (d *drawing) rows() (top, high []int) {
	top, high = make([]int, len(d.layers)), make([]int, len(d.layers))
	for i := range d.nodes {
		high[d.layer[i]] = max(high[d.layer[i]], d.sizes[i].H)
	}
	for l := 1; l < len(top); l++ {
		top[l] = top[l-1] + high[l-1] + layerGap
	}
	return top, high
}

// straight leaves out the points that are on the line between those around them.
func straight(points []Point) []Point {
	out := points[:1]
	for i := 1; i < len(points)-1; i++ {
		a, b, c := out[len(out)-1], points[i], points[i+1]
		if (b.X-a.X)*(c.Y-b.Y) != (c.X-b.X)*(b.Y-a.Y) {
			out = append(out, b)
		}
	}
	return append(out, points[len(points)-1])
}
