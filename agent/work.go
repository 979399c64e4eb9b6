package agent

import (
	"encoding/json"
	"errors"
)

// Limits on a value that is validated. The validator cannot be stopped, so
// what it would do is counted beforehand.
const (
	MaxNumber = 40        // characters of a number: more than any double or 128-bit integer needs
	MaxChecks = 1_000_000 // times that one schema inside a schema is applied to one part of the value
)

var (
	errNumber = errors.New("validating root: number: a number of more than 40 characters; write it as a text, or rounded")
	errChecks = errors.New("validating root: depth: the schema would be applied more than a million times; nest less deeply")
)

// A meter counts how often a validator applies schemas. Schemas that apply to
// the same part are counted together, so counting stays cheap where validating
// would not.
type meter struct {
	checks int
}

// uses are the schemas that apply to a value, and in how many ways.
type uses map[*node]int

// check returns what makes a value too much for the validator.
func (s *Schema) check(v any) error { return new(meter).value(v, uses{s.root: 1}) }

func (m *meter) value(v any, of uses) error {
	var all uses // with those that apply in place; only parts of the value need it
	if k := kindOf(v); k == anObject || k == anArray {
		all = uses{}
	}
	for n, times := range of {
		if !m.apply(all, n, times) {
			return errChecks
		}
	}
	switch v := v.(type) {
	case json.Number:
		if len(v) > MaxNumber {
			return errNumber
		}
	case []any:
		return m.items(v, all)
	case map[string]any:
		return m.members(v, all)
	}
	return nil
}

func (m *meter) items(items []any, of uses) error {
	prefix := 0 // behind it, the same schemas apply to each item
	for n := range of {
		prefix = max(prefix, len(n.prefix))
	}
	var below uses
	for i, item := range items {
		if i <= prefix {
			below = of.below(func(n *node) []*node { return n.onItem(i) })
		}
		if err := m.value(item, below); err != nil {
			return err
		}
	}
	return nil
}

func (m *meter) members(members map[string]any, of uses) error {
	names := of.below(func(n *node) []*node { return appendNode(nil, n.names) })
	for name, member := range members {
		if err := m.value(name, names); err != nil {
			return err
		}
		if err := m.value(member, of.below(func(n *node) []*node { return n.onMember(name) })); err != nil {
			return err
		}
	}
	return nil
}

// apply adds a schema and those that it applies to the same value. It reports
// whether that is still within the limit.
func (m *meter) apply(all uses, n *node, times int) bool {
	if m.checks += times; m.checks > MaxChecks {
		return false
	}
	if all != nil {
		all[n] += times
	}
	for _, e := range n.inPlace {
		if !m.apply(all, e, times) {
			return false
		}
	}
	return true
}

// below returns the uses in a part of a value.
func (u uses) below(on func(*node) []*node) uses {
	out := uses{}
	for n, times := range u {
		for _, e := range on(n) {
			out[e] += times
		}
	}
	return out
}

// onItem returns the schemas that a node applies to an item of an array.
func (n *node) onItem(i int) []*node {
	out := appendNode(nil, n.contains)
	if i < len(n.prefix) {
		return append(out, n.prefix[i])
	}
	if n.items != nil {
		return append(out, n.items)
	}
	return appendNode(out, n.unevaluatedSeq)
}

// onMember returns the schemas that a node applies to a member of an object.
func (n *node) onMember(name string) []*node {
	p, named := n.props[name]
	out := appendNode(nil, p)
	for _, p := range n.patterns {
		if p.name.MatchString(name) {
			out, named = append(out, p.node), true
		}
	}
	if named {
		return out
	}
	return appendNode(appendNode(out, n.rest), n.unevaluated)
}
