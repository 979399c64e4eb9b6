package agent

import (
	"encoding/json"
	"errors"
)

// Limits on a value that is validated. The validator cannot be stopped, so
// what it would do is counted beforehand.
const (
	MaxNumber = 40        // characters of a number: more than any double or 128-bit integer needs
	MaxChecks = 4_000_000 // times that one schema inside a schema is applied to one part of the value
)

var (
	errNumber = errors.New("validating root: number: a number of more than 40 characters; write it as a text, or rounded")
	errChecks = errors.New("validating root: depth: the schema would be applied more than 4000000 times; nest less deeply")
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
	all := uses{}
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
		for i, item := range v {
			if err := m.value(item, all.below(func(n *node) []*node { return n.onItem(i) })); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, member := range v {
			if err := m.value(name, all.below(func(n *node) []*node { return appendNode(nil, n.names) })); err != nil {
				return err
			}
			if err := m.value(member, all.below(func(n *node) []*node { return n.onMember(name) })); err != nil {
				return err
			}
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
	all[n] += times
	for _, list := range append([][]*node{n.every, n.maybe, appendNode(nil, n.not)}, n.some...) {
		for _, e := range list {
			if !m.apply(all, e, times) {
				return false
			}
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
