package schema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func init() { slowtest.Checks(50) }

// The names that schemas of these tests write out, and one that none does.
var names = []string{"a", "b", "c", "zz"}

const code, words = `^[A-Z]{2}$`, `^[a-z ]*$`

type object = map[string]any

// aSchema draws a schema of a small grammar. References lead to $defs.
func aSchema(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if depth == 0 {
			return rapid.SampledFrom([]any{
				true, false, object{}, object{"type": "number"}, object{"type": "string"}, object{"type": []string{"null", "string"}, "pattern": code}, object{"pattern": words},
				object{"type": "string", "pattern": code}, object{"enum": []any{"red", 1, nil}}, object{"const": object{"a": []any{"red"}}}, object{"type": "object"}, object{"type": "array"},
				object{"$ref": "#/$defs/a"}, object{"$ref": "#/$defs/b"}, object{"required": []string{"c"}},
			}).Draw(t, "leaf")
		}
		sub := func(label string) any { return aSchema(depth-1).Draw(t, label) }
		s := object{}
		for _, word := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
			"type", "properties", "closed", "additionalProperties", "patternProperties", "items", "prefixItems", "maxItems", "allOf", "anyOf", "oneOf", "not", "if", "unevaluatedProperties", "dependentSchemas",
		}), 1, 4, rapid.ID).Draw(t, "keywords") {
			switch word {
			case "type":
				s[word] = rapid.SampledFrom([]any{"object", "object", "array", []string{"object", "array", "null"}}).Draw(t, "type")
			case "properties":
				props := object{}
				for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names[:3]), 0, 3, rapid.ID).Draw(t, "names") {
					props[name] = sub(name)
				}
				s[word] = props
			case "closed":
				s["additionalProperties"] = false
			case "patternProperties":
				s[word] = object{rapid.SampledFrom([]string{"^a", "z", "b$"}).Draw(t, "pattern"): sub(word)}
			case "maxItems":
				s[word] = rapid.IntRange(0, 2).Draw(t, word)
			case "prefixItems", "allOf", "anyOf", "oneOf":
				s[word] = []any{sub(word), sub(word)}
			case "if":
				s["if"], s["then"], s["else"] = sub("if"), sub("then"), sub("else")
			case "dependentSchemas":
				s[word] = object{"a": sub(word)}
			default:
				s[word] = sub(word)
			}
		}
		return s
	})
}

// aValue draws a value that has a fair chance of matching a schema.
func aValue(t *rapid.T, schema any, defs object, depth int) any {
	s, _ := schema.(object)
	if depth == 0 || rapid.IntRange(0, 9).Draw(t, "any") == 0 {
		s = nil
	}
	if ref, ok := s["$ref"].(string); ok {
		return aValue(t, defs[strings.TrimPrefix(ref, "#/$defs/")], defs, depth-1)
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		if list, ok := s[key].([]any); ok && rapid.Bool().Draw(t, key) {
			return aValue(t, rapid.SampledFrom(list).Draw(t, "branch"), defs, depth-1)
		}
	}
	if c, ok := s["const"]; ok {
		return c
	}
	kinds := []string{"scalar", "object", "array"}
	if typ, ok := s["type"].(string); ok && slices.Contains(kinds, typ) {
		kinds = []string{typ}
	} else if s["properties"] != nil {
		kinds = []string{"object"}
	} else if s["prefixItems"] != nil {
		kinds = []string{"array"}
	}
	if depth <= 0 {
		kinds = kinds[:1]
	}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "object":
		props, _ := s["properties"].(object)
		out := object{}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 3, rapid.ID).Draw(t, "members") {
			out[name] = aValue(t, props[name], defs, depth-1)
		}
		return out
	case "array":
		out := []any{}
		prefix, _ := s["prefixItems"].([]any)
		for i := range rapid.IntRange(0, 3).Draw(t, "length") {
			of := s["items"]
			if i < len(prefix) {
				of = prefix[i]
			}
			out = append(out, aValue(t, of, defs, depth-1))
		}
		return out
	}
	return rapid.SampledFrom([]any{"AB", "red", "free text", "free text", 1, nil, true}).Draw(t, "scalar")
}

// aCase draws a schema and a value that matches it.
func aCase(t *rapid.T) (*schema.Schema, any) {
	defs := object{"a": aSchema(1).Draw(t, "def a"), "b": aSchema(0).Draw(t, "def b")}
	root := aSchema(rapid.IntRange(0, 3).Draw(t, "depth")).Draw(t, "schema")
	whole := object{"$defs": defs}
	if members, ok := root.(object); ok {
		maps.Copy(whole, members)
	} else {
		whole["allOf"] = []any{root}
	}
	raw, err := json.Marshal(whole)
	require.NoError(t, err)
	s, err := schema.Parse(string(raw))
	if err != nil {
		t.Skip("it refers to itself") // and what else is wrong is for other tests
	}
	value := aValue(t, whole, defs, 4)
	text, err := json.Marshal(value)
	require.NoError(t, err)
	v, err := jsonvalue.Parse(string(text))
	require.NoError(t, err)
	if s.Validate(v) != nil {
		t.Skip("it does not match")
	}
	return s, v.Value()
}

// walk calls fn for each place of a value.
func walk(v any, at []string, fn func(v any, at []string)) {
	fn(v, at)
	switch v := v.(type) {
	case object:
		for name, member := range v {
			walk(member, append(slices.Clip(at), name), fn)
		}
	case []any:
		for i, item := range v {
			walk(item, append(slices.Clip(at), fmt.Sprint(i)), fn)
		}
	}
}

func TestMembersOfAValidResultAreNotExcluded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, value := aCase(t)
		walk(value, nil, func(v any, at []string) {
			require.NotEqual(t, schema.No, s.Has(at), "%q in %v of %s", at, value, s)
			stars := slices.Clone(at)
			for i := range stars {
				if rapid.Bool().Draw(t, "star") {
					stars[i] = "*"
				}
			}
			require.NotEqual(t, schema.No, s.Has(stars), "%q in %v of %s", stars, value, s)
			for name := range members(v) {
				require.NotEqual(t, schema.No, s.Names(strings.ToUpper(name)), "%q in %v of %s", name, value, s)
			}
		})
	})
}

// TestBlocksThatMatchNothingRemoveNothing compares the answer No with package pick:
// no valid result loses anything to such a block.
func TestBlocksThatMatchNothingRemoveNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, value := aCase(t)
		segment := rapid.SampledFrom([]string{"a", "A", "b", "c", "zz", "Zz", "*", "0", "1", "00", "\uff41", "d"})
		block := task.Path("/" + strings.Join(rapid.SliceOfN(segment, 1, 3).Draw(t, "segments"), "/"))
		switch rapid.IntRange(0, 5).Draw(t, "form") {
		case 0:
			block += "/**"
		case 1:
			block = "/**" + block
		case 2:
			block = task.Path(segment.Draw(t, "name"))
		}
		without, err := pick.Everything().Except(block)
		if err != nil {
			t.Skip("no block")
		}
		if s.Blocks(block) == schema.No {
			require.Empty(t, without.Apply(value).Dropped, "%q in %v of %s", block, value, s)
		}
	})
}

func members(v any) object {
	m, _ := v.(object)
	return m
}

func TestBoundedPathsHaveBoundedValues(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, value := aCase(t)
		walk(value, nil, func(v any, at []string) {
			path := make([]any, len(at))
			for i, token := range at {
				path[i] = token
				if strings.Contains("0123", token) || rapid.Bool().Draw(t, "star") {
					path[i] = "*"
				}
			}
			p := naming.Pointer(path...)
			if exact := task.Path(p); s.Bounded(exact) == nil && len(at) > 0 {
				requireLittle(t, taken(value, path, false), "%s of %v in %s", p, value, s)
			}
			if deep := task.Path(p + "/**"); s.Bounded(deep) == nil {
				requireLittle(t, taken(value, path, true), "%s of %v in %s", deep, value, s)
			}
		})
	})
}

// taken returns the values and, behind a star, the names that a path takes along.
func taken(v any, path []any, deep bool) []any {
	var out []any
	switch in := v.(type) {
	case object:
		for name, member := range in {
			switch {
			case len(path) == 0 && deep:
				out = append(append(out, name), taken(member, nil, true)...)
			case len(path) > 0 && path[0] == "*":
				if below := taken(member, path[1:], deep); len(below) > 0 {
					out = append(append(out, name), below...)
				}
			case len(path) > 0 && path[0] == name:
				out = append(out, taken(member, path[1:], deep)...)
			}
		}
	case []any:
		for _, item := range in {
			switch {
			case len(path) == 0 && deep:
				out = append(out, taken(item, nil, true)...)
			case len(path) > 0 && path[0] == "*":
				out = append(out, taken(item, path[1:], deep)...)
			}
		}
	default:
		if len(path) == 0 {
			return []any{v}
		}
	}
	return out
}

var little = regexp.MustCompile(`^(?:[A-Z]{2}|red|a|b|c)$`)

func requireLittle(t *rapid.T, values []any, why ...any) {
	for _, v := range values {
		if text, ok := v.(string); ok {
			require.Regexp(t, little, text, why...)
		}
	}
}
