package graphlayout

import "slices"

// assignLayers puts each node into the highest layer below all nodes with an edge to it, and then
// moves nodes towards where most of their edges lead.
func (d *drawing) assignLayers() {
	in := groupBy(d.nodes, len(d.down), func(i int) int { return unless(d.loops[i], d.down[i].To) })
	out := groupBy(d.nodes, len(d.down), func(i int) int { return unless(d.loops[i], d.down[i].From) })
	order := d.topological(&in, &out)
	d.layer = make([]int, d.nodes)
	for _, at := range order {
		for _, e := range in.of(int(at)) {
			d.layer[at] = max(d.layer[at], d.layer[d.down[e].From]+1)
		}
	}
	const passes = 3
	for range passes {
		moved := false
		for _, at := range slices.Backward(order) { // those below have moved before
			moved = d.moveDown(int(at), in.of(int(at)), out.of(int(at))) || moved
		}
		if !moved {
			break
		}
	}
	d.closeGaps()
}

// topological returns the nodes in an order in which each comes after those with an edge to it.
func (d *drawing) topological(in, out *groups) []int32 {
	missing, order := make([]int32, d.nodes), make([]int32, 0, d.nodes)
	for i := range d.nodes {
		if missing[i] = int32(len(in.of(i))); missing[i] == 0 {
			order = append(order, int32(i))
		}
	}
	for k := 0; k < len(order); k++ {
		for _, e := range out.of(int(order[k])) {
			to := d.down[e].To
			if missing[to]--; missing[to] == 0 {
				order = append(order, int32(to))
			}
		}
	}
	return order
}

// moveDown moves a node to just above the nearest node that it leads to, if that makes its edges
// shorter in sum.
func (d *drawing) moveDown(at int, in, out []int32) bool {
	if len(out) <= len(in) {
		return false
	}
	nearest := d.layer[d.down[out[0]].To]
	for _, e := range out {
		nearest = min(nearest, d.layer[d.down[e].To])
	}
	if nearest-1 <= d.layer[at] {
		return false
	}
	d.layer[at] = nearest - 1
	return true
}

// closeGaps removes layers that have no node.
func (d *drawing) closeGaps() {
	used := make([]int, d.height())
	for _, l := range d.layer {
		used[l] = 1
	}
	n := 0
	for l := range used {
		if used[l] > 0 {
			used[l] = n
			n++
		}
	}
	for i, l := range d.layer {
		d.layer[i] = used[l]
	}
}

// height returns how many layers there are.
func (d *drawing) height() int {
	n := 0
	for _, l := range d.layer {
		n = max(n, l+1)
	}
	return n
}

// addLines adds the vertices where edges pass a layer. Edges that pass the most layers are in the lane
// in place of that, if all of them would have too many vertices.
func (d *drawing) addLines() {
	d.useLane()
	for i := range d.down {
		if d.loops[i] || d.lane[i] {
			continue
		}
		top, bottom := d.layer[d.down[i].From], d.layer[d.down[i].To]
		for l := top + 1; l < bottom; l++ {
			d.lines[i] = append(d.lines[i], int32(len(d.layer)))
			d.layer = append(d.layer, l)
		}
	}
	d.layers = make([][]int32, d.height())
	d.place = make([]int32, len(d.layer))
	for v, l := range d.layer {
		d.place[v] = int32(len(d.layers[l]))
		d.layers[l] = append(d.layers[l], int32(v))
	}
	d.connect()
}

// perNode bounds the vertices of lines: so many for each node and each edge.
const perNode = 4

// useLane marks the longest edges, if the lines of all of them have too many vertices.
func (d *drawing) useLane() {
	left := perNode * (d.nodes + len(d.down))
	ofLength := make([]int, d.height())
	for i, e := range d.down {
		if !d.loops[i] {
			ofLength[d.layer[e.To]-d.layer[e.From]]++
		}
	}
	longest := 1
	for ; longest < len(ofLength); longest++ {
		if left -= (longest - 1) * ofLength[longest]; left < 0 {
			break
		}
	}
	for i, e := range d.down {
		d.lane[i] = !d.loops[i] && d.layer[e.To]-d.layer[e.From] >= longest && longest > 1
	}
}

// neighbours holds for each vertex the vertices next to it in one direction.
type neighbours struct{ start, all []int32 }

func (n *neighbours) of(v int32) []int32 { return n.all[n.start[v]:n.start[v+1]] }

// connect finds the neighbours of all vertices.
func (d *drawing) connect() {
	var pairs [][2]int32
	for i, e := range d.down {
		if d.loops[i] || d.lane[i] {
			continue
		}
		at := int32(e.From)
		for _, v := range d.lines[i] {
			pairs = append(pairs, [2]int32{at, v})
			at = v
		}
		pairs = append(pairs, [2]int32{at, int32(e.To)})
	}
	d.below = neighboursOf(len(d.layer), pairs, 0)
	d.above = neighboursOf(len(d.layer), pairs, 1)
}

// neighboursOf returns the neighbours of the vertices at one side of each pair.
func neighboursOf(vertices int, pairs [][2]int32, side int) neighbours {
	g := groupBy(vertices, len(pairs), func(i int) int { return int(pairs[i][side]) })
	for k, i := range g.all {
		g.all[k] = pairs[i][1-side]
	}
	return neighbours(g)
}
