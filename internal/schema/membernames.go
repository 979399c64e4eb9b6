package schema

import "github.com/runteam/runteam/internal/pick"

// Names reports whether a member of this name can be anywhere in a valid result, at any
// depth. Names are compared as blocks compare them ([pick.Loose]). The answer is Maybe if
// the reply chooses names, and No only if no valid result has such a member. Without a
// schema (nil), it is Maybe.
func (s *Schema) Names(name string) Answer {
	if s == nil {
		return Maybe
	}
	f := finder{name: pick.Loose(name), found: map[*node]Answer{}}
	for changed := true; changed; { // it ends because answers only rise
		changed = false
		for i := len(s.nodes) - 1; i >= 0; i-- {
			if a := f.in(s.nodes[i]); a > f.found[s.nodes[i]] {
				f.found[s.nodes[i]], changed = a, true
			}
		}
	}
	return f.found[s.root]
}

// A finder looks for a name in all schemas at once.
type finder struct {
	name  string
	found map[*node]Answer // so far
}

// in returns the answer for the values of one schema, from those so far.
func (f *finder) in(n *node) Answer {
	a := f.own(n)
	declared := a == Yes
	for _, e := range n.every {
		a, declared = min(a, f.found[e]), declared || f.found[e] == Yes
	}
	for _, list := range n.some {
		one := No
		for _, s := range list {
			one = max(one, f.found[s])
		}
		a, declared = min(a, one), declared || one == Yes
	}
	for _, m := range n.maybe {
		declared = declared || f.found[m] == Yes
	}
	if a != No && declared {
		return Yes
	}
	return a
}

func (f *finder) own(n *node) Answer {
	if n.fixed != nil {
		return f.listed(n.fixed)
	}
	a := No
	if n.types.has(anObject) {
		a = f.member(n)
	}
	if n.types.has(anArray) {
		for _, p := range n.prefix {
			a = max(a, f.found[p])
		}
		if n.items != nil {
			a = max(a, f.found[n.items])
		} else if n.maxItems < 0 || n.maxItems > len(n.prefix) {
			a = max(a, Maybe)
		}
	}
	return a
}

func (f *finder) member(n *node) Answer {
	a := No
	for name, p := range n.props {
		if a = max(a, f.found[p]); !p.never && pick.Loose(name) == f.name {
			a = Yes
		}
	}
	for _, name := range n.required {
		if pick.Loose(name) == f.name {
			a = Yes
		}
	}
	for _, p := range n.patterns {
		if a = max(a, f.found[p.node]); !p.node.never {
			a = max(a, Maybe)
		}
	}
	switch {
	case n.rest == nil:
		return max(a, Maybe)
	case n.rest.never:
		return a
	}
	return max(a, f.found[n.rest], Maybe)
}

// listed returns the answer for listed values.
func (f *finder) listed(values []any) Answer {
	for len(values) > 0 {
		for _, v := range values {
			members, _ := v.(map[string]any)
			for name := range members {
				if pick.Loose(name) == f.name {
					return Yes
				}
			}
		}
		values = parts(values, "*", asGrants)
	}
	return No
}
