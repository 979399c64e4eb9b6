package pick

import (
	"slices"
	"strings"

	"github.com/runteam/runteam/task"
)

// MaxPaths bounds each list of a [Picked] that grows with the value.
const MaxPaths = 100

// Picked is what a [Selection] takes of one value.
//
// Kept and Dropped name places of the value: pointers with "*" for each array
// element, without doubles, at most [MaxPaths], in an order that depends on
// nothing but the value. Their segments are the value's own names, so they are
// as confidential as the value.
type Picked struct {
	Value      any         // what is selected; nil unless Any
	Any        bool        // something is selected, perhaps null
	Dropped    []task.Path // the highest places without any selected part; below the root, unless it is a scalar or empty
	Kept       []task.Path // the highest places granted as such, all of which is selected
	Unmatched  []task.Path // allow paths that match nothing in the value; sorted
	Containers []task.Path // those of Unmatched that met objects or arrays, which only a path with "/**" grants
}

// Apply takes what s selects of a decoded JSON value: map[string]any, []any,
// string, bool, nil, json.Number or float64. Anything else in it is left out.
//
// Arrays keep their order and close their gaps. An object or array that is
// granted as such stays, perhaps empty, so that it does not tell whether it had
// members that are blocked; one that is not granted stays if something in it does. The
// value is never changed, and what comes back shares nothing with it that can
// change; only [Everything] hands back v itself.
func (s Selection) Apply(v any) Picked {
	if s.IsEverything() {
		return Picked{Value: v, Any: true, Kept: []task.Path{task.Whole}}
	}
	w := newWalker(s.get().flat())
	out, got := w.walk(v, at{live: w.live, bans: w.bans})
	w.reportRoot(v, got)
	p := Picked{Dropped: w.dropped.paths, Kept: w.kept.paths}
	if got != none {
		p.Value, p.Any = out, true
	}
	p.Unmatched, p.Containers = w.unmatched()
	return p
}

// amount is how much of a place is selected.
type amount uint8

const (
	none amount = iota
	part
	all // granted as such, and nothing of it was left out
)

// met is what an allow path has found in the value so far.
type met uint8

const (
	metContainer met = iota + 1 // objects or arrays where it grants a scalar
	metMatch
)

// A walker goes through one value once.
type walker struct {
	*rules
	met           []met
	live, bans    []int    // stacks of the numbers of allow paths and blocks that agree with the way so far
	members       []member // stack of the members of the objects on the way
	path          []byte
	arrays        int // on the way
	kept, dropped places
}

func newWalker(r *rules) walker {
	w := walker{
		rules: r,
		met:   make([]met, len(r.allow)),
		live:  make([]int, 0, 4*len(r.allow)),
		bans:  make([]int, 0, 4*len(r.blocks)),
		path:  make([]byte, 0, 128),
	}
	for i := range r.allow {
		w.live = append(w.live, i)
	}
	for i := range r.blocks {
		w.bans = append(w.bans, i)
	}
	return w
}

type member struct {
	name  string
	value any
	got   amount
}

// at is a place: which patterns agree with the way to it.
type at struct {
	depth      int
	live, bans []int // numbers of allow paths and of blocks
}

// walk returns what is selected of the value at a place.
func (w *walker) walk(v any, here at) (any, amount) {
	kind := kindOf(v)
	granted := w.cover(here, kind)
	if granted && kind == scalar {
		return v, all
	}
	if granted && (kind <= empty || w.nothingElse(here)) {
		if out, ok := clone(v); ok {
			return out, all
		}
	}
	switch kind {
	case object:
		return w.object(v.(map[string]any), here, granted)
	case array:
		return w.array(v.([]any), here, granted)
	}
	return nil, none
}

func (w *walker) object(v map[string]any, here at, granted bool) (any, amount) {
	first, way := len(w.members), len(w.path)
	w.members = slices.Grow(w.members, len(v))
	for name, one := range v {
		w.members = append(w.members, member{name: name, value: one})
	}
	last := len(w.members)
	slices.SortFunc(w.members[first:last], func(a, b member) int { return strings.Compare(a.name, b.name) })
	var out map[string]any
	lost := false
	for i := first; i < last; i++ {
		name := w.members[i].name
		w.step(name)
		value, got := w.child(w.members[i].value, here, name, -1)
		w.path = w.path[:way]
		w.members[i].got = got
		if got == none {
			lost = true
			continue
		}
		if out == nil { // as large as it can become, within reason
			out = make(map[string]any, min(last-i, 32))
		}
		out[name] = value
		lost = lost || got == part
	}
	if out == nil && granted {
		out = map[string]any{}
	}
	got := sum(out != nil, granted, lost)
	if got == part {
		for _, m := range w.members[first:last] {
			w.step(m.name)
			w.report(m.got)
			w.path = w.path[:way]
		}
	}
	w.members = w.members[:first]
	return out, got
}

func (w *walker) array(v []any, here at, granted bool) (any, amount) {
	way := len(w.path)
	w.path = append(w.path, "/*"...)
	w.arrays++
	var out []any
	var seen [all + 1]bool
	for i, one := range v {
		value, got := w.child(one, here, "", i)
		seen[got] = true
		if got != none {
			out = append(out, value)
		}
	}
	if out == nil && granted {
		out = []any{}
	}
	got := sum(out != nil, granted, seen[none] || seen[part])
	if got == part {
		for one := range all + 1 {
			if seen[one] {
				w.report(one)
			}
		}
	}
	w.arrays--
	w.path = w.path[:way]
	return out, got
}

// sum is how much of a container is selected.
func sum(any, granted, lost bool) amount {
	switch {
	case !any:
		return none
	case granted && !lost:
		return all
	}
	return part
}

// child walks on to a member, or to an element if index is not negative.
func (w *walker) child(v any, here at, name string, index int) (any, amount) {
	live, bans := len(w.live), len(w.bans)
	w.follow(here, name, index)
	next := at{depth: here.depth + 1, live: w.live[live:]}
	var out any
	var got amount
	switch {
	case len(here.bans) > 0 && w.block(here, name, index):
		w.match(v, next)
	case len(next.live) > 0 || len(w.lists) == 0:
		next.bans = w.bans[bans:]
		out, got = w.walk(v, next)
	}
	w.live, w.bans = w.live[:live], w.bans[:bans]
	return out, got
}
