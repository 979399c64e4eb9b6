package agent

import (
	"slices"
	"strings"

	"github.com/runteam/runteam/task"
)

// An Answer is what a schema says about a place in the results that it allows.
type Answer uint8

// The answers.
const (
	No    Answer = iota // no valid result has it
	Maybe               // nothing says so, and nothing excludes it
	Yes                 // the schema names it
)

// String returns the answer as one word.
func (a Answer) String() string { return [...]string{"no", "maybe", "yes"}[min(a, Yes)] }

// Has says whether a value can stand at a path in a valid result. The tokens
// are not escaped; "*" is any member or item. It is No only if there is none:
// a path that is excluded by several keywords together may be Maybe, or Yes.
// Without a schema (nil), all is Maybe.
func (s *Schema) Has(path []string) Answer {
	if s == nil {
		return Maybe
	}
	q := question{path: path, known: map[asked]reach{}}
	if c, _ := q.at(s.root, 0).most(); c.level == absent {
		return No
	}
	at := []*node{s.root}
	for _, token := range path {
		if at = named(at, token, true); len(at) == 0 {
			return Maybe
		}
	}
	return Yes
}

// Shown returns the path with "*" in place of each name of a member that the
// schema does not write out: what a receipt or an event may say of a result.
// An index of an array counts as such a name. Without a schema (nil), no name is left.
func (s *Schema) Shown(p task.Path) task.Path {
	if p == task.Whole {
		return p
	}
	var at []*node
	if s != nil {
		at = []*node{s.root}
	}
	tokens := strings.Split(strings.TrimPrefix(string(p), "/"), "/")
	for i, t := range tokens {
		if t == "**" {
			at = nil // from here on, any depth
			continue
		}
		below := named(at, unescape(t), false)
		if len(below) == 0 {
			tokens[i], below = "*", named(at, "*", false)
		}
		at = below
	}
	return task.Path("/" + strings.Join(tokens, "/"))
}

// named returns the schemas that are written out for what a token names in
// values of any of these schemas. Of a place in a value, and not of a path to
// show, an index names an item, and a name is the same in another spelling.
func named(of []*node, token string, place bool) []*node {
	var out []*node
	for _, n := range besides(of) {
		if n.fixed != nil {
			if values := parts(n.fixed, token); len(values) > 0 && (place || token == "*" || inObject(n.fixed, token)) {
				out = append(out, fixedTo(values))
			}
			continue
		}
		if n.types.has(anObject) {
			out = n.namedMembers(out, token, place)
		}
		if _, isIndex := index(token); n.types.has(anArray) && (token == "*" || isIndex && place) {
			out = n.namedItems(out, token)
		}
	}
	return slices.DeleteFunc(out, func(n *node) bool { return n.never })
}

func inObject(values []any, name string) bool {
	return slices.ContainsFunc(values, func(v any) bool {
		members, ok := v.(map[string]any)
		if ok {
			_, ok = members[name]
		}
		return ok
	})
}

func (n *node) namedMembers(out []*node, token string, place bool) []*node {
	is := func(name string) bool { return token == "*" || name == token || place && sameName(name, token) }
	for name, p := range n.props {
		if is(name) {
			out = append(out, p)
		}
	}
	if slices.ContainsFunc(n.required, is) {
		out = append(out, open())
	}
	if token == "*" {
		for _, p := range n.patterns {
			out = append(out, p.node)
		}
		out = appendNode(out, n.rest)
	}
	return out
}

func (n *node) namedItems(out []*node, token string) []*node {
	k, isIndex := index(token)
	if isIndex {
		if k < len(n.prefix) {
			return append(out, n.prefix[k])
		}
		return appendNode(out, n.items)
	}
	return appendNode(append(out, n.prefix...), n.items)
}

// besides returns the schemas and all that apply, or may apply, to the same value.
func besides(of []*node) []*node {
	var out []*node
	seen := map[*node]bool{}
	var add func(list []*node)
	add = func(list []*node) {
		for _, n := range list {
			if seen[n] {
				continue
			}
			seen[n] = true
			out = append(out, n)
			add(n.every)
			for _, some := range n.some {
				add(some)
			}
			add(n.maybe)
		}
	}
	add(of)
	return out
}
