package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/runteam/runteam/internal/matcher"
)

// Limits on a value that is validated. The validator cannot be stopped, so its work is
// counted in advance.
const (
	MaxNumber = 40        // characters of a number: more than any double or 128-bit integer needs
	maxChecks = 1_000_000 // times that one schema inside a schema is applied to one part of the value; each KiB of the part counts like one more

	maxPatternSteps = 5_000_000 // of all patterns; the validator cannot be stopped
)

var (
	errNumber = errors.New("validating root: number: a number of more than 40 characters; write it as a text, or rounded")
	errChecks = errors.New("validating root: depth: checking takes more than a million steps; nest less deeply, or write shorter lists")
)

// A meter counts how often a validator applies schemas. Schemas that apply to the same
// part are counted together, so that counting is cheap even if validating is not.
type meter struct {
	ctx    context.Context //nolint:containedctx // of one validation
	checks int
	values int             // since ctx was checked
	budget *matcher.Budget // of patterns
}

// uses are the schemas that apply to a value, and in how many ways.
type uses map[*node]int

// check returns an error if a value is too much work for the validator.
func (s *Schema) check(ctx context.Context, v any) error {
	m := &meter{ctx: ctx, budget: matcher.NewBudget(ctx, maxPatternSteps)}
	_, err := m.value(v, uses{s.root: 1})
	return err
}

// value counts the work on one part of a value, and returns how large that is, in bytes.
func (m *meter) value(v any, of uses) (size int, err error) {
	if m.values++; m.values%1024 == 0 && m.ctx.Err() != nil {
		return 0, context.Cause(m.ctx)
	}
	before := m.checks
	var all uses // with schemas that apply in place; only needed for parts of the value
	if k := kindOf(v); k == anObject || k == anArray {
		all = uses{}
	}
	text, isText := v.(string)
	for n, times := range of {
		if !m.apply(all, n, times) {
			return 0, errChecks
		}
		if isText {
			if err := m.pattern(n, times, len(text)); err != nil {
				return 0, err
			}
		}
	}
	applied := m.checks - before
	switch v := v.(type) {
	case json.Number:
		if len(v) > MaxNumber {
			return 0, errNumber
		}
	case string:
		size = len(v)
	case []any:
		size, err = m.items(v, all)
	case map[string]any:
		size, err = m.members(v, all)
	}
	if m.checks += applied * (size / 1024); err == nil && m.checks > maxChecks { // patterns, enums and uniqueItems read all of it
		err = errChecks
	}
	return size + 1, err
}

func (m *meter) items(items []any, of uses) (size int, err error) {
	prefix := 0 // after the prefix, the same schemas apply to each item
	for n := range of {
		prefix = max(prefix, len(n.prefix))
	}
	var below uses
	for i, item := range items {
		if i <= prefix {
			below = of.below(func(n *node) []*node { return n.onItem(i) })
		}
		n, err := m.value(item, below)
		if size += n; err != nil {
			return size, err
		}
	}
	return size, nil
}

func (m *meter) members(members map[string]any, of uses) (size int, err error) {
	names := of.below(func(n *node) []*node { return appendNode(nil, n.names) })
	if err := m.memberPatterns(members, of); err != nil {
		return 0, err
	}
	for name, member := range members {
		for _, part := range []struct {
			value any
			of    uses
		}{{name, names}, {member, of.below(func(n *node) []*node { return n.onMember(name) })}} {
			n, err := m.value(part.value, part.of)
			if size += n; err != nil {
				return size, err
			}
		}
	}
	return size, nil
}

// memberPatterns counts the work of patterns on the names of members.
func (m *meter) memberPatterns(members map[string]any, of uses) error {
	for n, times := range of {
		for _, p := range n.patterns {
			for name := range members {
				if err := m.spend(n, p.name, times, len(name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// pattern counts the work of the patterns of a schema, and of those that apply in place, on a text.
func (m *meter) pattern(n *node, times, bytes int) error {
	if n.matches != nil {
		if err := m.spend(n, n.matches, times, bytes); err != nil {
			return err
		}
	}
	for _, e := range n.inPlace {
		if err := m.pattern(e, times, bytes); err != nil {
			return err
		}
	}
	return nil
}

// spend counts the work of an expression on a text.
func (m *meter) spend(n *node, e *expression, times, bytes int) error {
	if e.limit != nil {
		return &uncheckedError{n.at, e.limit, 0}
	}
	err := e.Spend(m.budget, times, bytes)
	if err == nil {
		return nil
	}
	if limit, isLimit := errors.AsType[*matcher.LimitError](err); isLimit {
		return &uncheckedError{n.at, limit, bytes}
	}
	return err
}

// An uncheckedError reports a value that cannot be checked because of a pattern of the schema.
type uncheckedError struct {
	at    string
	limit *matcher.LimitError
	bytes int // of the text; 0 if the pattern is too large for any
}

func (e *uncheckedError) Error() string {
	at := place(e.at)
	if e.at != "" {
		at += " of the schema"
	}
	text := fmt.Sprintf("cannot be checked, since %s (in %s)", e.limit.Reason(), at)
	if e.bytes > 0 {
		text += fmt.Sprintf("; write a text that is shorter than %d bytes", e.bytes)
	}
	return text
}

// Unusable returns an error that wraps [ErrInvalid] if the schema has a pattern that is too large: then no
// value to which it applies can be checked.
func (s *Schema) Unusable() error {
	for _, n := range s.nodes {
		expressions := []*expression{}
		if n.matches != nil {
			expressions = append(expressions, n.matches)
		}
		for _, p := range n.patterns {
			expressions = append(expressions, p.name)
		}
		for _, e := range expressions {
			if e.limit != nil {
				return fmt.Errorf("%w: %s: %w", ErrInvalid, place(n.at), e.limit)
			}
		}
	}
	return nil
}

// apply counts a schema and the schemas that it applies to the same value. It reports
// whether the count is within the limit.
func (m *meter) apply(all uses, n *node, times int) bool {
	if m.checks += times * (1 + n.listed/8); m.checks > maxChecks { // to look for one name or value takes an eighth of a check
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
		if p.name.mayMatch(name) {
			out, named = append(out, p.node), true
		}
	}
	if named {
		return out
	}
	return appendNode(appendNode(out, n.rest), n.unevaluated)
}
