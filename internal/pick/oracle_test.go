package pick_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
	"pgregory.net/rapid"
)

// names are what random values and paths are made of, with what the two ways
// of comparing make of each, written by hand.
var names = map[string]struct{ exact, loose string }{
	"a":         {"a", "a"},
	"A":         {"A", "a"},
	"b":         {"b", "b"},
	"ssn":       {"ssn", "ssn"},
	"SsN":       {"SsN", "ssn"},
	"s\u200bsn": {"s\u200bsn", "ssn"},
	"ｓｓｎ":       {"ｓｓｎ", "ssn"},
	"\u00e9":    {"\u00e9", "\u00e9"},
	"e\u0301":   {"\u00e9", "\u00e9"},
	"0x":        {"0x", "0x"},
	"1":         {"1", "1"},
	"x/y":       {"x/y", "x/y"},
	"x~y":       {"x~y", "x~y"},
	"*":         {"*", "*"},
	"":          {"", ""},
}

// A generator is made for each property: rapid's are not safe for parallel tests to share.
func anyName() *rapid.Generator[string] {
	return rapid.SampledFrom(slices.Sorted(maps.Keys(names)))
}

func pathName() *rapid.Generator[string] {
	return anyName().Filter(func(s string) bool { return s != "*" })
}

// A token is one step of the way to a leaf.
type token struct {
	name  string
	index int // of an element; -1 for a member
}

func (t token) String() string {
	if t.index >= 0 {
		return "*"
	}
	return t.name
}

func tokensOf(way []token) []string {
	var out []string
	for _, t := range way {
		out = append(out, t.String())
	}
	return out
}

func pointer(way []token) task.Path {
	var out strings.Builder
	for _, t := range way {
		out.WriteString(naming.Pointer(t.String()))
	}
	return task.Path(out.String())
}

func unescape(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
}

// grants is what an allow path means, read word by word for one leaf.
func grants(p task.Path, way []token, container bool) bool {
	text, deep := strings.CutSuffix(string(p), "/**")
	deep = deep || text == ""
	var want []string
	if text != "" {
		want = strings.Split(text[1:], "/")
	}
	if len(want) > len(way) || !deep && (container || len(want) != len(way)) {
		return false
	}
	for i, w := range want {
		if w != "*" && (way[i].index >= 0 || names[unescape(w)].exact != names[way[i].name].exact) {
			return false
		}
	}
	return true
}

// blocks is what a block means for one place.
func blocks(p task.Path, way []token) bool {
	text := strings.TrimSuffix(string(p), "/**")
	name, anywhere := strings.CutPrefix(text, "/**/")
	if anywhere || !strings.Contains(text, "/") {
		return slices.ContainsFunc(way, func(t token) bool {
			return t.index < 0 && names[t.name].loose == names[unescape(name)].loose
		})
	}
	want := strings.Split(text[1:], "/")
	if len(want) > len(way) {
		return false
	}
	for i, w := range want {
		switch t := way[i]; {
		case w == "*":
		case t.index >= 0 && w != strconv.Itoa(t.index),
			t.index < 0 && names[unescape(w)].loose != names[t.name].loose:
			return false
		}
	}
	return true
}

// A leaf is a scalar or an empty container.
type leaf struct {
	way       []token
	container bool
}

// An oracle answers as the package does, place by place and slowly.
type oracle struct {
	lists  [][]task.Path
	blocks []task.Path
	picked pick.Picked
}

func (o *oracle) granted(way []token, container bool) bool {
	return !slices.ContainsFunc(o.lists, func(list []task.Path) bool {
		return !slices.ContainsFunc(list, func(p task.Path) bool { return grants(p, way, container) })
	})
}

func (o *oracle) passes(way []token, container bool) bool {
	return o.granted(way, container) &&
		!slices.ContainsFunc(o.blocks, func(p task.Path) bool { return blocks(p, way) })
}

// prune returns what is left of a place, or false.
func (o *oracle) prune(v any, way []token) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, one := range v {
			if kept, ok := o.prune(one, append(slices.Clone(way), token{name, -1})); ok {
				out[name] = kept
			}
		}
		return out, len(out) > 0 || o.passes(way, true)
	case []any:
		out := []any{}
		for i, one := range v {
			if kept, ok := o.prune(one, append(slices.Clone(way), token{index: i})); ok {
				out = append(out, kept)
			}
		}
		return out, len(out) > 0 || o.passes(way, true)
	}
	return v, o.passes(way, false)
}

// places returns every place of a value, the root first.
func places(v any, way []token) (out []leaf, values []any) {
	_, isObject := v.(map[string]any)
	_, isArray := v.([]any)
	out, values = []leaf{{way, isObject || isArray}}, []any{v}
	on := func(one any, t token) {
		l, vs := places(one, append(slices.Clone(way), t))
		out, values = append(out, l...), append(values, vs...)
	}
	if object, ok := v.(map[string]any); ok {
		for _, name := range slices.Sorted(maps.Keys(object)) {
			on(object[name], token{name, -1})
		}
	}
	if array, ok := v.([]any); ok {
		for i, one := range array {
			on(one, token{index: i})
		}
	}
	return out, values
}

// apply fills in what Apply should say; lists of places are sets.
func (o *oracle) apply(v any) (any, bool) {
	all, values := places(v, nil)
	o.report(all, values)
	for _, list := range o.lists {
		for _, p := range list {
			if !slices.ContainsFunc(all, func(l leaf) bool { return grants(p, l.way, l.container) }) {
				o.picked.Unmatched = append(o.picked.Unmatched, p)
			}
		}
	}
	slices.Sort(o.picked.Unmatched)
	o.picked.Unmatched = slices.Compact(o.picked.Unmatched)
	return o.prune(v, nil)
}

func isUnder(way, top []token) bool {
	return len(way) >= len(top) && slices.Equal(way[:len(top)], top)
}

func (o *oracle) report(all []leaf, values []any) {
	var keptTops, droppedTops [][]token
	covered := func(tops [][]token, way []token) bool {
		return slices.ContainsFunc(tops, func(top []token) bool { return isUnder(way, top) })
	}
	for i, l := range all {
		_, some := o.prune(values[i], l.way)
		whole := o.granted(l.way, l.container)
		for j, m := range all {
			if isUnder(m.way, l.way) {
				_, ok := o.prune(values[j], m.way)
				whole = whole && ok
			}
		}
		isRoot := len(l.way) == 0 && len(all) > 1
		switch {
		case !some && !isRoot && !covered(droppedTops, l.way):
			droppedTops = append(droppedTops, l.way)
			o.picked.Dropped = append(o.picked.Dropped, pointer(l.way))
		case whole && !covered(keptTops, l.way):
			keptTops = append(keptTops, l.way)
			o.picked.Kept = append(o.picked.Kept, pointer(l.way))
		}
	}
}

func sorted(paths []task.Path) []task.Path {
	return slices.Compact(slices.Sorted(slices.Values(paths)))
}
