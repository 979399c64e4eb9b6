package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/envelope"
)

// A miss is a guard that an answer does not pass: a const, outside of anyOf, oneOf,
// if and not, and a value of its type that is another one.
type miss struct {
	at   string   // the pointer of the const's schema
	path []string // in the answer
	want any
}

// name is where the guard stands in the answer.
func (m *miss) name() string { return pathText(m.path) }

// rule says what the guard demands, in words of the schema alone.
func (m *miss) rule() string {
	at := m.at
	if at == "" {
		at = "its root"
	}
	return fmt.Sprintf("the schema at %s demands const %s", at, excerpt(m.want))
}

// missedGuards returns the guards of the schema that a value does not pass.
func (s *Schema) missedGuards(value any) (missed []miss) {
	s.root.visit(value, nil, func(n *node, v any, path []string) {
		if n.guard && kindOf(v) == kindOf(n.fixed[0]) && !equal(v, n.fixed[0]) {
			missed = append(missed, miss{n.at, slices.Clone(path), n.fixed[0]})
		}
	})
	return missed
}

// fulfilled returns a copy of the value, for the validator, as it would be if it passed
// the guards. A guard within what another one replaces does not count.
func fulfilled(value any, missed []miss) any {
	value = native(value)
	var last *miss
	for i := range missed {
		m := &missed[i]
		if last != nil && len(m.path) > len(last.path) && slices.Equal(m.path[:len(last.path)], last.path) {
			continue
		}
		if last = m; len(m.path) == 0 {
			value = native(m.want)
			continue
		}
		end := len(m.path) - 1
		switch in := valueAt(value, m.path[:end]).(type) {
		case map[string]any:
			in[m.path[end]] = native(m.want)
		case []any:
			if at, err := strconv.Atoi(m.path[end]); err == nil && at < len(in) {
				in[at] = native(m.want)
			}
		}
	}
	return value
}

// replaced returns a copy of a schema with another one at a path.
func replaced(v any, path []string, with any) any {
	if len(path) == 0 {
		return with
	}
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		out[path[0]] = replaced(v[path[0]], path[1:], with)
		return out
	case []any:
		out, at := slices.Clone(v), 0
		if at, _ = strconv.Atoi(path[0]); at < len(out) {
			out[at] = replaced(v[at], path[1:], with)
		}
		return out
	}
	return v
}

// valueAt returns what stands at a path that visit reported.
func valueAt(v any, path []string) any {
	for _, token := range path {
		switch in := v.(type) {
		case map[string]any:
			v = in[token]
		case []any:
			if at, err := strconv.Atoi(token); err == nil && at < len(in) {
				v = in[at]
			}
		}
	}
	return v
}

// equal reports whether two decoded values are the same JSON value. Numbers are the
// same if they are as float64.
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

// number returns a decoded number.
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

// unguarded returns the schema with types in place of its guards, for an endpoint that
// holds a model to a schema: with a const there, the model could give no other verdict.
func (s *Schema) unguarded() string {
	seen, source := map[*node]bool{}, s.source
	var walk func(n *node)
	walk = func(n *node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		if n.guard && n.fixed[0] != nil {
			source = relaxed(source, n)
		}
		for _, list := range [][]*node{n.every, n.prefix, slices.Collect(maps.Values(n.props)), {n.items, n.rest}} {
			for _, below := range list {
				walk(below)
			}
		}
		for _, p := range n.patterns {
			walk(p.node)
		}
	}
	walk(s.root)
	if text, err := json.Marshal(source); err == nil {
		if v, err := envelope.ParseJSON(string(text)); err == nil {
			return v.Canonical()
		}
	}
	return s.canonical
}

// relaxed returns a schema in which the type stands for the const of a node.
func relaxed(source any, n *node) any {
	in, _ := find(source, n.at)
	rule, _ := in.(map[string]any)
	rule = maps.Clone(rule)
	delete(rule, "const")
	if _, typed := rule["type"]; !typed {
		rule["type"] = typeOfKind[kindOf(n.fixed[0])]
	}
	if n.at == "" {
		return rule
	}
	tokens := strings.Split(n.at[1:], "/")
	for i := range tokens {
		tokens[i] = unescape(tokens[i])
	}
	return replaced(source, tokens, rule)
}

var typeOfKind = [kindCount]string{aNull: "null", aBoolean: "boolean", aNumeric: "number", aString: "string", anObject: "object", anArray: "array"}
