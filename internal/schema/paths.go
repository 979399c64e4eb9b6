package schema

import (
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
)

// An Answer is what a schema says about a place in the results that it allows.
type Answer = pick.Answer

// The answers.
const (
	No    = pick.No
	Maybe = pick.Maybe
	Yes   = pick.Yes
)

// Has reports whether a value can be at a path in a valid result. The tokens
// are not escaped; "*" is any member or item. It is No only if there is none:
// a path that is excluded by several keywords together may be Maybe, or Yes.
// Without a schema (nil), all is Maybe.
func (s *Schema) Has(path []string) Answer {
	if s == nil {
		return Maybe
	}
	return s.has(path, asGrants)
}

func (s *Schema) has(path []string, by spelling) Answer {
	q := question{path: path, by: by, known: map[asked]reach{}}
	if c, _ := q.at(s.root, 0).most(); c.level == absent {
		return No
	}
	at := []*node{s.root}
	for _, token := range path {
		if at = named(at, token, by); len(at) == 0 {
			return Maybe
		}
	}
	return Yes
}

// Blocks says whether a block, as package pick reads it, can name a part of a
// valid result. It is No only if it can name none. What is no block has the
// answer Maybe, and so has every block without a schema (nil).
func (s *Schema) Blocks(block task.Path) Answer {
	if s == nil || pick.CheckBlock(block) != nil {
		return Maybe
	}
	path, anywhere := pick.BlockTokens(block)
	if anywhere {
		return s.Names(path[0])
	}
	for i := range path {
		path[i] = pick.Loose(path[i])
	}
	return s.has(path, asBlocks)
}

// Members returns the names of members that the schema writes out for the value
// at a path, sorted. It serves hints: a valid result may have others, or lack
// some of them.
func (s *Schema) Members(path []string) []string {
	if s == nil {
		return nil
	}
	at := []*node{s.root}
	for _, token := range path {
		at = named(at, token, asGrants)
	}
	var names []string
	for _, n := range besides(at) {
		names = n.memberNames(names, false)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// MemberNames returns the names of members that the schema writes out at any
// depth, sorted. It serves hints too.
func (s *Schema) MemberNames() []string {
	if s == nil {
		return nil
	}
	var names []string
	for _, n := range s.nodes {
		names = n.memberNames(names, true)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// memberNames adds the names of members that the node itself writes out; deep means those
// in the members of listed values too.
func (n *node) memberNames(names []string, deep bool) []string {
	for name, p := range n.props {
		if !p.never {
			names = append(names, name)
		}
	}
	names = append(names, n.required...)
	return namesIn(n.fixed, names, deep)
}

// namesIn adds the names of the members of values.
func namesIn(values []any, names []string, deep bool) []string {
	for _, v := range values {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				if names = append(names, name); deep {
					names = namesIn([]any{member}, names, deep)
				}
			}
		case []any:
			if deep {
				names = namesIn(v, names, deep)
			}
		}
	}
	return names
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
		below := named(at, naming.Unescape(t), asWritten)
		if len(below) == 0 {
			tokens[i], below = "*", named(at, "*", asWritten)
		}
		at = below
	}
	return task.Path("/" + strings.Join(tokens, "/"))
}

// named returns the schemas that are written out for what a token names in
// values of any of these schemas.
func named(of []*node, token string, by spelling) []*node {
	var out []*node
	for _, n := range besides(of) {
		if n.fixed != nil {
			if values := parts(n.fixed, token, by); len(values) > 0 {
				out = append(out, fixedTo(values))
			}
			continue
		}
		if n.types.has(anObject) {
			out = n.namedMembers(out, token, by)
		}
		if k, isIndex := by.index(token); n.types.has(anArray) && (token == "*" || isIndex) {
			out = n.namedItems(out, k, isIndex)
		}
	}
	return slices.DeleteFunc(out, func(n *node) bool { return n.never })
}

func (n *node) namedMembers(out []*node, token string, by spelling) []*node {
	is := func(name string) bool { return by.names(name, token) }
	for name, p := range n.props {
		if is(name) {
			out = append(out, p)
		}
	}
	if slices.ContainsFunc(n.required, is) {
		out = append(out, open())
	}
	for _, p := range n.patterns {
		if token == "*" || by == asBlocks && p.name.mayMatch(token) {
			out = append(out, p.node)
		}
	}
	if token == "*" {
		out = appendNode(out, n.rest)
	}
	return out
}

func (n *node) namedItems(out []*node, k int, isIndex bool) []*node {
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
