package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/oneline"
	"github.com/runteam/runteam/task"
)

// A mismatch is the error for a value that does not match a schema. If only guards
// failed, it lists them and [ErrGuard] matches it: the value matches the schema without
// its guards, and would match the whole schema with the values that they demand.
type mismatch struct {
	schema *Schema
	value  any
	text   string        // the validator's text, which may quote the value
	guards []failedGuard // empty if something else is wrong
}

// mismatch returns the error for a value that the validator refused. It mentions a guard
// only if nothing else is wrong.
func (s *Schema) mismatch(value any, refusal error) error {
	m := &mismatch{schema: s, value: value, text: refusal.Error()}
	relaxed := s.relaxed()
	if relaxed == nil {
		return m
	}
	if err := relaxed.resolved.Validate(native(value)); err != nil {
		m.schema, m.text = relaxed, err.Error()
		return m
	}
	failed := s.failedGuards(value)
	if len(failed) == 0 {
		return m
	}
	if err := s.resolved.Validate(fulfilled(value, failed)); err != nil {
		m.text = err.Error()
		return m
	}
	m.guards = failed
	return m
}

// Is reports whether target is [ErrGuard] and nothing but a guard failed.
func (m *mismatch) Is(target error) bool { return target == ErrGuard && len(m.guards) > 0 }

// Error names the path in the value, the type of what was found there and what the schema
// expects. It does not quote the value: names that the schema does not write out are *.
func (m *mismatch) Error() string {
	if len(m.guards) > 0 {
		return m.guards[0].rule()
	}
	const text = "it does not match the schema"
	if v, found := m.violated(); found {
		at := oneline.Of(string(m.schema.Shown(task.Path(pointer(v.path)))))
		expected := v.keyword
		if all(v.want, isScalar) || isScalar(v.want) {
			expected += " " + excerpt(v.want)
		}
		return fmt.Sprintf("%s: %s: found %s; expected %s", text, cmp.Or(at, wholeValue), kindWords[kindOf(v.value)], expected)
	}
	at, keyword := m.failed()
	switch {
	case keyword == "":
		return text + " at " + at
	case at == "":
		return text
	}
	return text + " at " + at + ": " + keyword
}

// isScalar reports whether a value is neither an object nor an array.
func isScalar(v any) bool { return !is[map[string]any](v) && !is[[]any](v) }

// kindWords describe values of each kind.
var kindWords = map[kind]string{aNull: "null", aBoolean: "a boolean", aString: "a string", anObject: "an object", anArray: "an array", aNumeric: "a number"}

// failure finds the innermost place and keyword in the text of a validator.
var failure = regexp.MustCompile(`^(?:validating (\S+): )+(?:(\w+): )?`)

// failed returns the place in the schema and the keyword that the validator names.
func (m *mismatch) failed() (at, keyword string) {
	found := failure.FindStringSubmatch(m.text)
	if found == nil {
		return "", "schema"
	}
	return found[1], found[2]
}

// Problem describes the error of a value for the model that wrote it: the path in the
// value, what was found there and what is expected. It may quote the value.
func Problem(err error) string {
	if m, ok := errors.AsType[*mismatch](err); ok {
		return m.explain()
	}
	return err.Error()
}

// explain returns the path, the value found and the value expected, in one line.
func (m *mismatch) explain() string {
	if len(m.guards) > 0 {
		g := m.guards[0]
		found, _ := jsonvalue.At(m.value, g.path)
		return fmt.Sprintf("%s: found %s; expected const %s", g.name(), excerpt(found), excerpt(g.want))
	}
	v, found := m.violated()
	if !found {
		return cmp.Or(m.unknownMembers(), oneline.Of(m.text))
	}
	switch missing := missingMembers(v.want, v.value); {
	case v.keyword == "required" && missing != "":
		return fmt.Sprintf("%s%s; found %s", placeText(v.path), missing, excerpt(v.value))
	case v.keyword == "enum":
		return fmt.Sprintf("%s: found %s; expected %s", pathText(v.path), excerpt(v.value), choice(v.want))
	}
	detail := ""
	if saysMore[v.keyword] {
		detail = " (" + oneline.Of(v.said) + ")"
	}
	return fmt.Sprintf("%s: found %s; expected %s %s%s", pathText(v.path), excerpt(v.value), v.keyword, excerpt(v.want), detail)
}

// missingMembers says which required members a value lacks; empty if it has them all.
func missingMembers(required, value any) string {
	names, _ := required.([]any)
	members, ok := value.(map[string]any)
	if !ok {
		return ""
	}
	var missing []string
	for _, name := range names {
		if text, _ := name.(string); !has(members, text) {
			missing = append(missing, excerpt(text))
		}
	}
	switch len(missing) {
	case 0:
		return ""
	case 1:
		return missing[0] + " is missing"
	}
	return strings.Join(missing, ", ") + " are missing"
}

// has reports whether an object has a member.
func has(members map[string]any, name string) bool {
	_, ok := members[name]
	return ok
}

// choice says which values an enum admits.
func choice(want any) string {
	list, _ := want.([]any)
	if len(list) < 2 {
		return strings.TrimSuffix(strings.TrimPrefix(excerpt(want), "["), "]")
	}
	return "one of " + excerpt(want)
}

// unknownMembers says which members an object has that its schema does not list, what it lists, and what
// is missing: a name may be misspelled. It is empty if that is not what the validator refused.
func (m *mismatch) unknownMembers() string {
	if !strings.Contains(m.text, "unexpected additional properties") {
		return ""
	}
	at, _ := m.failed()
	at = strings.TrimPrefix(at, "root")
	in, _ := find(m.schema.source, at)
	rule, _ := in.(map[string]any)
	listed, _ := rule["properties"].(map[string]any)
	path, part, found := m.schema.locate(m.value, at, "")
	members, ok := part.(map[string]any)
	if !found || !ok || rule["patternProperties"] != nil {
		return ""
	}
	var unknown, known []string
	for _, name := range sortedKeys(members) {
		if !has(listed, name) {
			unknown = append(unknown, excerpt(name))
		}
	}
	for _, name := range sortedKeys(listed) {
		known = append(known, excerpt(name))
	}
	if len(unknown) == 0 { // it is another object at the same place of the schema
		return ""
	}
	text := placeText(path) + "unknown " + strings.Join(unknown, ", ")
	if len(known) > 0 {
		text += "; known are " + strings.Join(known, ", ")
	}
	if missing := missingMembers(rule["required"], part); missing != "" {
		text += "; " + missing
	}
	return text
}

// placeText begins a sentence about a part of a value; it is empty for the whole value.
func placeText(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return pathText(path) + ": "
}

// A violation is the part of a value that the validator refused, and the rule that it violates.
type violation struct {
	path    []string
	value   any
	keyword string
	want    any
	said    string // by the validator; it may quote the value
}

// violated returns what the validator refused. It is not found if the keyword is not in the
// schema, or if the value is too much work to look through.
func (m *mismatch) violated() (v violation, found bool) {
	at, keyword := m.failed()
	at = strings.TrimPrefix(at, "root")
	v.keyword = keyword
	_, v.said, _ = strings.Cut(m.text, at+": "+keyword+": ")
	in, _ := find(m.schema.source, at)
	rule, _ := in.(map[string]any)
	if v.want, found = rule[keyword]; keyword == "" || !found {
		return v, false
	}
	v.path, v.value, found = m.schema.locate(m.value, at, v.said)
	return v, found
}

// saysMore are the keywords for which the validator names the wrong members or items.
var saysMore = map[string]bool{
	"required": true, "dependentRequired": true, "additionalProperties": true, "unevaluatedProperties": true, "unevaluatedItems": true,
	"uniqueItems": true, "minProperties": true, "maxProperties": true, "propertyNames": true,
}

// locate returns the place in a value to which the schema at a pointer applies. If there
// are several, it returns the first that the validator quotes, else the first.
func (s *Schema) locate(value any, at, said string) (path []string, part any, found bool) {
	quoted := false
	s.root.visit(value, nil, func(n *node, v any, p []string) {
		if n.at != at || quoted {
			return
		}
		quotes := kindOf(v) < anObject && // formatting larger values at each level would take long
			(strings.HasPrefix(said, fmt.Sprintf("%v ", native(v))) || strings.HasPrefix(said, fmt.Sprintf("%q ", v)))
		if !found || quotes {
			path, part, found, quoted = slices.Clone(p), v, true, quotes
		}
	})
	return path, part, found
}

// visit calls f for each part of a value and each schema that always applies to it, which
// excludes those in anyOf, oneOf, if, not and the like. f must not keep path.
func (n *node) visit(v any, path []string, f func(n *node, v any, path []string)) {
	f(n, v, path)
	for _, e := range n.every {
		e.visit(v, path, f)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			for _, below := range n.onMember(name) {
				if below != n.unevaluated {
					below.visit(v[name], append(path, name), f)
				}
			}
		}
	case []any:
		for i, item := range v {
			for _, below := range n.onItem(i) {
				if below != n.contains && below != n.unevaluatedSeq {
					below.visit(item, append(path, fmt.Sprint(i)), f)
				}
			}
		}
	}
}

// wholeValue is the text of the path of the whole value.
const wholeValue = "the whole value"

// pathText writes a path as a JSON pointer in one line.
func pathText(path []string) string { return cmp.Or(oneline.Of(pointer(path)), wholeValue) }

// pointer returns a path as a JSON pointer.
func pointer(path []string) string {
	var b strings.Builder
	for _, token := range path {
		b.WriteString(naming.Pointer(token))
	}
	return b.String()
}

// maxExcerpt is how much of a value an explanation quotes, in bytes.
const maxExcerpt = 200

// excerpt writes a value as JSON in one line, shortened.
func excerpt(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "a value that is not JSON"
	}
	text := oneline.Of(b.String())
	if len(text) <= maxExcerpt {
		return text
	}
	end := maxExcerpt
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
