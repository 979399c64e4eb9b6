package schema

import (
	"encoding/json"
	"slices"

	"github.com/runteam/runteam/internal/condition"
	"github.com/runteam/runteam/internal/jsonvalue"
)

// Domain returns which values can be at a path of names in a valid result. Where several schemas
// apply to a value, it may have values that they rule out together. After *, any item of a list, it
// is that of the items that there are.
func (s *Schema) Domain(path []string) condition.Domain {
	d := condition.Domain{Absent: true}
	if s == nil {
		d.Texts, d.Numbers, d.Values = true, true, []string{"false", "null", "true"}
		return d
	}
	at, present := []*node{s.root}, true
	for _, token := range path {
		present = token == "*" || present && slices.ContainsFunc(at, func(n *node) bool { return n.demands(token) })
		at = named(at, token, asGrants)
	}
	d.Absent = !present
	all := besides(at)
	limiting := slices.DeleteFunc(slices.Clone(all), (*node).allowsAnyValue)
	if len(limiting) == 0 {
		limiting = all
	}
	for _, n := range limiting {
		n.addTo(&d)
	}
	slices.Sort(d.Values)
	d.Values = slices.Compact(d.Values)
	return d
}

// demands reports whether each value of a schema is an object with this member.
func (n *node) demands(name string) bool {
	if n.types == 1<<anObject && slices.Contains(n.required, name) {
		return true
	}
	return slices.ContainsFunc(n.every, func(n *node) bool { return n.demands(name) })
}

// allowsAnyValue reports whether the keywords of a node itself allow any value that is no container.
func (n *node) allowsAnyValue() bool { return n.types == allKinds && n.fixed == nil }

// addTo adds the values of a node that are no containers.
func (n *node) addTo(d *condition.Domain) {
	if n.fixed != nil {
		for _, v := range n.fixed {
			raw, err := json.Marshal(v) // numbers of a schema are floats
			if err != nil {
				continue
			}
			if text, err := jsonvalue.Parse(string(raw)); err == nil {
				d.Values = append(d.Values, text.Canonical())
			}
		}
		return
	}
	if n.types.has(aNull) {
		d.Values = append(d.Values, "null")
	}
	if n.types.has(aBoolean) {
		d.Values = append(d.Values, "false", "true")
	}
	d.Texts = d.Texts || n.types.has(aString)
	if n.types.has(aNumeric) {
		before := *d
		d.Numbers, d.Integer, d.Min, d.Max = true, n.integer, n.min, n.max
		if before.Numbers { // either may apply
			d.Integer, d.Min, d.Max = d.Integer && before.Integer, lower(n.min, before.Min), higher(n.max, before.Max)
		}
	}
}

// lower returns the lower of two minimums, of which nil is the lowest.
func lower(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	return new(min(*a, *b))
}

// higher returns the higher of two maximums, of which nil is the highest.
func higher(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	return new(max(*a, *b))
}
