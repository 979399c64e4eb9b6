package graphlayout

import "slices"

// sweeps is how often the layers are ordered, from the top and from the bottom in turns.
const sweeps = 8

// orderLayers orders each layer by where the neighbours are, and keeps the order that has the fewest
// crossings. The order of the input is one of them.
func (d *drawing) orderLayers() {
	o := &orderer{drawing: d, key: make([]float64, len(d.layer))}
	d.crossings = o.count()
	best := d.copyLayers()
	for sweep := 0; sweep < sweeps && d.crossings > 0; sweep++ {
		if sweep%2 == 0 {
			for l := 1; l < len(d.layers); l++ {
				o.sort(l, &d.above)
			}
		} else {
			for l := len(d.layers) - 2; l >= 0; l-- {
				o.sort(l, &d.below)
			}
		}
		if n := o.count(); n < d.crossings {
			d.crossings, best = n, d.copyLayers()
		} else if sweep >= sweeps/2 {
			break
		}
	}
	d.layers = best
	for _, layer := range d.layers {
		d.number(layer)
	}
}

func (d *drawing) copyLayers() [][]int32 {
	out := make([][]int32, len(d.layers))
	for l := range out {
		out[l] = slices.Clone(d.layers[l])
	}
	return out
}

// number sets the places of the vertices of a layer.
func (d *drawing) number(layer []int32) {
	for i, v := range layer {
		d.place[v] = int32(i)
	}
}

// An orderer orders the layers of a drawing, with memory that it uses again.
type orderer struct {
	*drawing
	key  []float64
	ends []int32
	tree []int32
}

// sort orders a layer by the mean place of the neighbours. Vertices without any stay where they are.
func (o *orderer) sort(l int, next *neighbours) {
	layer := o.layers[l]
	movable := make([]int32, 0, len(layer))
	for _, v := range layer {
		if near := next.of(v); len(near) > 0 {
			sum := 0.0
			for _, w := range near {
				sum += float64(o.place[w])
			}
			o.key[v] = sum / float64(len(near))
			movable = append(movable, v)
		}
	}
	slices.SortFunc(movable, func(a, b int32) int {
		switch {
		case o.key[a] < o.key[b]:
			return -1
		case o.key[a] > o.key[b]:
			return 1
		}
		return int(o.place[a] - o.place[b])
	})
	k := 0
	for i, v := range layer {
		if len(next.of(v)) > 0 {
			layer[i] = movable[k]
			k++
		}
	}
	o.number(layer)
}

// count counts the crossings between all neighbouring layers.
func (o *orderer) count() (n int) {
	for l := 1; l < len(o.layers); l++ {
		n += o.between(o.layers[l-1], len(o.layers[l]))
	}
	return n
}

// between counts the crossings below a layer: pairs of lines whose ends are in opposite orders. It
// takes them in the order of their upper ends, and counts in a tree of sums how many lower ends
// so far are further right.
func (o *orderer) between(upper []int32, lower int) (n int) {
	o.ends = o.ends[:0]
	for _, v := range upper {
		from := len(o.ends)
		for _, w := range o.below.of(v) {
			o.ends = append(o.ends, o.place[w])
		}
		slices.Sort(o.ends[from:])
	}
	o.tree = append(o.tree[:0], make([]int32, lower+1)...)
	for seen, end := range o.ends {
		left := int32(0)
		for i := int(end) + 1; i > 0; i &= i - 1 {
			left += o.tree[i]
		}
		n += seen - int(left)
		for i := int(end) + 1; i <= lower; i += i & -i {
			o.tree[i]++
		}
	}
	return n
}
