package flow

import (
	"cmp"
	"slices"
)

// ways indexes the edges and sights of each source that deliver anything, and the
// sources of each task. Their order does not depend on that of the graph, so that
// equal graphs give equal answers.
type ways struct {
	g      *Graph
	edges  lists                           // of each source, the edges that deliver it
	onward lists                           // the same, of what the task that writes the source has read
	sights lists                           // of each source, the sights that show it
	writes lists                           // of each task, the sources that it writes
	level  struct{ edges, sights []Reach } // what each delivers
}

func newWays(g *Graph) *ways {
	w := &ways{g: g}
	w.level.edges, w.level.sights = make([]Reach, len(g.Edges)), make([]Reach, len(g.Sights))
	for i := range g.Edges {
		w.level.edges[i] = g.Edges[i].Reach()
	}
	for i := range g.Sights {
		w.level.sights[i] = g.Sights[i].Reach()
	}
	w.edges = groupByOwner(len(g.Sources), len(g.Edges), func(i int) int { return unless(w.level.edges[i] == Never, g.Edges[i].Source) })
	w.sights = groupByOwner(len(g.Sources), len(g.Sights), func(i int) int { return unless(w.level.sights[i] == Never, g.Sights[i].Source) })
	w.writes = groupByOwner(len(g.Tasks), len(g.Sources), func(i int) int { return g.Sources[i].Task })
	w.onward = groupByOwner(len(g.Sources), len(g.Edges), func(i int) int {
		return unless(w.level.edges[i] == Never || g.Edges[i].Copied, g.Edges[i].Source)
	})
	for s := range g.Sources {
		slices.SortFunc(w.edges.of(s), w.compareEdges)
		slices.SortFunc(w.onward.of(s), w.compareEdges)
		slices.SortFunc(w.sights.of(s), w.compareSights)
	}
	return w
}

// compareEdges puts the edges of one source in the order of their tasks.
func (w *ways) compareEdges(i, j int32) int {
	a, b := &w.g.Edges[i], &w.g.Edges[j]
	if a.Task != b.Task {
		return a.Task - b.Task
	}
	return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Note, b.Note))
}

// compareSights puts the sights of one source in the order of their readers.
func (w *ways) compareSights(i, j int32) int {
	a, b := &w.g.Sights[i], &w.g.Sights[j]
	if a.Reader != b.Reader {
		return a.Reader - b.Reader
	}
	return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Note, b.Note))
}

// unless returns owner, or -1 if nothing is true.
func unless(nothing bool, owner int) int {
	if nothing {
		return -1
	}
	return owner
}

// lists holds for each owner the things that belong to it.
type lists struct {
	start []int32 // where the list of an owner begins, and after the last one the end
	all   []int32
}

// groupByOwner groups things by owner. A thing with a negative owner belongs to
// none.
func groupByOwner(owners, things int, owner func(int) int) lists {
	l := lists{start: make([]int32, owners+2)}
	of := make([]int, things) // each owner is asked for once
	for i := range things {
		if of[i] = owner(i); of[i] >= 0 {
			l.start[of[i]+2]++
		}
	}
	for k := 2; k < len(l.start); k++ {
		l.start[k] += l.start[k-1]
	}
	l.all = make([]int32, l.start[len(l.start)-1])
	for i, k := range of {
		if k >= 0 {
			l.all[l.start[k+1]] = int32(i)
			l.start[k+1]++
		}
	}
	return l
}

// of returns what belongs to an owner.
func (l *lists) of(owner int) []int32 { return l.all[l.start[owner]:l.start[owner+1]] }
