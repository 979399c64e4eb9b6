package schema

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/naming"
)

// A node is one schema inside a [Schema], with those of its keywords that say
// what can stand where. A keyword that the validator ignores is left out here
// too: what the one does not hold, the other must not promise.
type node struct {
	at    string // its pointer in the schema
	never bool   // the schema false
	types kinds  // what may stand here
	fixed []any  // of enum or const; nil if the schema has neither
	guard bool   // fixed is a const

	textRules
	numberRules
	objectRules
	listRules
	combined
}

// textRules are the keywords for strings.
type textRules struct {
	pattern, format string
	maxLength       int // -1 for none
}

// numberRules are the keywords for numbers.
type numberRules struct {
	integer  bool     // a number that may stand here is whole
	min, max *float64 // nil for none
}

// objectRules are the keywords for objects.
type objectRules struct {
	props       map[string]*node
	patterns    []patterned
	rest        *node    // of every other member; nil lets anything through
	required    []string // names that stand there in any case
	names       *node    // propertyNames
	unevaluated *node    // unevaluatedProperties
}

// listRules are the keywords for arrays.
type listRules struct {
	prefix         []*node
	items          *node // of every other item; nil lets anything through
	maxItems       int   // -1 for none
	contains       *node
	unevaluatedSeq *node // unevaluatedItems
}

// combined are the schemas that apply to the same value.
type combined struct {
	every   []*node   // $ref and allOf
	some    [][]*node // anyOf and oneOf: one of each list
	maybe   []*node   // if, then, else and dependencies: may apply
	inPlace []*node   // all of these, and not
}

// patterned is a schema of patternProperties.
type patterned struct {
	name *regexp.Regexp
	node *node
}

// kinds is a set of kinds of values, by bit.
type kinds uint8

// kind is one kind of value.
type kind int

const (
	aNull kind = iota
	aBoolean
	aNumeric
	aString
	anObject
	anArray
	kindCount
)

const allKinds kinds = 1<<kindCount - 1

var kindOfType = map[string]kind{
	"null": aNull, "boolean": aBoolean, "number": aNumeric, "integer": aNumeric, "string": aString, "object": anObject, "array": anArray,
}

func (ks kinds) has(k kind) bool { return ks&(1<<k) != 0 }

// kindOf returns the kind of a decoded value.
func kindOf(v any) kind {
	switch v.(type) {
	case nil:
		return aNull
	case bool:
		return aBoolean
	case string:
		return aString
	case map[string]any:
		return anObject
	case []any:
		return anArray
	}
	return aNumeric
}

// open is the node of a schema that says nothing.
func open() *node {
	return &node{types: allKinds, textRules: textRules{maxLength: -1}, listRules: listRules{maxItems: -1}}
}

// fixedTo is the node of a schema that lists its values.
func fixedTo(values []any) *node {
	n := open()
	n.fixed = values
	return n
}

// compile returns the node of a schema that was checked and resolved, and all
// nodes that it can reach.
func compile(canonical string) (*node, []*node, error) {
	var root any
	if err := json.Unmarshal([]byte(canonical), &root); err != nil {
		return nil, nil, err
	}
	c := &compiler{root: root, seen: map[string]*node{}}
	if members, ok := root.(map[string]any); ok {
		draft, _ := members["$schema"].(string)
		c.draft7 = strings.HasSuffix(draft, "://json-schema.org/draft-07/schema#")
	}
	n := c.node(root, "")
	return n, c.all, nil
}

type compiler struct {
	root   any
	draft7 bool
	seen   map[string]*node // by pointer
	all    []*node
}

func (c *compiler) node(v any, at string) *node {
	if n, ok := c.seen[at]; ok {
		return n
	}
	n := open()
	n.at = at
	c.seen[at] = n
	c.all = append(c.all, n)
	if v == false {
		n.never, n.types = true, 0
		return n
	}
	in, _ := v.(map[string]any)
	if ref, ok := in["$ref"].(string); ok {
		target, _ := find(c.root, ref[1:])
		n.every = append(n.every, c.node(target, ref[1:]))
		if c.draft7 {
			n.inPlace = n.every
			return n // its neighbours have no effect there
		}
	}
	c.own(n, in)
	c.members(n, in)
	c.elements(n, in)
	c.inPlace(n, in)
	return n
}

// own reads the keywords about the value as a whole.
func (c *compiler) own(n *node, in map[string]any) {
	switch t := in["type"].(type) {
	case string:
		n.types = 1 << kindOfType[t]
	case []any:
		n.types = 0
		for _, name := range t {
			n.types |= 1 << kindOfType[name.(string)]
		}
	}
	if values, ok := in["enum"].([]any); ok {
		n.fixed = values
		if values == nil {
			n.fixed = []any{}
		}
	}
	if value, ok := in["const"]; ok {
		n.fixed, n.guard = []any{value}, true
	}
	n.integer = in["type"] == "integer" || !n.types.has(aNumeric)
	if types, ok := in["type"].([]any); ok {
		n.integer = !slices.Contains(types, any("number"))
	}
	n.min, n.max = bound(in, "minimum", "exclusiveMinimum"), bound(in, "maximum", "exclusiveMaximum")
	n.pattern, _ = in["pattern"].(string)
	n.format, _ = in["format"].(string)
	n.maxLength, n.maxItems = count(in["maxLength"]), count(in["maxItems"])
}

// bound returns a bound of numbers; an exclusive one counts as its own value.
func bound(in map[string]any, keys ...string) *float64 {
	for _, key := range keys {
		if f, ok := in[key].(float64); ok {
			return &f
		}
	}
	return nil
}

// count returns the value of a keyword that counts, or -1.
func count(v any) int {
	if f, ok := v.(float64); ok {
		return int(min(f, 1<<31-1))
	}
	return -1
}

func (c *compiler) members(n *node, in map[string]any) {
	if props, ok := in["properties"].(map[string]any); ok {
		n.props = make(map[string]*node, len(props))
		for name := range props {
			n.props[name] = c.node(props[name], n.at+"/properties"+naming.Pointer(name))
		}
	}
	patterns, _ := in["patternProperties"].(map[string]any)
	for pattern := range patterns {
		n.patterns = append(n.patterns, patterned{regexp.MustCompile(pattern), c.node(patterns[pattern], n.at+"/patternProperties"+naming.Pointer(pattern))})
	}
	slices.SortFunc(n.patterns, func(a, b patterned) int { return strings.Compare(a.node.at, b.node.at) })
	names, _ := in["required"].([]any)
	for _, name := range names {
		n.required = append(n.required, name.(string))
	}
	n.rest = c.child(n, in, "additionalProperties")
	n.names = c.child(n, in, "propertyNames")
	n.unevaluated = c.child(n, in, "unevaluatedProperties")
	if n.rest == nil && alone(in) {
		n.rest, n.unevaluated = n.unevaluated, nil
	}
}

func (c *compiler) elements(n *node, in map[string]any) {
	lists, rest := "prefixItems", "items"
	if _, list := in["items"].([]any); c.draft7 {
		lists = "items"
		if list {
			rest = "additionalItems"
		}
	}
	list, _ := in[lists].([]any)
	for i := range list {
		n.prefix = append(n.prefix, c.node(list[i], n.at+"/"+lists+"/"+strconv.Itoa(i)))
	}
	n.items = c.child(n, in, rest)
	n.contains = c.child(n, in, "contains")
	n.unevaluatedSeq = c.child(n, in, "unevaluatedItems")
	if n.items == nil && n.contains == nil && alone(in) {
		n.items, n.unevaluatedSeq = n.unevaluatedSeq, nil
	}
}

// alone reports whether no other schema applies to the same value: then the
// unevaluated members and items are those that the schema itself does not name.
func alone(in map[string]any) bool {
	for _, key := range append([]string{"$ref"}, inPlace...) {
		if _, ok := in[key]; ok {
			return false
		}
	}
	return true
}

func (c *compiler) inPlace(n *node, in map[string]any) {
	n.every = append(n.every, c.list(n, in, "allOf")...)
	for _, key := range []string{"anyOf", "oneOf"} {
		if _, ok := in[key]; ok {
			n.some = append(n.some, c.list(n, in, key))
		}
	}
	if n.maybe = appendNode(n.maybe, c.child(n, in, "if")); n.maybe != nil {
		n.maybe = appendNode(n.maybe, c.child(n, in, "then"))
		n.maybe = appendNode(n.maybe, c.child(n, in, "else"))
	}
	key := "dependentSchemas"
	if c.draft7 {
		key = "dependencies"
	}
	schemas, _ := in[key].(map[string]any)
	for name := range schemas {
		if isSchema(schemas[name]) {
			n.maybe = append(n.maybe, c.node(schemas[name], n.at+"/"+key+naming.Pointer(name)))
		}
	}
	n.inPlace = slices.Concat(append(slices.Clip(n.some), n.every, n.maybe, appendNode(nil, c.child(n, in, "not")))...)
}

func appendNode(to []*node, n *node) []*node {
	if n == nil {
		return to
	}
	return append(to, n)
}

// child returns the schema behind a keyword, or nil.
func (c *compiler) child(n *node, in map[string]any, key string) *node {
	if v, ok := in[key]; ok && isSchema(v) {
		return c.node(v, n.at+"/"+key)
	}
	return nil
}

func (c *compiler) list(n *node, in map[string]any, key string) []*node {
	values, _ := in[key].([]any)
	var out []*node
	for i := range values {
		out = append(out, c.node(values[i], n.at+"/"+key+"/"+strconv.Itoa(i)))
	}
	return out
}
