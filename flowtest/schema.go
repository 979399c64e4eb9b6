package flowtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/task"
)

// maxSchemas bounds how many schemas are merged for one canary.
const maxSchemas = 10_000

// requireText returns a schema whose values all have a text at a path, and the path with *
// for elements of arrays. The schema is a decoded document.
func requireText(root map[string]any, path []string, text string) (map[string]any, []string, error) {
	return requireAt(root, path, func(s map[string]any) (map[string]any, error) {
		if kind := s["type"]; kind != nil && !hasType(kind, "string") {
			return nil, fmt.Errorf("the schema allows no text there: its type is %v%s", kind, continuation(kind))
		}
		return map[string]any{"const": text}, nil
	})
}

// requireAt returns a schema whose values all have a value at a path, which value makes of the schema
// there, and the path with * for elements of arrays.
func requireAt(root map[string]any, path []string, value func(schema map[string]any) (map[string]any, error)) (map[string]any, []string, error) {
	r := requirement{schemas: schema.Merger{Root: root, Steps: maxSchemas}, value: value}
	required, err := r.at(root, path)
	if err != nil {
		return nil, nil, err
	}
	out := maps.Clone(root)
	maps.Copy(out, required)
	return out, r.steps, nil
}

// A requirement is a value that a schema is changed to require.
type requirement struct {
	schemas schema.Merger
	value   func(schema map[string]any) (map[string]any, error)
	steps   []string // the path so far, with * for elements of arrays
}

// at returns a schema whose values have the value at a path.
func (r *requirement) at(schema any, path []string) (map[string]any, error) {
	s := r.schemas.Merge(schema)
	switch {
	case len(path) == 0:
		return r.value(s)
	case isArray(s, path[0]):
		return r.inElement(s, path)
	}
	properties, _ := s["properties"].(map[string]any)
	member, ok := properties[path[0]]
	if !ok {
		if member, ok = s["additionalProperties"]; ok && member == false {
			return nil, fmt.Errorf("the schema has no property %q there", path[0])
		}
	}
	r.steps = append(r.steps, path[0])
	next, err := r.at(member, path[1:])
	if err != nil {
		return nil, err
	}
	if properties = maps.Clone(properties); properties == nil {
		properties = map[string]any{}
	}
	properties[path[0]] = next
	required, _ := s["required"].([]any)
	s["type"], s["properties"], s["required"] = "object", properties, append(slices.Clone(required), path[0])
	return s, nil
}

// maxElements bounds the elements that an array is made to have.
const maxElements = 100

// inElement requires the value in one element of an array: that with the number of the path, or
// for * each.
func (r *requirement) inElement(s map[string]any, path []string) (map[string]any, error) {
	r.steps = append(r.steps, "*")
	i, err := strconv.Atoi(path[0])
	if err != nil || i < 0 {
		next, err := r.at(s["items"], path[1:])
		s["type"], s["items"], s["minItems"] = "array", next, json.Number(strconv.Itoa(atLeast(s, 1)))
		return s, err
	}
	first, _ := s["prefixItems"].([]any)
	first = slices.Clone(first)
	for len(first) <= min(i, maxElements) {
		first = append(first, s["items"])
	}
	if i >= maxElements || atLeast(s, i+1) <= i {
		return nil, fmt.Errorf("the schema allows no element %d there, or it is too far", i)
	}
	first[i], err = r.at(first[i], path[1:])
	s["type"], s["prefixItems"], s["minItems"] = "array", first, json.Number(strconv.Itoa(atLeast(s, i+1)))
	return s, err
}

// continuation says how a path continues in a value of a type.
func continuation(kind any) string {
	switch kind {
	case "array":
		return "; the first element is at /0"
	case "object":
		return "; continue with the name of a property"
	}
	return ""
}

// isArray reports whether a path continues in an array with this token.
func isArray(s map[string]any, token string) bool {
	kind := s["type"]
	if kind != nil && (!hasType(kind, "array") || hasType(kind, "object")) {
		return false
	}
	_, err := strconv.Atoi(token)
	return kind == "array" || s["items"] != nil && (token == "*" || err == nil)
}

// hasType reports whether the value of a type keyword has a type.
func hasType(kind any, name string) bool {
	list, _ := kind.([]any)
	return kind == name || slices.Contains(list, any(name))
}

// maxDepth bounds how deep the values of a schema are searched for texts.
const maxDepth = 6

// freeTexts returns the paths of the texts that a schema leaves free.
func freeTexts(schemas *schema.Merger, schema any, at task.Path, depth int) (out []task.Path) {
	if depth > maxDepth {
		return nil
	}
	s := schemas.Merge(schema)
	switch {
	case hasType(s["type"], "string"):
		if fitsCanary(s) {
			return []task.Path{at}
		}
		return nil
	case s["items"] != nil:
		return freeTexts(schemas, s["items"], at+"/0", depth+1)
	}
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		out = append(out, freeTexts(schemas, properties[name], at+task.Path(naming.Pointer(name)), depth+1)...)
	}
	return out
}

// fitsCanary reports whether a text may be a canary.
func fitsCanary(s map[string]any) bool {
	for _, key := range []string{"const", "enum", "pattern", "format", "anyOf", "oneOf", "not", "if"} {
		if s[key] != nil {
			return false
		}
	}
	longest, bounded := s["maxLength"].(json.Number)
	n, err := longest.Int64()
	least, _ := s["minLength"].(json.Number)
	m, _ := least.Int64()
	return (!bounded || err == nil && n >= 2*syllables) && m <= 2*syllables && !strings.Contains(fmt.Sprint(s["contentEncoding"]), "base64")
}

// decodeSchema decodes a schema, with its numbers as they are written. Without one, every
// object is allowed.
func decodeSchema(text string) (out map[string]any, err error) {
	if text == "" {
		return map[string]any{"type": "object"}, nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	err = d.Decode(&out)
	return out, err
}
