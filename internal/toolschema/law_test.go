package toolschema_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/internal/toolschema"
)

func init() { slowtest.Checks(100) }

type object = map[string]any

// drawn is a schema and a value that is valid for it.
type drawn struct{ schema, value any }

// names are names of properties: some are valid for all providers, some for none.
var names = []string{"a", "b", "input", "a.b", "a b", "$top", "", "größe"}

// aSchema draws a schema and a value for it. References lead to the definitions, and to the top.
func aSchema(t *rapid.T, definitions map[string]drawn, depth int) drawn {
	leaves := []drawn{
		{object{"type": "string"}, "text"}, {object{"type": "string", "minLength": 2, "pattern": "^[a-z]+$", "format": "hostname"}, "ab"},
		{object{"type": "integer", "minimum": 1, "exclusiveMaximum": 5}, 3}, {object{"type": "number", "multipleOf": 2, "default": 2}, 4},
		{object{"type": []any{"string", "null"}}, nil}, {object{"type": []any{"integer", "string"}, "maximum": 9}, "9"}, {object{"enum": []any{"x", nil, 3}}, 3},
		{object{"type": "string", "enum": []any{"x", ""}}, "x"}, {object{"const": object{"a b": []any{1}}}, object{"a b": []any{1}}}, {object{"enum": []any{"x", nil}}, nil},
		{true, object{"a b": 1}}, {object{}, []any{"$top"}}, {object{"type": "boolean"}, true}, {object{"type": "null"}, nil},
	}
	if depth == 0 {
		return rapid.SampledFrom(leaves).Draw(t, "leaf")
	}
	sub := func() drawn { return aSchema(t, definitions, depth-1) }
	switch rapid.SampledFrom([]string{"leaf", "object", "object", "array", "tuple", "anyOf", "oneOf", "allOf", "not", "if", "$ref", "map"}).Draw(t, "kind") {
	case "object":
		return anObject(t, definitions, depth)
	case "array":
		d := sub()
		return drawn{object{"type": "array", "items": d.schema, "maxItems": 4}, []any{d.value, d.value}}
	case "tuple":
		d, e := sub(), sub()
		return drawn{object{"type": "array", "prefixItems": []any{d.schema, e.schema}, "items": false}, []any{d.value, e.value}}
	case "anyOf":
		d, e := sub(), sub()
		return drawn{object{"anyOf": []any{d.schema, e.schema}, "title": "Either"}, e.value}
	case "oneOf":
		d, e := anObject(t, definitions, depth-1), anObject(t, definitions, depth-1)
		for i, of := range []drawn{d, e} { // told apart by a member
			of.schema.(object)["properties"].(object)["b"] = object{"const": i}
			of.schema.(object)["required"] = append(required(of.schema), "b")
			of.value.(object)["b"] = i
		}
		return drawn{object{"oneOf": []any{d.schema, e.schema}}, e.value}
	case "allOf":
		d := sub()
		return drawn{object{"allOf": []any{d.schema, true}, "description": "All."}, d.value}
	case "not":
		return drawn{object{"type": "string", "not": object{"const": "other"}}, "this"}
	case "if":
		d := anObject(t, definitions, depth-1)
		return drawn{object{"if": object{"type": "object"}, "then": d.schema, "else": false}, d.value}
	case "$ref":
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(definitions))).Draw(t, "definition")
		return drawn{object{"$ref": "#/$defs/" + name}, definitions[name].value}
	case "map":
		d := sub()
		return drawn{object{"type": "object", "additionalProperties": d.schema, "minProperties": 1}, object{"a b": d.value, "c": d.value}}
	}
	return rapid.SampledFrom(leaves).Draw(t, "leaf")
}

func required(schema any) []any {
	list, _ := schema.(object)["required"].([]any)
	return list
}

// anObject draws a schema of an object and a value for it.
func anObject(t *rapid.T, definitions map[string]drawn, depth int) drawn {
	properties, value, need := object{}, object{}, []any{}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 4, rapid.ID).Draw(t, "names") {
		d := aSchema(t, definitions, max(depth-1, 0))
		properties[name] = d.schema
		switch rapid.IntRange(0, 2).Draw(t, "given") {
		case 0:
			need = append(need, name)
			value[name] = d.value
		case 1:
			value[name] = d.value
		}
	}
	s := object{"type": "object", "properties": properties, "required": need}
	if rapid.Bool().Draw(t, "closed") {
		s["additionalProperties"] = false
	} else if rapid.Bool().Draw(t, "more") {
		value["more"] = object{"a b": 1}
	}
	if len(need) > 1 && rapid.Bool().Draw(t, "dependent") {
		s["dependentRequired"] = object{need[0].(string): need}
	}
	return drawn{s, value}
}

// aTool draws the schema of a tool, with definitions, and arguments for it.
func aTool(t *rapid.T) drawn {
	definitions := map[string]drawn{"c": {
		object{"type": "object", "properties": object{"next": object{"$ref": "#/$defs/c"}, "top": object{"$ref": "#"}, "a b": object{"type": "string"}}},
		object{"next": object{"a b": "x"}},
	}}
	definitions["d"] = aSchema(t, definitions, 2)
	var d drawn
	switch rapid.SampledFrom([]string{"object", "object", "any", "restricted"}).Draw(t, "top") {
	case "object":
		d = anObject(t, definitions, 3)
	case "restricted":
		d = anObject(t, definitions, 2)
		list := []any{}
		for _, name := range slices.Sorted(maps.Keys(d.value.(object))) {
			list = append(list, object{"required": []any{name}})
		}
		if len(list) > 0 {
			d.schema.(object)["anyOf"] = list
		}
	default:
		d = aSchema(t, definitions, 3)
	}
	s, ok := d.schema.(object)
	if !ok {
		return d
	}
	s = maps.Clone(s)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$defs"] = object{"c": definitions["c"].schema, "d": definitions["d"].schema}
	return drawn{s, d.value}
}

// nullables returns a schema with null among the types in place of nullable, which JSON Schema does
// not have.
func nullables(v any, isSchema bool) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for key, member := range v {
			out[key] = nullables(member, key != "properties")
		}
		if isSchema && out["nullable"] == true {
			delete(out, "nullable")
			return object{"anyOf": []any{out, object{"type": "null"}}}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = nullables(item, true)
		}
		return out
	}
	return v
}

// TestArgumentsSurviveTheForm checks for every form that arguments which are valid for the schema
// are valid for the form, if they are written for it, and are the same when that is undone. A form
// that says null in words is compared without it.
func TestArgumentsSurviveTheForm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := aTool(t)
		raw, err := json.Marshal(d.schema)
		require.NoError(t, err)
		arguments, err := json.Marshal(d.value)
		require.NoError(t, err)
		original, err := schema.Parse(string(raw))
		require.NoError(t, err)
		requireValid(t, original, arguments)
		s := toolschema.New(raw)
		for l := range toolschema.Levels {
			form := s.Form(l)
			_, parameters := form.Function("")
			requireParameters(t, parameters)
			sent := form.Sent(string(arguments))
			require.JSONEq(t, string(arguments), form.Original(sent))
			if l == toolschema.Unbounded || sent[0] != '{' {
				continue
			}
			var v any
			require.NoError(t, json.Unmarshal(parameters, &v))
			if v, err = nullables(v, true), nil; l != toolschema.Known {
				v = json.RawMessage(parameters)
			}
			raw, err := json.Marshal(v)
			require.NoError(t, err)
			of, err := schema.Parse(string(raw))
			require.NoError(t, err, "%d: %s", l, raw)
			requireValid(t, of, []byte(sent))
		}
	})
}

func requireValid(t *rapid.T, s *schema.Schema, raw []byte) {
	v, err := jsonvalue.Parse(string(raw))
	require.NoError(t, err)
	require.NoError(t, s.Validate(v), "%s for %s", raw, s)
}
