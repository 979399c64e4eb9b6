package assign

import (
	"math/bits"

	"github.com/runteam/runteam/internal/graph"
)

// block is how many dependents are counted at the same time: the bits of a cache line.
const block = 512

// A row is the tasks of one block that depend on a task, a bit for each. It
// also holds the task itself.
type row [block / 64]uint64

// How much of its block a row contains.
const (
	none uint8 = iota
	some
	full
)

// dependents returns for each task how many others depend on it, directly or
// not.
//
// Exact counts take the set of dependents of every task. A bit for each pair of
// a hundred thousand tasks would fill a gigabyte, so the sets are found for one block of
// dependents after another, in rows of 64 bytes for each task. Within a block
// a task's row is the union of those of its direct dependents, which come
// after it in the order. Most rows are empty or full, and need not be looked at.
func dependents(g *graph.Graph) []int32 {
	d := newDescent(g)
	for first := 0; first < len(d.order); first += block {
		d.sweep(first, min(first+block, len(d.order)))
	}
	count := make([]int32, len(d.order))
	for at, i := range d.order {
		count[i] = d.count[at] - 1 // it does not depend on itself
	}
	return count
}

// A descent is a graph being counted, whose tasks are numbered by their places in its order,
// so that what is close together in the graph is so in memory.
type descent struct {
	order       []int32
	start, down []int32 // the direct dependents of each place
	count       []int32 // found so far
	rows        []row
	filled      []uint8
}

func newDescent(g *graph.Graph) *descent {
	n := g.Len()
	d := &descent{
		order: g.Order(), start: make([]int32, 1, n+1), count: make([]int32, n),
		rows: make([]row, n), filled: make([]uint8, n),
	}
	place := make([]int32, n)
	for at, i := range d.order {
		place[i] = int32(at)
	}
	for _, i := range d.order {
		for _, j := range g.Downstream(int(i)) {
			d.down = append(d.down, place[j])
		}
		d.start = append(d.start, int32(len(d.down)))
	}
	return d
}

// sweep counts the dependents in [first, end) of all tasks before end, from
// the last to the first.
func (d *descent) sweep(first, end int) {
	for at := end - 1; at >= 0; at-- {
		r := &d.rows[at]
		*r, d.filled[at] = row{}, none
		if at >= first {
			r[(at-first)/64], d.filled[at] = 1<<((at-first)%64), some
		}
		for _, j := range d.down[d.start[at]:d.start[at+1]] {
			if int(j) < end && d.filled[at] != full {
				d.unite(at, int(j))
			}
		}
		d.tally(at, end-first)
	}
}

// unite adds the row of a direct dependent to that of a task.
func (d *descent) unite(at, j int) {
	switch d.filled[j] {
	case full:
		d.filled[at] = full // the row itself need not be written
	case some:
		d.filled[at] = some
		r, s := &d.rows[at], &d.rows[j]
		for k := range r {
			r[k] |= s[k]
		}
	}
}

// tally counts a row whose block has that many tasks.
func (d *descent) tally(at, size int) {
	n := size
	if d.filled[at] != full {
		if n = 0; d.filled[at] == none {
			return
		}
		for _, word := range d.rows[at] {
			n += bits.OnesCount64(word)
		}
		if n == size {
			d.filled[at] = full
		}
	}
	d.count[at] += int32(n)
}
