package specfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// JSONSchema returns the JSON Schema (draft 2020-12) of a spec file. It is made from the
// tables by which [Load] reads files, so that an editor completes keys, describes them and
// marks what Load would report. Keys that are not supported or without effect
// are marked as deprecated, and accept only values that request nothing.
//
// A schema cannot check everything that Load and the team check: whether named tasks,
// agents, inputs, schemas, parameters, variables and files exist and are unique, whether a
// base URL or the value of a parameter is valid, lengths in bytes, and what labels allow.
func JSONSchema() []byte {
	defs := make(object, 0, len(allPlaces)-1)
	for _, p := range allPlaces {
		if p.name != "spec" {
			defs = append(defs, member{p.name, p.schema()})
		}
	}
	root := object{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "runteam spec"}}
	root = append(root, placesByName["spec"].schema()...)
	root = append(root, member{"$defs", defs})
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(root); err != nil {
		panic("spec: the schema did not marshal: " + err.Error())
	}
	return asciiOnly(b.Bytes())
}

// asciiOnly escapes all other characters of a JSON text, so that the spaces in patterns are
// visible.
func asciiOnly(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if r < utf8.RuneSelf {
			out = append(out, byte(r))
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			out = fmt.Appendf(out, "\\u%04x", unit)
		}
	}
	return out
}

// schema returns the JSON Schema of a place.
func (p *place) schema() object {
	properties := make(object, len(p.keys))
	for i := range p.keys {
		properties[i] = member{p.keys[i].name, p.keys[i].schema()}
	}
	s := object{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}}
	if len(p.needs) > 0 {
		s = append(s, member{"required", p.needs})
	}
	switch p.name {
	case "task":
		s = append(s, resultsOfTasks()...)
		s = append(s, member{"dependentSchemas", object{{"repeat", object{{"propertyNames", oneOf(p.keysOfLoops("repeat"))}}}}})
		s = append(s, member{"if", object{{"properties", object{{"forEach", required("tasks")}}}, {"required", []string{"forEach"}}}})
		s = append(s, member{"then", object{{"propertyNames", oneOf(p.keysOfLoops("forEach"))}}})
	case "spec":
		s = append(s, member{"allOf", contradictions()})
	case "goal":
		s = append(s, member{"oneOf", []object{required("text"), required("file")}})
	case "fallback":
		s = append(s, member{"not", object{{"additionalProperties", object{{"type", "object"}, {"maxProperties", 0}}}}}) // also of an entry without keys
	case "backend":
		s = append(s, member{"oneOf", []object{
			append(required("command"), member{"properties", object{{"kind", oneOf([]string{"process"})}}}, member{"not", required("users")}),
			{{"properties", object{{"kind", oneOf([]string{"person"})}}}, {"propertyNames", oneOf([]string{"kind", "users"})}},
		}})
	case "input":
		s = append(s, member{"not", anyOf(required("file", "text"), required("dir", "text"), required("dir", "file"))})
	case "dependency":
		s = append(s, member{"oneOf", []object{required("task"), required("oneOf"), required("each")}})
	case "forEach":
		s = append(s, member{"oneOf", []object{required("task"), required("input")}}, member{"not", required("task", "files")},
			member{"dependentRequired", object{{"task", []string{"path"}}, {"input", []string{"maxItems"}}}})
	case "condition":
		s = append(s, conditionRules()...)
	case "workspace":
		s = append(s, member{"dependentRequired", object{{"need", []string{"input"}}}}, member{"dependentSchemas", object{{"files", anyOf(required("task"), required("round"))}}})
	}
	return s
}

// resultsOfTasks are the ways in which a task gets its result: an agent with a description, a loop,
// or a value, a template or a file.
func resultsOfTasks() object {
	ways, pairs := []object{required("description"), required("repeat"), {{"properties", object{{"forEach", required("tasks")}}}, {"required", []string{"forEach"}}}}, []object(nil)
	for i, key := range computedKeys {
		ways = append(ways, required(key))
		for _, other := range computedKeys[i+1:] {
			pairs = append(pairs, required(key, other))
		}
	}
	return append(anyOf(ways...), member{"not", anyOf(pairs...)})
}

// contradictions excludes keys of a spec that contradict each other.
func contradictions() []object {
	never := []object{{{"not", required("agents", "team")}}}
	for _, pair := range settings {
		inside := object{{"orchestrator", required(pair.orch)}}
		never = append(never, object{{"not", append(required(pair.spec, "orchestrator"), member{"properties", inside})}})
	}
	return never
}

// schema returns the JSON Schema of the value of a key.
func (k *key) schema() object {
	says := strings.ReplaceAll(k.says, "`", "")
	switch k.status {
	case Refused:
		return object{{"description", "Not supported: " + says}, {"deprecated", true}, {"enum", nothings}}
	case Idle:
		return object{{"description", "No effect here: " + says}, {"deprecated", true}}
	}
	return append(object{{"description", says}}, k.kind.json...)
}

// An object is a JSON object that keeps the order of its keys.
type object []member

type member struct {
	key   string
	value any
}

// MarshalJSON writes the keys in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:", appendText(nil, m.key))
		if err := e.Encode(m.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// blank lists the characters that [strings.TrimSpace] removes, for a class of a regular
// expression; the meaning of \s differs between editors.
const blank = "\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"

// filled is a text with a character that is not whitespace.
var filled = object{{"type", "string"}, {"pattern", "[^" + blank + "]"}}

// paramPattern matches the names of parameters; see [isParamName].
const paramPattern = "^[A-Za-z0-9_-]{1,64}$"

func typed(name string) object { return object{{"type", name}} }

func ref(place string) object { return object{{"$ref", "#/$defs/" + place}} }

func anyOf(all ...object) object { return object{{"anyOf", all}} }

func listOf(item object) object { return object{{"type", "array"}, {"items", item}} }

// filledListOf is a list of at least one item.
func filledListOf(item object) object { return append(listOf(item), member{"minItems", 1}) }

// mapOf is a mapping by any names.
func mapOf(value object) object { return object{{"type", "object"}, {"additionalProperties", value}} }

func namedMapOf(names, value object) object {
	return object{{"type", "object"}, {"propertyNames", names}, {"additionalProperties", value}}
}

func oneOf(known []string) object { return object{{"enum", known}} }

func required(keys ...string) object { return object{{"required", keys}} }

func bounded[N int | float64](name string, low, high N) object {
	return object{{"type", name}, {"minimum", low}, {"maximum", high}}
}

// fileOr is a value of a type, or {file: PATH}.
func fileOr(name string) object {
	return object{
		{"type", []any{name, "object"}}, {"properties", object{{"file", filled}}},
		{"required", []string{"file"}}, {"additionalProperties", false},
	}
}
