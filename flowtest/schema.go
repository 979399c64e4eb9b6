package flowtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
)

// demand returns a schema all of whose instances have a text at a path, and the
// path with * for elements of arrays. The schema is a decoded document; what is
// not demanded of it stays as it is.
func demand(root map[string]any, path []string, text string) (map[string]any, []string, error) {
	d := demander{root: root, text: text}
	out, err := d.at(root, path)
	if err != nil {
		return nil, nil, err
	}
	schema := maps.Clone(root)
	maps.Copy(schema, out.(map[string]any))
	return schema, d.steps, nil
}

type demander struct {
	root  map[string]any
	text  string
	steps []string
}

func (d *demander) at(schema any, path []string) (any, error) {
	s := d.resolved(schema, 0)
	if len(path) == 0 {
		if kind := s["type"]; kind != nil && kind != "string" && !isOneOf(kind, "string") {
			return nil, fmt.Errorf("no text can be there: the schema says %v%s", kind, within(kind))
		}
		return map[string]any{"const": d.text}, nil
	}
	s = maps.Clone(s)
	if isArray(s, path[0]) {
		return d.element(s, path)
	}
	properties, _ := s["properties"].(map[string]any)
	member, ok := properties[path[0]]
	if !ok {
		if member, ok = s["additionalProperties"]; ok && member == false {
			return nil, fmt.Errorf("the schema has no property %q there", path[0])
		}
	}
	d.steps = append(d.steps, path[0])
	next, err := d.at(member, path[1:])
	if err != nil {
		return nil, err
	}
	properties = maps.Clone(properties)
	if properties == nil {
		properties = map[string]any{}
	}
	properties[path[0]] = next
	required, _ := s["required"].([]any)
	s["type"], s["properties"], s["required"] = "object", properties, append(slices.Clone(required), path[0])
	return s, nil
}

// within says how to continue a path in a value of a type.
func within(kind any) string {
	switch kind {
	case "array":
		return "; the first element is at /0"
	case "object":
		return "; continue with the name of a property"
	}
	return ""
}

// element demands something of the first element of an array.
func (d *demander) element(s map[string]any, path []string) (any, error) {
	d.steps = append(d.steps, "*")
	next, err := d.at(s["items"], path[1:])
	if err != nil {
		return nil, err
	}
	s["type"], s["items"] = "array", next
	if least, ok := s["minItems"].(json.Number); !ok || least == "0" {
		s["minItems"] = json.Number("1")
	}
	return s, nil
}

// isArray reports whether a path continues in an array.
func isArray(s map[string]any, token string) bool {
	switch kind := s["type"].(type) {
	case string:
		return kind == "array"
	case []any:
		if !slices.Contains(kind, any("array")) || slices.Contains(kind, any("object")) {
			return false
		}
	}
	_, err := strconv.Atoi(token)
	_, items := s["items"]
	return items && (token == "*" || err == nil)
}

// resolved returns a schema with what it refers to and what it is made of in it.
func (d *demander) resolved(schema any, level int) map[string]any {
	s, _ := schema.(map[string]any)
	if s == nil || level > 16 {
		return map[string]any{}
	}
	out := maps.Clone(s)
	delete(out, "$ref")
	delete(out, "allOf")
	var parts []any
	if ref, ok := s["$ref"].(string); ok {
		parts = append(parts, d.named(ref))
	}
	if all, ok := s["allOf"].([]any); ok {
		parts = append(parts, all...)
	}
	for _, part := range parts {
		for key, v := range d.resolved(part, level+1) {
			old, isMap := out[key].(map[string]any)
			add, canJoin := v.(map[string]any)
			switch {
			case isMap && canJoin && key == "properties":
				joined := maps.Clone(add)
				maps.Copy(joined, old)
				out[key] = joined
			case out[key] == nil:
				out[key] = v
			}
		}
	}
	return out
}

// named returns the part of the document that a local reference names.
func (d *demander) named(ref string) any {
	rest, local := strings.CutPrefix(ref, "#")
	if !local {
		return nil
	}
	var at any = d.root
	for _, token := range pick.Tokens(task.Path(rest)) {
		o, _ := at.(map[string]any)
		at = o[token]
	}
	return at
}

// decoded reads a JSON document with its numbers as they are written.
func decoded(text string) (map[string]any, error) {
	if text == "" {
		return map[string]any{"type": "object"}, nil
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var v map[string]any
	err := d.Decode(&v)
	return v, err
}
