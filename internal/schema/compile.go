package schema

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/runteam/runteam/internal/matcher"
	"github.com/runteam/runteam/internal/naming"
)

// maxPaths bounds in how many ways a schema may apply to one place of a value: the
// validator walks each of them and cannot be stopped.
const maxPaths = 10_000

// compile returns the node of a schema whose keywords were checked, and the nodes of all
// schemas inside it, sorted by their pointers. It refuses references that lead nowhere,
// and schemas that apply to a place of a value without an end or in too many ways.
func compile(s *jsonschema.Schema) (*node, []*node, error) {
	c := &compiler{draft7: strings.HasSuffix(s.Schema, "://json-schema.org/draft-07/schema#"), byPointer: map[string]*node{}}
	root := c.node(s, "")
	if c.err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrInvalid, c.err)
	}
	all := slices.SortedFunc(maps.Values(c.byPointer), func(a, b *node) int { return strings.Compare(a.at, b.at) })
	for _, n := range all {
		if err := c.link(n); err != nil {
			return nil, nil, err
		}
	}
	ways := map[*node]int{}
	for _, n := range all {
		if err := n.countWays(ways); err != nil {
			return nil, nil, err
		}
	}
	unguarded := map[*node]bool{}
	for _, n := range all {
		for _, choice := range n.choices() {
			choice.unguard(unguarded)
		}
	}
	return root, all, nil
}

type compiler struct {
	draft7    bool
	byPointer map[string]*node
	programs  int   // instructions of all patterns
	err       error // of a pattern
}

// maxPrograms bounds the instructions of all patterns of a schema.
const maxPrograms = 10 * matcher.MaxProgram

// expression compiles a pattern, unless it is too large.
func (c *compiler) expression(pattern string) *expression {
	size, err := matcher.Size(pattern)
	e := new(expression)
	switch limit, isLimit := errors.AsType[*matcher.LimitError](err); {
	case isLimit:
		e.limit = limit
	case err != nil:
		c.err = cmp.Or(c.err, err)
	case c.programs > maxPrograms-size:
		e.limit = &matcher.LimitError{Pattern: pattern, Problem: fmt.Sprintf("and the others of the schema compile to more than %d instructions", maxPrograms)}
	default:
		c.programs += size
		e.Regexp, err = matcher.Compile(pattern)
		c.err = cmp.Or(c.err, err)
	}
	return e
}

// node returns the node of a schema and adds those of all schemas inside it. References
// are followed later.
func (c *compiler) node(s *jsonschema.Schema, at string) *node {
	if s == nil {
		return nil
	}
	n := open()
	n.at, n.ref = at, s.Ref
	c.byPointer[at] = n
	c.readOwn(n, s)
	c.members(n, s)
	c.elements(n, s)
	c.combine(n, s)
	n.listed = valuesIn(n.fixed) + len(s.Required) + len(s.Properties) + len(s.DependentSchemas) + len(s.DependencySchemas)
	for _, names := range []map[string][]string{s.DependentRequired, s.DependencyStrings} {
		for _, required := range names {
			n.listed += 1 + len(required)
		}
	}
	for key, of := range map[string]map[string]*jsonschema.Schema{"$defs": s.Defs, "definitions": s.Definitions} { // what references lead to
		c.byName(of, at+"/"+key)
	}
	c.node(s.ContentSchema, at+"/contentSchema")
	if n.never = s.Not != nil && reflect.ValueOf(*s.Not).IsZero(); n.never { // false is read as not: {}
		n.types = 0
	}
	return n
}

// valuesIn returns how many values there are in a value, as they count for [node.listed]. To compare arrays
// and objects takes eight times as long as texts.
func valuesIn(v any) (n int) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			n += valuesIn(item)
		}
	case map[string]any:
		for _, member := range v {
			n += valuesIn(member)
		}
	default:
		return 1
	}
	return n + 8
}

// link completes a node with the target of its reference.
func (c *compiler) link(n *node) error {
	if n.ref != "" {
		target := c.byPointer[n.ref[1:]]
		if target == nil {
			return fmt.Errorf("%w: \"$ref\" in %s leads nowhere: there is no %q", ErrInvalid, place(n.at), n.ref)
		}
		if c.draft7 { // other keywords have no effect next to a reference
			at := n.at
			*n = *open()
			n.at = at
		}
		n.every = append([]*node{target}, n.every...)
	}
	n.inPlace = appendNode(slices.Concat(append(slices.Clip(n.some), n.every, n.maybe, n.unused)...), n.not)
	return nil
}

// countWays counts in how many ways the schemas inside a schema apply to the same value.
// A schema that is being counted has the count -1.
func (n *node) countWays(known map[*node]int) error {
	switch count, seen := known[n]; {
	case count < 0:
		return fmt.Errorf("%w: %s refers to itself without going into the value, so it has no end", ErrInvalid, place(n.at))
	case seen:
		return nil
	}
	known[n] = -1
	total := 1
	for _, e := range n.inPlace {
		if err := e.countWays(known); err != nil {
			return err
		}
		if total += known[e]; total > maxPaths {
			return fmt.Errorf("%w: %s applies to one value in more than %d ways", ErrInvalid, place(e.at), maxPaths)
		}
	}
	known[n] = total
	return nil
}

// readOwn reads the keywords about the value as a whole.
func (c *compiler) readOwn(n *node, s *jsonschema.Schema) {
	names := s.Types
	if s.Type != "" {
		names = []string{s.Type}
	}
	if names != nil {
		n.types, n.integer = 0, !slices.Contains(names, "number")
		for _, name := range names {
			if name == "integer" {
				name = "number"
			}
			n.types |= 1 << slices.Index(typeNames, name)
		}
	}
	n.fixed = s.Enum
	if s.Const != nil {
		n.fixed, n.guard = []any{*s.Const}, true
	}
	n.min, n.max = cmp.Or(s.Minimum, s.ExclusiveMinimum), cmp.Or(s.Maximum, s.ExclusiveMaximum) // an exclusive bound counts as its own value
	n.pattern, n.format = s.Pattern, s.Format
	if s.Pattern != "" {
		if n.matches = c.expression(s.Pattern); n.matches.limit != nil {
			s.Pattern = "" // the validator would compile it
		}
	}
	if s.MaxLength != nil {
		n.maxLength = *s.MaxLength
	}
	if s.MaxItems != nil {
		n.maxItems = *s.MaxItems
	}
}

func (c *compiler) members(n *node, s *jsonschema.Schema) {
	n.props = c.byName(s.Properties, n.at+"/properties")
	for pattern, p := range c.byName(s.PatternProperties, n.at+"/patternProperties") {
		name := c.expression(pattern)
		if n.patterns = append(n.patterns, patterned{name, p}); name.limit != nil {
			delete(s.PatternProperties, pattern) // the validator would compile it
		}
	}
	slices.SortFunc(n.patterns, func(a, b patterned) int { return strings.Compare(a.node.at, b.node.at) })
	n.required = s.Required
	n.rest = c.node(s.AdditionalProperties, n.at+"/additionalProperties")
	n.names = c.node(s.PropertyNames, n.at+"/propertyNames")
	n.unevaluated = c.node(s.UnevaluatedProperties, n.at+"/unevaluatedProperties")
	if n.rest == nil && isAlone(s) {
		n.rest, n.unevaluated = n.unevaluated, nil
	}
}

func (c *compiler) elements(n *node, s *jsonschema.Schema) {
	n.items = c.node(s.Items, n.at+"/items")
	additional, list := c.node(s.AdditionalItems, n.at+"/additionalItems"), c.list(s.ItemsArray, n.at+"/items")
	n.prefix = c.list(s.PrefixItems, n.at+"/prefixItems")
	if c.draft7 {
		if n.prefix = list; list != nil {
			n.items = additional
		}
	}
	n.contains = c.node(s.Contains, n.at+"/contains")
	n.unevaluatedSeq = c.node(s.UnevaluatedItems, n.at+"/unevaluatedItems")
	if n.items == nil && n.contains == nil && isAlone(s) {
		n.items, n.unevaluatedSeq = n.unevaluatedSeq, nil
	}
}

// isAlone reports whether no other schema applies to the same value: then the
// unevaluated members and items are those that the schema itself does not name.
func isAlone(s *jsonschema.Schema) bool {
	return s.Ref == "" && len(s.AllOf)+len(s.AnyOf)+len(s.OneOf)+len(s.DependentSchemas)+len(s.DependencySchemas) == 0 &&
		s.DependencyStrings == nil && s.Not == nil && s.If == nil && s.Then == nil && s.Else == nil
}

// combine reads the keywords whose schemas apply to the value itself.
func (c *compiler) combine(n *node, s *jsonschema.Schema) {
	n.every = c.list(s.AllOf, n.at+"/allOf")
	for key, of := range map[string][]*jsonschema.Schema{"/anyOf": s.AnyOf, "/oneOf": s.OneOf} {
		if of != nil {
			n.some = append(n.some, c.list(of, n.at+key))
		}
	}
	condition, then, otherwise := c.node(s.If, n.at+"/if"), c.node(s.Then, n.at+"/then"), c.node(s.Else, n.at+"/else")
	if condition != nil {
		n.maybe = appendNode(appendNode(append(n.maybe, condition), then), otherwise)
	}
	dependent, dependencies := c.byName(s.DependentSchemas, n.at+"/dependentSchemas"), c.byName(s.DependencySchemas, n.at+"/dependencies")
	if c.draft7 {
		dependent, dependencies = dependencies, dependent
	}
	n.maybe = slices.AppendSeq(n.maybe, maps.Values(dependent))
	n.unused = slices.Collect(maps.Values(dependencies))
	n.not = c.node(s.Not, n.at+"/not")
}

// byName returns the nodes of schemas by name, or nil.
func (c *compiler) byName(schemas map[string]*jsonschema.Schema, at string) map[string]*node {
	if schemas == nil {
		return nil
	}
	out := make(map[string]*node, len(schemas))
	for name, s := range schemas {
		out[name] = c.node(s, at+naming.Pointer(name))
	}
	return out
}

func (c *compiler) list(schemas []*jsonschema.Schema, at string) []*node {
	var out []*node
	for i, s := range schemas {
		out = append(out, c.node(s, at+"/"+strconv.Itoa(i)))
	}
	return out
}

func appendNode(to []*node, n *node) []*node {
	if n == nil {
		return to
	}
	return append(to, n)
}
