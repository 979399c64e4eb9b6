package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/runteam/runteam/internal/jsonvalue"
)

// A failedGuard is a guard that an answer does not pass. A guard is a const that applies in any
// case. An answer fails it with another value of the same type.
type failedGuard struct {
	at   string   // JSON pointer of the schema with the const
	path []string // of the value in the answer
	want any      // the const
}

// name returns the place of the guard in the answer.
func (g *failedGuard) name() string { return pathText(g.path) }

// rule returns what the guard demands. It quotes the schema but not the answer.
func (g *failedGuard) rule() string {
	at := g.at
	if at == "" {
		at = "its root"
	}
	return fmt.Sprintf("the schema at %s demands const %s", at, excerpt(g.want))
}

// always returns the schemas below n that apply to every value, or to every member or item in
// their place.
func (n *node) always() []*node {
	below := slices.Concat(n.every, n.prefix, slices.Collect(maps.Values(n.props)))
	for _, p := range n.patterns {
		below = append(below, p.node)
	}
	return appendNode(appendNode(below, n.items), n.rest)
}

// choices returns the schemas below n that a value need not match: the alternatives of n, and those
// that count or compare.
func (n *node) choices() []*node {
	below := slices.Concat(append(slices.Clip(n.some), n.maybe, n.unused)...)
	for _, c := range []*node{n.not, n.contains, n.names, n.unevaluated, n.unevaluatedSeq} {
		below = appendNode(below, c)
	}
	return below
}

// unguard makes no const in the schema n a guard. A const of a definition may apply in any case at
// one place and tell alternatives apart at another. Without it, the alternatives would match other
// values.
func (n *node) unguard(seen map[*node]bool) {
	if seen[n] {
		return
	}
	seen[n], n.guard = true, false
	for _, below := range slices.Concat(n.always(), n.choices()) {
		below.unguard(seen)
	}
}

// failedGuards returns the guards of the schema that a value does not pass.
func (s *Schema) failedGuards(value any) (failed []failedGuard) {
	s.root.visit(value, nil, func(n *node, v any, path []string) {
		if n.guard && kindOf(v) == kindOf(n.fixed[0]) && !equal(v, n.fixed[0]) {
			failed = append(failed, failedGuard{n.at, slices.Clone(path), n.fixed[0]})
		}
	})
	return failed
}

// fulfilled returns a copy of the value, for the validator, in which the failed guards
// have the values that they demand. A guard inside a value that another guard replaces is
// ignored.
func fulfilled(value any, failed []failedGuard) any {
	value = native(value)
	var last *failedGuard
	for i := range failed {
		m := &failed[i]
		if last != nil && len(m.path) > len(last.path) && slices.Equal(m.path[:len(last.path)], last.path) {
			continue
		}
		if last = m; len(m.path) == 0 {
			value = native(m.want)
			continue
		}
		end := len(m.path) - 1
		in, _ := jsonvalue.At(value, m.path[:end])
		switch in := in.(type) {
		case map[string]any:
			in[m.path[end]] = native(m.want)
		case []any:
			if at, ok := jsonvalue.Index(m.path[end]); ok && at < len(in) {
				in[at] = native(m.want)
			}
		}
	}
	return value
}

// equal reports whether two decoded values are the same JSON value. Numbers are compared
// as float64.
func equal(a, b any) bool {
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	}
	if kindOf(b) >= anObject {
		return false
	}
	return a == b
}

// number returns a decoded number, and whether v is one.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	case float64:
		return v, true
	}
	return 0, false
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// Unguarded returns the schema as JSON, with a type in place of each guard. An endpoint
// that enforces a schema gets this form: with the const, the model could give no other
// verdict.
func (s *Schema) Unguarded() string {
	source, err := jsonvalue.Decode(s.canonical) // a copy
	if err != nil {
		return s.canonical
	}
	seen := map[*node]bool{}
	var walk func(n *node)
	walk = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		if n.guard && n.fixed[0] != nil {
			in, _ := find(source, n.at)
			rule := in.(map[string]any)
			delete(rule, "const")
			if _, typed := rule["type"]; !typed {
				rule["type"] = typeNames[kindOf(n.fixed[0])]
			}
		}
		for _, below := range n.always() {
			walk(below)
		}
	}
	walk(s.root)
	v, err := jsonvalue.Encode(source)
	if err != nil {
		return s.canonical
	}
	return v.Canonical()
}
