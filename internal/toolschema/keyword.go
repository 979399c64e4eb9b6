package toolschema

import "strconv"

// A holding says how a keyword holds schemas.
type holding int

const (
	noSchema  holding = iota
	oneSchema         // a schema
	aList             // a list of schemas
	aMap              // schemas by name
)

// usualHolding returns how a keyword of draft 4 to 2020-12 holds schemas (json-schema.org/specification).
// items holds a list in earlier drafts, and dependencies also lists of names.
func usualHolding(keyword string) holding {
	switch keyword {
	case "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
		"unevaluatedItems", "unevaluatedProperties":
		return oneSchema
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return aList
	case "$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties":
		return aMap
	}
	return noSchema
}

// holdingOf returns how a keyword with this value holds schemas.
func holdingOf(keyword string, value any) holding {
	h := usualHolding(keyword)
	switch value.(type) {
	case *array:
		if keyword == "items" || h == aList {
			return aList
		}
	case *object:
		if h == oneSchema || h == aMap {
			return h
		}
	default:
		if h == oneSchema { // true and false are schemas
			return h
		}
	}
	return noSchema
}

// A walker visits a schema and all schemas in it. Values that are no objects are skipped.
type walker struct {
	visit  func(o *object, at []string) // at are the tokens of a JSON Pointer to o, until visit returns
	tokens []string
}

func (w *walker) walk(v any) {
	o := objectOf(v)
	if o == nil {
		return
	}
	w.visit(o, w.tokens)
	n := len(w.tokens)
	for _, m := range o.members {
		switch holdingOf(m.name, m.value) {
		case oneSchema:
			w.tokens = append(w.tokens[:n], m.name)
			w.walk(m.value)
		case aList:
			for i, item := range listOf(m.value) {
				w.tokens = append(w.tokens[:n], m.name, strconv.Itoa(i))
				w.walk(item)
			}
		case aMap:
			for _, named := range objectOf(m.value).members {
				w.tokens = append(w.tokens[:n], m.name, named.name)
				w.walk(named.value)
			}
		}
	}
	w.tokens = w.tokens[:n]
}

// walk calls visit for a schema and all schemas in it.
func walk(v any, visit func(o *object)) {
	w := walker{visit: func(o *object, _ []string) { visit(o) }}
	w.walk(v)
}

// walkAll is walk, and also calls visit for what could be a schema below an unknown keyword, to which
// references may lead.
func walkAll(v any, visit func(o *object)) {
	walk(v, func(o *object) {
		visit(o)
		for _, m := range o.members {
			if usualHolding(m.name) == noSchema && !holdsData(m.name) {
				visitObjects(m.value, visit)
			}
		}
	})
}

func visitObjects(v any, visit func(o *object)) {
	switch v := v.(type) {
	case *object:
		visit(v)
		for _, m := range v.members {
			visitObjects(m.value, visit)
		}
	case *array:
		for _, item := range v.items {
			visitObjects(item, visit)
		}
	}
}

// holdsData reports whether the value of a keyword is an example of what its schema describes.
func holdsData(keyword string) bool {
	switch keyword {
	case "enum", "const", "default", "examples", "example":
		return true
	}
	return false
}

// Combinations at the top of the parameters, which OpenAI refuses, and references, which others do.
var combinations = []string{"anyOf", "oneOf", "allOf", "not", "if", "then", "else", "enum", "const", "$ref"}

// isType reports whether JSON Schema has a type.
func isType(name string) bool {
	switch name {
	case "object", "array", "string", "number", "integer", "boolean", "null":
		return true
	}
	return false
}
