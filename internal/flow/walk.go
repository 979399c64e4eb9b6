package flow

import (
	"slices"

	"github.com/runteam/runteam/internal/pick"
)

// A subject is where paths begin: sources, and a part of them.
type subject struct {
	sources []int
	atLeast Reach                        // deliveries of a lower level do not count
	part    func(s *pick.Selection) bool // whether a delivery may include the part; nil for any
}

func (x *subject) in(level Reach, delivers *pick.Selection) bool {
	return level >= x.atLeast && (x.part == nil || x.part(delivers))
}

// deliveredPath returns the path of the fewest tasks that delivers something of
// the subject to the reader itself, or nil.
func (w *ways) deliveredPath(x *subject, reader int) Path {
	for _, s := range x.sources {
		for _, i := range w.sights.of(s) {
			if sight := &w.g.Sights[i]; sight.Reader == reader && x.in(w.level.sights[i], &sight.Delivers) {
				return Path{w.sourceStep(s), w.sightStep(i)}
			}
		}
	}
	for _, s := range x.sources {
		for _, i := range w.edges.of(s) {
			if e := &w.g.Edges[i]; w.g.Tasks[e.Task].reads(reader) && x.in(w.level.edges[i], &e.Delivers) {
				return Path{w.sourceStep(s), w.edgeStep(i), w.readerStep(reader)}
			}
		}
	}
	return nil
}

// derivedPath returns the path of the fewest tasks that delivers something of the
// subject, or something derived from it, to the reader, or nil. The writer of a
// source knows it, so that all of its output derives from it.
func (w *ways) derivedPath(x *subject, reader int) Path {
	if direct := w.deliveredPath(x, reader); direct != nil {
		return direct
	}
	k := pathSearch{ways: w, reader: reader, visited: make([]bool, len(w.g.Tasks))}
	for _, s := range x.sources {
		for _, i := range w.edges.of(s) {
			if e := &w.g.Edges[i]; x.in(w.level.edges[i], &e.Delivers) {
				k.visit(hop{source: s, edge: i, before: -1})
			}
		}
	}
	for _, s := range x.sources {
		if by := w.g.Sources[s].Task; by >= 0 {
			k.queue = append(k.queue, hop{source: s, edge: -1, before: -1})
		}
	}
	return k.run()
}

// A pathSearch searches breadth first from task to task. Edges are in the order of
// their tasks, so that of equally short paths one of early tasks is found first.
type pathSearch struct {
	*ways
	reader  int
	visited []bool // tasks that are in the queue or were
	queue   []hop  // in the order visited
}

// A hop is a task on a path: the target of an edge, or, if edge is negative, the
// writer of the source.
type hop struct {
	source int
	edge   int32
	before int // index of the hop before it in the queue; -1 for none
}

func (k *pathSearch) visit(s hop) {
	if i := k.g.Edges[s.edge].Task; !k.visited[i] {
		k.visited[i] = true
		k.queue = append(k.queue, s)
	}
}

func (k *pathSearch) run() Path {
	for at := 0; at < len(k.queue); at++ {
		task := k.task(k.queue[at])
		if k.queue[at].edge >= 0 && k.g.Tasks[task].reads(k.reader) {
			return k.path(at, k.readerStep(k.reader))
		}
		for _, s := range k.writes.of(task) {
			for _, i := range k.sights.of(int(s)) {
				if k.g.Sights[i].Reader == k.reader {
					return k.path(at, k.sightStep(i))
				}
			}
		}
		for _, s := range k.writes.of(task) {
			for _, e := range k.onward.of(int(s)) {
				k.visit(hop{source: int(s), edge: e, before: at})
			}
		}
	}
	return nil
}

func (k *pathSearch) task(s hop) int {
	if s.edge < 0 {
		return k.g.Sources[s.source].Task
	}
	return k.g.Edges[s.edge].Task
}

// path returns the path to a hop and from there to the end.
func (k *pathSearch) path(at int, end Step) Path {
	p := Path{end}
	source := 0
	for ; at >= 0; at = k.queue[at].before {
		s := k.queue[at]
		source = s.source
		if s.edge < 0 {
			p = append(p, k.writerStep(k.task(s)))
		} else {
			p = append(p, k.edgeStep(s.edge))
		}
	}
	p = append(p, k.sourceStep(source))
	slices.Reverse(p)
	return p
}
