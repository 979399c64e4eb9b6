package openai

import (
	"encoding/json"
	"slices"
)

// Limits of a schema in strict mode (platform.openai.com/docs/guides/structured-outputs).
const (
	maxStrictDepth      = 5      // levels of nested objects and arrays
	maxStrictProperties = 100    // of all objects
	maxStrictEnum       = 500    // values of all enums
	maxStrictNames      = 15_000 // bytes of names and of values of enums
)

// strictSchema reports whether strict mode accepts a schema, and whether the schema
// requires an object.
//
// OpenAI documents the rules: each object lists all its properties as required and
// allows no others, and only some keywords may be used. The limits on size are those
// that OpenAI published first and Azure has kept
// (learn.microsoft.com/azure/ai-services/openai/how-to/structured-outputs).
func strictSchema(raw json.RawMessage) (strict, isObject bool) {
	var root map[string]any
	if json.Unmarshal(raw, &root) != nil {
		return false, false
	}
	isObject = root["type"] == "object"
	var s strictSize
	return isObject && s.within(root, 1) && s.properties <= maxStrictProperties && s.enum <= maxStrictEnum && s.names <= maxStrictNames, isObject
}

// A strictSize counts what strict mode limits in a schema.
type strictSize struct{ properties, enum, names int }

// strictFormats are the values of format in strict mode.
var strictFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

// within adds the size of a schema to s, and reports whether strict mode accepts its
// keywords and their values.
func (s *strictSize) within(v any, depth int) bool {
	node, ok := v.(map[string]any)
	if !ok || depth > maxStrictDepth {
		return false
	}
	all := func(schemas any) bool {
		named, ok := schemas.(map[string]any)
		for name, schema := range named {
			s.names += len(name)
			ok = ok && s.within(schema, depth+1)
		}
		return ok
	}
	ok = node["type"] != nil || node["anyOf"] != nil || node["$ref"] != nil
	for keyword, value := range node {
		switch keyword {
		case "type", "additionalProperties", "required", "title", "description", "$schema", "$ref",
			"pattern", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems":
		case "format":
			name, _ := value.(string)
			ok = ok && slices.Contains(strictFormats, name)
		case "properties":
			ok = ok && all(value)
		case "$defs", "definitions":
			ok = ok && depth == 1 && all(value)
		case "items":
			ok = ok && s.within(value, depth+1)
		case "anyOf":
			schemas, _ := value.([]any)
			for _, schema := range schemas {
				ok = ok && depth > 1 && s.within(schema, depth)
			}
		case "enum":
			values, _ := value.([]any)
			s.enum += len(values)
			for _, value := range values {
				ok = ok && s.add(value)
			}
		case "const":
			ok = ok && s.add(value)
		default:
			return false
		}
	}
	if !ok {
		return false
	}
	if hasType(node["type"], "array") && node["items"] == nil {
		return false
	}
	return !hasType(node["type"], "object") || s.closed(node)
}

// add adds the size of a value of an enum or const, and reports whether it is a scalar.
func (s *strictSize) add(value any) bool {
	switch value := value.(type) {
	case string:
		s.names += len(value)
	case []any, map[string]any:
		return false
	}
	return true
}

// hasType reports whether the value of a type keyword names a type.
func hasType(types any, name string) bool {
	list, _ := types.([]any)
	return types == name || slices.Contains(list, any(name))
}

// closed adds the properties of an object schema, and reports whether it requires all of
// them and allows no others.
func (s *strictSize) closed(node map[string]any) bool {
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	s.properties += len(properties)
	for name := range properties {
		if !slices.Contains(required, any(name)) {
			return false
		}
	}
	return node["additionalProperties"] == false && len(required) == len(properties)
}
