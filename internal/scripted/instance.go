package scripted

import (
	"encoding/json"
	"maps"
	"math"
	"regexp/syntax"
	"slices"
	"strings"

	jsonschema "github.com/runteam/runteam/internal/schema"
)

// instance returns a small value that a JSON Schema accepts, with the mark in its free
// strings. It ignores keywords that schemas of answers rarely use.
func instance(schema any) any {
	b := &builder{schemas: jsonschema.Merger{Root: schema, Choose: true, Steps: maxSteps}}
	v := b.value(schema, 0)
	if o, ok := v.(map[string]any); ok && !b.marked {
		b.addMark(schema, o)
	}
	return v
}

// builder builds one instance.
type builder struct {
	schemas jsonschema.Merger
	marked  bool // the instance contains the mark
}

// Bounds on schemas that refer to themselves, or multiply.
const (
	maxLevel = 12
	maxSteps = 10_000
)

// addMark sets an optional free string of the root, if there is one.
func (b *builder) addMark(schema any, o map[string]any) {
	properties, _ := b.schemas.Merge(schema)["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p := b.schemas.Merge(properties[name])
		if _, has := o[name]; !has && typeOf(p) == "string" && free(p) {
			o[name] = Mark
			b.marked = true
			return
		}
	}
}

func (b *builder) value(schema any, level int) any {
	if level > maxLevel || b.schemas.Steps < 0 {
		return nil
	}
	s := b.schemas.Merge(schema)
	if c, ok := s["const"]; ok {
		return c
	}
	if e, ok := s["enum"].([]any); ok && len(e) > 0 {
		return e[0]
	}
	if d, ok := s["default"]; ok {
		return d
	}
	switch typeOf(s) {
	case "object":
		return b.object(s, level)
	case "array":
		return b.array(s, level)
	case "number":
		return number(s, false)
	case "integer":
		return number(s, true)
	case "boolean":
		return false
	case "null":
		return nil
	}
	return b.text(s)
}

// typeOf returns the type of a schema, guessed from its keywords if it has none.
func typeOf(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		return t
	case []any:
		for _, one := range t {
			if name, ok := one.(string); ok && name != "null" {
				return name
			}
		}
		return "null"
	}
	for _, guess := range []struct{ key, kind string }{
		{"properties", "object"}, {"required", "object"}, {"additionalProperties", "object"},
		{"items", "array"}, {"prefixItems", "array"}, {"minItems", "array"},
		{"minimum", "number"}, {"maximum", "number"}, {"exclusiveMinimum", "number"}, {"exclusiveMaximum", "number"}, {"multipleOf", "number"},
	} {
		if _, ok := s[guess.key]; ok {
			return guess.kind
		}
	}
	return "string"
}

func (b *builder) object(s map[string]any, level int) any {
	properties, _ := s["properties"].(map[string]any)
	o := make(map[string]any)
	required, _ := s["required"].([]any)
	for _, r := range required {
		name, ok := r.(string)
		if !ok {
			continue
		}
		of, ok := properties[name]
		if !ok {
			of = s["additionalProperties"]
		}
		o[name] = b.value(of, level+1)
	}
	return o
}

// maxItems bounds how long an array a schema can ask for.
const maxItems = 100

func (b *builder) array(s map[string]any, level int) any {
	list := []any{}
	first, _ := s["prefixItems"].([]any)
	for i := range min(whole(s["minItems"]), maxItems) {
		of := s["items"]
		if i < len(first) {
			of = first[i]
		}
		list = append(list, b.value(of, level+1))
	}
	return list
}

// formats are examples of the formats of strings.
var formats = map[string]string{
	"date": "2026-01-01", "date-time": "2026-01-01T00:00:00Z", "time": "00:00:00Z", "duration": "P1D",
	"email": "offline@example.com", "hostname": "example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
	"uri": "https://example.com/", "uri-reference": "/", "uuid": "00000000-0000-4000-8000-000000000000",
}

// free reports whether a string may be any text that is long enough for the mark.
func free(s map[string]any) bool {
	for _, key := range []string{"const", "enum", "default", "pattern", "format"} {
		if _, ok := s[key]; ok {
			return false
		}
	}
	limit, ok := s["maxLength"]
	return !ok || whole(limit) >= len(Mark)
}

func (b *builder) text(s map[string]any) any {
	if free(s) {
		b.marked = true
		return Mark + strings.Repeat(".", max(min(whole(s["minLength"]), 1<<16)-len(Mark), 0))
	}
	if pattern, ok := s["pattern"].(string); ok {
		if re, err := syntax.Parse(pattern, syntax.Perl); err == nil {
			return sample(re)
		}
	}
	if format, ok := s["format"].(string); ok {
		if example, ok := formats[format]; ok {
			return example
		}
	}
	return strings.Repeat(".", min(whole(s["minLength"]), 1<<16))
}

// sample returns a short text that a pattern matches.
func sample(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		return string(letter(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "x"
	case syntax.OpCapture, syntax.OpPlus:
		return sample(re.Sub[0])
	case syntax.OpRepeat:
		return strings.Repeat(sample(re.Sub[0]), min(re.Min, 1000))
	case syntax.OpAlternate:
		return sample(re.Sub[0])
	case syntax.OpConcat:
		var b strings.Builder
		for _, sub := range re.Sub {
			b.WriteString(sample(sub))
		}
		return b.String()
	}
	return "" // an anchor, or an optional part
}

// letter picks from the ranges of a class one that is easy to read.
func letter(ranges []rune) rune {
	for _, r := range "0aAx-_ ." {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= r && r <= ranges[i+1] {
				return r
			}
		}
	}
	if len(ranges) == 0 {
		return 'x'
	}
	return ranges[0]
}

// number returns the number nearest to zero that the bounds and the step allow.
func number(s map[string]any, integer bool) any {
	step := 1.0
	if m, ok := float(s["multipleOf"]); ok && m > 0 {
		step = m
	}
	n := 0.0
	if low, ok := float(s["minimum"]); ok && n < low {
		n = math.Ceil(low/step) * step
	}
	if low, ok := float(s["exclusiveMinimum"]); ok && n <= low {
		n = math.Floor(low/step)*step + step
	}
	if high, ok := float(s["maximum"]); ok && n > high {
		n = math.Floor(high/step) * step
	}
	if high, ok := float(s["exclusiveMaximum"]); ok && n >= high {
		n = math.Ceil(high/step)*step - step
	}
	if low, high, ok := between(s, n); ok && !integer && s["multipleOf"] == nil {
		n = low + (high-low)/2 // no whole number fits
	}
	if integer && math.Abs(n) < 1<<53 {
		return int64(n)
	}
	return n
}

// between returns both bounds if n lies outside of one of them.
func between(s map[string]any, n float64) (low, high float64, outside bool) {
	lowest, hasMin := float(s["minimum"])
	above, hasAbove := float(s["exclusiveMinimum"])
	highest, hasMax := float(s["maximum"])
	below, hasBelow := float(s["exclusiveMaximum"])
	if !hasMin && !hasAbove || !hasMax && !hasBelow {
		return 0, 0, false
	}
	low, high = lowest, highest
	if !hasMin || hasAbove && above > low {
		low = above
	}
	if !hasMax || hasBelow && below < high {
		high = below
	}
	return low, high, n < low || n > high || hasAbove && n <= above || hasBelow && n >= below
}

func float(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

func whole(v any) int {
	f, _ := float(v)
	return int(min(max(f, 0), 1<<30))
}
