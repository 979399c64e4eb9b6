package flow

import (
	"cmp"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A Lowering is what a declassifier may deliver below its label.
type Lowering struct {
	Name   string               `json:"name"` // of the declassifier
	To     label.Classification `json:"to"`   // the label of the delivered paths
	Paths  []LoweredPath        `json:"paths"`
	Unsafe bool                 `json:"unsafe,omitempty"` // it may lower free text
	Plain  bool                 `json:"-"`                // values of a lower label are delivered without it
}

// A LoweredPath is one path of a declassifier and how many bytes it can carry.
type LoweredPath struct {
	Path  task.Path `json:"path"`
	Bytes int       `json:"bytes"` // Unbounded if nothing bounds it
}

// Unbounded is the number of bytes of a path that no schema bounds.
const Unbounded = -1

// Bytes returns how many bytes all paths can carry, or [Unbounded].
func (l *Lowering) Bytes() int { return sumOf(union(l.Paths)) }

// A Disclosure is how many bytes of one source can reach readers below its label
// through one producer, over all of its results that derive from the source, all
// readers and all declassifiers.
//
// A path of a result counts once, however many readers get it and however often
// the task is tried: they all get the same value. Different results of one
// producer add up, since each can carry another piece of the same source.
type Disclosure struct {
	Producer string `json:"producer"`
	Source   int    `json:"source"`         // the source whose content can be carried most, or a result that is its own origin
	Results  []int  `json:"results"`        // the sources that carry it, in order
	Bytes    int    `json:"bytes"`          // Unbounded if a path is
	Safe     int    `json:"safe,omitempty"` // the bytes of declassifiers that may not lower free text
}

// Disclosures returns for each producer with declassified results the source of
// which they can carry most, sorted by producer. It takes time proportional to the
// graph, times the sources above a lowered label over 64.
func (t *Table) Disclosures() []Disclosure {
	lowered := t.loweredResults()
	if len(lowered) == 0 {
		return nil
	}
	origins := t.origins(lowered)
	type key struct {
		producer string
		source   int
	}
	found := map[key]*Disclosure{}
	for _, r := range lowered {
		for _, origin := range origins.of(r) {
			k := key{t.g.Sources[r.source].From, origin}
			d := found[k]
			if d == nil {
				d = &Disclosure{Producer: k.producer, Source: origin}
				found[k] = d
			}
			d.Results = append(d.Results, r.source)
			d.Bytes, d.Safe = plus(d.Bytes, sumOf(r.all)), plus(d.Safe, sumOf(r.safe))
		}
	}
	most := map[string]*Disclosure{}
	for _, d := range found {
		if m := most[d.Producer]; m == nil || d.above(m) {
			most[d.Producer] = d
		}
	}
	out := make([]Disclosure, 0, len(most))
	for _, d := range most {
		out = append(out, *d)
	}
	slices.SortFunc(out, func(a, b Disclosure) int { return strings.Compare(a.Producer, b.Producer) })
	return out
}

// above orders disclosures of one producer: by safe bytes, then by all, then by source.
func (d *Disclosure) above(o *Disclosure) bool {
	size := func(n int) uint { return uint(n) } // Unbounded is the largest
	return cmp.Or(cmp.Compare(d.Safe, o.Safe), cmp.Compare(size(d.Bytes), size(o.Bytes)), cmp.Compare(o.Source, d.Source)) > 0
}

// A loweredResult is a source that declassifiers lower, with the paths that they
// deliver, each once.
type loweredResult struct {
	source    int
	all, safe []LoweredPath
	to        label.Classification // the lowest label that any of it is delivered with
}

// loweredResults returns the sources that declassifiers lower, in order.
func (t *Table) loweredResults() []*loweredResult {
	if t == nil || t.ways == nil {
		return nil
	}
	at := map[int]*loweredResult{}
	add := func(source int, l *Lowering, level Reach) {
		if l == nil || level == Never {
			return
		}
		r := at[source]
		if r == nil {
			r = &loweredResult{source: source, to: l.To}
			at[source] = r
		}
		r.to, r.all = min(r.to, l.To), append(r.all, l.Paths...)
		if !l.Unsafe {
			r.safe = append(r.safe, l.Paths...)
		}
	}
	for i := range t.g.Edges {
		add(t.g.Edges[i].Source, t.g.Edges[i].Lowers, t.level.edges[i])
	}
	for i := range t.g.Sights {
		add(t.g.Sights[i].Source, t.g.Sights[i].Lowers, t.level.sights[i])
	}
	out := make([]*loweredResult, 0, len(at))
	for _, r := range at {
		r.all, r.safe = union(r.all), union(r.safe)
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *loweredResult) int { return a.source - b.source })
	return out
}

// origins has for each task the sources from outside that it may have read.
type origins struct {
	*Table
	sources []int // by their place in the sets
	read    []set // of each task
}

// manyOrigins limits the pairs of a task and a source that are tracked. Above it,
// all sources count as one.
const manyOrigins = 1 << 26

// origins follows the sources above a lowered label to all tasks that may read of
// them. Deliveries by a declassifier alone are not followed, since they are counted
// where they happen.
func (t *Table) origins(lowered []*loweredResult) *origins {
	o := &origins{Table: t}
	lowest := label.Secret
	for _, r := range lowered {
		lowest = min(lowest, r.to)
	}
	bit := make([]int, len(t.g.Sources))
	for s := range t.g.Sources {
		if bit[s] = -1; t.g.Sources[s].Task < 0 && t.g.Sources[s].Label > lowest {
			bit[s] = len(o.sources)
			o.sources = append(o.sources, s)
		}
	}
	if len(o.sources)*len(t.g.Tasks) > manyOrigins {
		o.sources = o.sources[:1]
		for s := range bit {
			bit[s] = min(bit[s], 0)
		}
	}
	o.read = newSets(len(t.g.Tasks), len(o.sources))
	queue := make([]int, 0, len(t.g.Tasks))
	reach := func(source int, also func(set) bool) {
		for _, i := range t.edges.of(source) {
			e := &t.g.Edges[i]
			if e.Lowers != nil && !e.Lowers.Plain {
				continue
			}
			if also(o.read[e.Task]) {
				queue = append(queue, e.Task)
			}
		}
	}
	for s := range t.g.Sources {
		if bit[s] >= 0 {
			reach(s, func(to set) bool {
				known := to.has(bit[s])
				to.add(bit[s])
				return !known
			})
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		from := o.read[queue[0]]
		for _, s := range t.writes.of(queue[0]) {
			reach(int(s), func(to set) bool { return to.grow(from) })
		}
	}
	return o
}

// of returns the sources above the label of a lowered result that it may derive
// from, or the result itself if there is none, because the text of its task has the
// label.
func (o *origins) of(r *loweredResult) []int {
	src := &o.g.Sources[r.source]
	if src.Task < 0 {
		return []int{r.source}
	}
	var list []int
	for k, s := range o.sources {
		if o.read[src.Task].has(k) && (o.g.Sources[s].Label > r.to || len(o.sources) == 1) {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return []int{r.source}
	}
	return list
}

// union returns paths without those that another one covers.
func union(paths []LoweredPath) (out []LoweredPath) {
	for _, p := range paths {
		// If two cover each other, as duplicates do, the first one counts.
		if !slices.ContainsFunc(out, func(q LoweredPath) bool { return covers(q.Path, p.Path) }) {
			out = append(slices.DeleteFunc(out, func(q LoweredPath) bool { return covers(p.Path, q.Path) }), p)
		}
	}
	return out
}

// covers reports whether p selects all that q selects.
func covers(p, q task.Path) bool {
	deep := func(p task.Path) bool { return p == task.Whole || strings.HasSuffix(string(p), "/**") }
	return (deep(p) || !deep(q)) && pick.Covers(p, pick.Tokens(q))
}

// sumOf adds up what paths can carry.
func sumOf(paths []LoweredPath) int {
	sum := 0
	for _, p := range paths {
		sum = plus(sum, p.Bytes)
	}
	return sum
}

func plus(a, b int) int {
	if a == Unbounded || b == Unbounded {
		return Unbounded
	}
	return a + b
}
