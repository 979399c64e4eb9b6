package flow

import (
	"slices"

	"github.com/runteam/runteam/internal/pick"
)

// A subject is what a way begins with: sources, and what of them.
type subject struct {
	sources []int
	atLeast Reach                        // deliveries of less do not count
	part    func(s *pick.Selection) bool // whether a delivery may have it; nil counts any
}

func (x *subject) in(level Reach, delivers *pick.Selection) bool {
	return level >= x.atLeast && (x.part == nil || x.part(delivers))
}

// delivered returns the way of the fewest tasks on which something of the
// subject is delivered to the reader itself, or nil.
func (w *ways) delivered(x *subject, reader int) Path {
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

// retold returns the way of the fewest tasks on which something of the subject,
// or something that derives from it, is delivered to the reader, or nil.
// Whoever writes a source knows it, and may tell it in all that it writes.
func (w *ways) retold(x *subject, reader int) Path {
	if direct := w.delivered(x, reader); direct != nil {
		return direct
	}
	k := walk{ways: w, reader: reader, met: make([]bool, len(w.g.Tasks))}
	for _, s := range x.sources {
		for _, i := range w.edges.of(s) {
			if e := &w.g.Edges[i]; x.in(w.level.edges[i], &e.Delivers) {
				k.meet(stop{source: s, edge: i, before: -1})
			}
		}
	}
	for _, s := range x.sources {
		if by := w.g.Sources[s].Task; by >= 0 {
			k.line = append(k.line, stop{source: s, edge: -1, before: -1})
		}
	}
	return k.run()
}

// A walk searches breadth first from task to task. Edges come in the order of
// their tasks, so of equally short ways one of early tasks is found first.
type walk struct {
	*ways
	reader int
	met    []bool // tasks that something was delivered to
	line   []stop // in the order met; those not yet looked at come last
}

// A stop is a task on the way: one that an edge leads to, or, where edge is
// negative, the writer of the source.
type stop struct {
	source int
	edge   int32
	before int // the stop before it in the line; -1 after the source itself
}

func (k *walk) meet(s stop) {
	if i := k.g.Edges[s.edge].Task; !k.met[i] {
		k.met[i] = true
		k.line = append(k.line, s)
	}
}

func (k *walk) run() Path {
	for at := 0; at < len(k.line); at++ {
		task := k.task(k.line[at])
		if k.line[at].edge >= 0 && k.g.Tasks[task].reads(k.reader) {
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
			for _, e := range k.edges.of(int(s)) {
				k.meet(stop{source: int(s), edge: e, before: at})
			}
		}
	}
	return nil
}

func (k *walk) task(s stop) int {
	if s.edge < 0 {
		return k.g.Sources[s.source].Task
	}
	return k.g.Edges[s.edge].Task
}

// path returns the way to a stop, and from there to the end.
func (k *walk) path(at int, end Step) Path {
	p := Path{end}
	source := 0
	for ; at >= 0; at = k.line[at].before {
		s := k.line[at]
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
