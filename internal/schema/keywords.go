package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/naming"
)

// A shape is the kind of value that a keyword of a JSON Schema has.
type shape uint8

const (
	anything shape = iota
	aText
	aNumber
	aCount // a whole number from 0
	aBool
	texts         // a list of texts
	aSchema       // a schema, or true or false
	schemas       // a list of schemas
	schemaMap     // schemas by name
	textsMap      // lists of texts by name
	aList         // of any values
	aType         // the name of a type, or a list of them
	schemaList    // a schema or a list of them
	dependencyMap // schemas or lists of texts by name
)

var shapes = map[shape]string{
	aText: "a text", aNumber: "a number", aCount: "a whole number from 0", aBool: "true or false",
	texts: "a list of texts", aSchema: "a schema", schemas: "a list of schemas", schemaMap: "schemas by name",
	textsMap: "lists of texts by name", aList: "a list of values", aType: "one of " + strings.Join(typeNames, ", ") + ", or a list of them", schemaList: "a schema or a list of them",
	dependencyMap: "schemas or lists of texts by name",
}

// keywords are those of JSON Schema 2020-12 and of draft 7, which the
// validator knows: https://json-schema.org/draft/2020-12/schema. Anchors and
// dynamic references are left out: pointers do the same, and their recursion can be
// checked. A key that begins with x- is a comment with any value.
var keywords = map[string]shape{
	"$id": aText, "$schema": aText, "$ref": aText, "$comment": aText,
	"$defs": schemaMap, "definitions": schemaMap, "$vocabulary": anything,
	"title": aText, "description": aText, "default": anything, "examples": anything, "deprecated": aBool, "readOnly": aBool, "writeOnly": aBool,
	"type": aType, "enum": aList, "const": anything,
	"multipleOf": aNumber, "minimum": aNumber, "maximum": aNumber, "exclusiveMinimum": aNumber, "exclusiveMaximum": aNumber,
	"minLength": aCount, "maxLength": aCount, "pattern": aText, "format": aText, "contentEncoding": aText, "contentMediaType": aText, "contentSchema": aSchema,
	"prefixItems": schemas, "items": schemaList, "additionalItems": aSchema, "minItems": aCount, "maxItems": aCount, "uniqueItems": aBool,
	"contains": aSchema, "minContains": aCount, "maxContains": aCount, "unevaluatedItems": aSchema,
	"minProperties": aCount, "maxProperties": aCount, "required": texts, "dependentRequired": textsMap, "properties": schemaMap,
	"patternProperties": schemaMap, "additionalProperties": aSchema, "propertyNames": aSchema, "unevaluatedProperties": aSchema,
	"allOf": schemas, "anyOf": schemas, "oneOf": schemas, "not": aSchema, "if": aSchema, "then": aSchema, "else": aSchema,
	"dependentSchemas": schemaMap, "dependencies": dependencyMap,
}

// checkKeywords returns an error for the first keyword, in the order of their names,
// that is unknown or has a value of the wrong shape. The validator ignores unknown
// keywords, so that a misspelled one would allow everything.
func checkKeywords(v any, at string) error {
	if _, ok := v.(bool); ok {
		return nil
	}
	members, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("%w: %s must be a mapping of keywords, such as {type: object}", ErrInvalid, place(at))
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		s, known := keywords[key]
		if !known && !strings.HasPrefix(key, "x-") {
			hint := ""
			if near, ok := naming.Nearest(key, slices.Sorted(maps.Keys(keywords))); ok {
				hint = fmt.Sprintf(": did you mean %q?", near)
			}
			return fmt.Errorf("%w: unknown keyword %q in %s%s", ErrInvalid, key, place(at), hint)
		}
		if !s.allows(members[key]) {
			return fmt.Errorf("%w: %q in %s must be %s", ErrInvalid, key, place(at), shapes[s])
		}
		if ref, _ := members[key].(string); key == "$ref" && ref != "#" && !strings.HasPrefix(ref, "#/") {
			return fmt.Errorf("%w: \"$ref\" in %s must be # or begin with #/: nothing is fetched; write what it means under $defs", ErrInvalid, place(at))
		}
		if ref, _ := members[key].(string); key == "$ref" && strings.Contains(ref, "%") {
			return fmt.Errorf("%w: \"$ref\" in %s has a %%, which some read as an escape: name the definition without it", ErrInvalid, place(at))
		}
		if key == "$id" && at != "" {
			return fmt.Errorf("%w: \"$id\" in %s: only the schema as a whole can have one", ErrInvalid, place(at))
		}
		if err := s.eachSchema(members[key], at+naming.Pointer(key), checkKeywords); err != nil {
			return err
		}
	}
	return nil
}

func place(at string) string {
	if at == "" {
		return "the schema"
	}
	return at
}

// allows reports whether a value has the shape. It does not look into schemas.
func (s shape) allows(v any) bool {
	switch s {
	case aText:
		return is[string](v)
	case aNumber:
		return isNumber(v)
	case aCount:
		n, ok := native(v).(int64)
		return ok && n >= 0
	case aBool:
		return is[bool](v)
	case texts:
		return all(v, is[string])
	case aSchema:
		return isSchema(v)
	case schemas:
		return all(v, isSchema)
	case schemaList:
		return isSchema(v) || all(v, isSchema)
	case schemaMap:
		return each(v, isSchema)
	case textsMap:
		return each(v, func(v any) bool { return all(v, is[string]) })
	case dependencyMap:
		return each(v, func(v any) bool { return isSchema(v) || all(v, is[string]) })
	case aList:
		return is[[]any](v)
	case aType:
		return isType(v) || all(v, isType)
	}
	return true
}

// eachSchema calls fn for each schema inside a value of this shape.
func (s shape) eachSchema(v any, at string, fn func(v any, at string) error) error {
	switch s {
	case aSchema, schemas, schemaList:
		if items, ok := v.([]any); ok {
			for i, item := range items {
				if err := fn(item, fmt.Sprintf("%s/%d", at, i)); err != nil {
					return err
				}
			}
			return nil
		}
		return fn(v, at)
	case schemaMap, dependencyMap:
		members, _ := v.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if !isSchema(members[name]) {
				continue // a list of names
			}
			if err := fn(members[name], at+naming.Pointer(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

func isNumber(v any) bool {
	switch native(v).(type) {
	case int64, float64:
		return true
	}
	return false
}

func isSchema(v any) bool { return is[bool](v) || is[map[string]any](v) }

func isType(v any) bool {
	name, ok := v.(string)
	return ok && slices.Contains(typeNames, name)
}

func all(v any, fits func(any) bool) bool {
	items, ok := v.([]any)
	return ok && !slices.ContainsFunc(items, func(item any) bool { return !fits(item) })
}

func each(v any, fits func(any) bool) bool {
	members, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for _, member := range members {
		if !fits(member) {
			return false
		}
	}
	return true
}
