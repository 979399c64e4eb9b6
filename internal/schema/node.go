package schema

import (
	"context"

	"github.com/runteam/runteam/internal/matcher"
)

// A node is one schema inside a [Schema], with the keywords that restrict its values.
// Keywords that the validator ignores are left out, since nothing may rely on them.
type node struct {
	at    string // its pointer in the schema
	ref   string // the target of its $ref, as "#" and a pointer
	never bool   // the schema false
	types kinds  // what the value may be
	fixed []any  // values of enum or const; nil if the schema has neither
	guard bool   // fixed is a const that applies in any case

	listed int // values and names in its keywords, for each of which the validator looks

	textRules
	numberRules
	objectRules
	listRules
	combined
}

// textRules are the keywords for strings.
type textRules struct {
	pattern, format string
	matches         *expression // pattern, or nil
	maxLength       int         // -1 for none
}

// numberRules are the keywords for numbers.
type numberRules struct {
	integer  bool     // the number must be whole
	min, max *float64 // nil for none
}

// objectRules are the keywords for objects.
type objectRules struct {
	props       map[string]*node
	patterns    []patterned
	rest        *node    // for every other member; nil allows anything
	required    []string // names of members that every value has
	names       *node    // propertyNames
	unevaluated *node    // unevaluatedProperties
}

// listRules are the keywords for arrays.
type listRules struct {
	prefix         []*node
	items          *node // for every other item; nil allows anything
	maxItems       int   // -1 for none
	contains       *node
	unevaluatedSeq *node // unevaluatedItems
}

// combined are the schemas that apply to the same value.
type combined struct {
	every   []*node   // $ref and allOf
	some    [][]*node // anyOf and oneOf: one of each list
	maybe   []*node   // if, then, else and dependencies, which may apply
	unused  []*node   // dependencies that the validator ignores in this version of JSON Schema
	not     *node
	inPlace []*node // all of these
}

// patterned is a schema of patternProperties.
type patterned struct {
	name *expression
	node *node
}

// An expression is a pattern of a schema.
type expression struct {
	*matcher.Regexp
	limit *matcher.LimitError // why Regexp is nil: the pattern is too large
}

// mayMatch reports whether the expression matches a name, or might.
func (e *expression) mayMatch(name string) bool {
	if e.limit != nil {
		return true
	}
	found, err := e.MatchString(matcher.NewBudget(context.Background(), matcher.MaxSteps), name)
	return found || err != nil
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

// typeNames are the types that a schema may name: those of the kinds, and "integer".
var typeNames = []string{aNull: "null", aBoolean: "boolean", aNumeric: "number", aString: "string", anObject: "object", anArray: "array", kindCount: "integer"}

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

// open returns the node of a schema without keywords.
func open() *node {
	return &node{types: allKinds, textRules: textRules{maxLength: -1}, listRules: listRules{maxItems: -1}}
}

// Of returns the schema of one value, decoded as by package jsonvalue. It serves the
// questions about paths; it validates nothing.
func Of(v any) *Schema {
	n := fixedTo([]any{v})
	return &Schema{root: n, nodes: []*node{n}}
}

// fixedTo returns the node of a schema that lists its values.
func fixedTo(values []any) *node {
	n := open()
	n.fixed = values
	return n
}
