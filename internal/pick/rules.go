package pick

import (
	"cmp"
	"slices"
	"sync"
)

// rules are the lists and blocks of a Selection, and what follows from them. Expensive
// results are computed on first use: most selections are only a step to a narrower one.
type rules struct {
	lists   [][]pattern // each sorted, without doubles; the lists too
	excepts [][]pattern // the blocks of each call, likewise
	whole   bool        // every list has the whole, nothing is blocked

	flatten sync.Once // makes:
	allow   []pattern // all of lists in one row, each with its list's number
	blocks  []pattern // all of excepts, sorted, without doubles

	intersect sync.Once // makes:
	meet      []pattern // what all lists cover, or a little more (see [intersection])
}

// newRules takes lists and blocks that are in order. They do not change any more.
func newRules(lists, excepts [][]pattern) *rules {
	return &rules{lists: lists, excepts: excepts, whole: len(excepts) == 0 && !slices.ContainsFunc(lists, lacksWhole)}
}

// and joins what two say. It takes time in the number of their lists, and
// looks at no path twice.
func (r *rules) and(o *rules) *rules {
	if len(r.lists)+len(r.excepts) < len(o.lists)+len(o.excepts) {
		r, o = o, r
	}
	lists, excepts := union(r.lists, o.lists), union(r.excepts, o.excepts)
	if len(lists) == len(r.lists) && len(excepts) == len(r.excepts) {
		return r // o says nothing new
	}
	return &rules{lists: lists, excepts: excepts, whole: r.whole && o.whole}
}

// union joins two ordered rows of lists, so that the order in which they were
// said makes no difference to anything. It returns a itself if b adds nothing.
func union(a, b [][]pattern) [][]pattern {
	out := a
	for _, list := range b {
		i, known := slices.BinarySearchFunc(out, list, compareLists)
		if known {
			continue
		}
		if len(out) == len(a) {
			out = append(make([][]pattern, 0, len(a)+len(b)), a...)
		}
		out = slices.Insert(out, i, list)
	}
	return out
}

// flat returns r with its paths and blocks in one row each.
func (r *rules) flat() *rules {
	r.flatten.Do(func() {
		for i, list := range r.lists {
			for _, p := range list {
				p.list = i
				r.allow = append(r.allow, p)
			}
		}
		r.blocks = ordered(slices.Concat(r.excepts...))
	})
	return r
}

// static returns r with its intersection too.
func (r *rules) static() *rules {
	r.intersect.Do(func() { r.meet = intersection(r.lists) })
	return r.flat()
}

func ordered(patterns []pattern) []pattern {
	out := slices.SortedFunc(slices.Values(patterns), comparePatterns)
	return slices.CompactFunc(out, func(a, b pattern) bool { return a.text == b.text })
}

func comparePatterns(a, b pattern) int { return cmp.Compare(a.text, b.text) }
func compareLists(a, b []pattern) int  { return slices.CompareFunc(a, b, comparePatterns) }

func hasWhole(list []pattern) bool   { return slices.ContainsFunc(list, pattern.isWhole) }
func lacksWhole(list []pattern) bool { return !hasWhole(list) }
