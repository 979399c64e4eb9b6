package specfile

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/label"
)

// A kind is what may be written as the value of a key.
type kind struct {
	name string // in the reference
	want string // in messages: "where … belongs"
	hint string // what to write instead
	many string // hint for a list; empty means hint
	none string // hint for null; empty means hint
	one  string // the words to choose from
	json object // the JSON Schema, which may accept more
	// fits reports whether the value has the right type.
	fits func(n *node) bool
	// parts checks a value of the right type, reports problems and returns whether the
	// value can be used; nil accepts every value.
	parts func(r *report, key string, n *node) bool
}

// inQuotes is the hint for a number, true or false where a text belongs.
const inQuotes = "put it in quotes"

// instead returns the hint for a value that is not of the kind.
func (k kind) instead(n *node) string {
	switch f, number := n.float(); {
	case n.is == isList && k.many != "":
		return k.many
	case n.is == isNull && k.none != "":
		return k.none
	case n.is == isNull && (k.hint == list.hint || k.hint == mapping.hint):
		return k.hint + "; or leave the key out"
	case k.hint == inQuotes && (n.is == isList || n.is == isObject):
		return "write one text"
	case k.hint == inQuotes && n.is == isNull:
		return "write one, or leave the key out"
	case k.name == millis.name && number && f < 0:
		return "write 0 or more"
	}
	return k.hint
}

func is(shapes ...shape) func(*node) bool {
	return func(n *node) bool {
		return slices.Contains(shapes, n.is)
	}
}

var (
	anything  = kind{name: "any", fits: func(*node) bool { return true }}
	anyText   = kind{name: "text", want: "a text", hint: inQuotes, json: typed("string"), fits: is(isText)}
	inputText = anyText.as(filled) // not empty, unless the options bring the text
	oneLine   = kind{name: "text", want: "a text", hint: inQuotes, json: filled, fits: is(isText), parts: checkNotBlank}
	envText   = kind{name: "text, `${ENV}`", want: "a text", hint: inQuotes, json: typed("string"), fits: is(isText)}
	secret    = kind{name: "text, `${ENV}`", want: "a text", hint: "write ${NAME}, where NAME is a variable of the environment", json: typed("string"), fits: is(isText)}
	path      = kind{name: "path, `${ENV}`", want: "the path of a file", hint: inQuotes, many: "write one path", json: filled, fits: is(isText), parts: checkNotBlank}
	inputFile = path.ofOne("write one path; one input for each file")
	boolean   = kind{name: "true or false", want: "true or false", hint: "write true or false, without quotes", json: typed("boolean"), fits: is(isBool)}
	mapping   = kind{name: "mapping", want: "a mapping", hint: "write key: value lines below it, or {key: value}", json: typed("object"), fits: is(isObject)}
	list      = kind{name: "list", want: "a list", hint: "write a line that begins with - for each, or [a, b]", json: typed("array"), fits: is(isList)}
	texts     = kind{name: "list of texts", want: "a list of texts", hint: "write [a, b]", json: listOf(typed("string")), fits: is(isList), parts: checkTexts}
	whole     = kind{name: "whole number", want: "a whole number", hint: "write a number such as 2, without quotes"}.integers(-math.MaxInt32, math.MaxInt32)
	count     = kind{name: "whole number from 1", want: "a whole number of at least 1", hint: "write a number such as 4, without quotes, or leave the key out"}.integers(1, math.MaxInt32)
	byteLimit = kind{name: "bytes", want: fmt.Sprintf("a whole number from 1 to %d", maxLimit), hint: "write a number of bytes, without quotes, or leave the key out"}.integers(1, maxLimit)
	millis    = kind{name: "milliseconds", want: "a number of milliseconds", hint: "write a number such as 30000, which is 30 s, without quotes and unit"}.numbers(0, maxMillis)

	textOrFile = kind{name: "text or `{file: PATH}`", want: "a text or {file: PATH}", hint: "write the text, after | if it has several lines, or {file: PATH}", json: fileOr("string"), fits: func(n *node) bool { return n.is == isText || isFileRef(n) }}
	goalText   = kind{name: "text, `{file: PATH}`, or see goal", want: "a text or {file: PATH}", hint: "write the text, after | if it has several lines, or {file: PATH}", json: anyOf(filled, ref("goal")), fits: is(isText, isObject), parts: checkGoal}
	schema     = kind{name: "JSON Schema, `{file: PATH}` or name", want: "a JSON Schema, {file: PATH} or a name of schemas", hint: "write {type: object, properties: …}", json: object{{"type", []any{"object", "string", "boolean"}}}, fits: is(isObject, isText, isBool)}
	headers    = kind{name: "mapping of texts, `${ENV}`", want: "a mapping of texts", hint: "write {Name: value}", json: mapping.each(typed("string")).json, fits: is(isObject), parts: checkTextValues}
	scalars    = kind{name: "mapping of texts, numbers, booleans and lists of them", want: "a mapping of texts, numbers, booleans and lists of them", hint: "write {name: value}", json: mapping.each(anyOf(object{{"type", []any{"string", "number", "boolean"}}}, listsOfScalars)).json, fits: is(isObject)}

	instant = kind{name: "time", want: "a time", hint: `write it as "2026-01-31T09:30:00Z"`, json: object{{"type", "string"}, {"pattern", instantForm.String()}}, fits: func(n *node) bool {
		_, err := time.Parse(time.RFC3339Nano, n.text)
		return n.is == isText && err == nil && instantForm.MatchString(n.text)
	}}
	provenanceOf = mapping.hinted("write {from: coordinator}, or remove it if the task is your own").as(ref("provenance"))

	requirement = mapping.hinted("write {requiredCapabilities: [a, b]}").ofOne("write {requiredCapabilities: [a, b]}; tasks that it waits for stand in dependsOn").as(ref("requires"))

	classification = words(label.Classifications()...)
	strategy       = words(strategies()...)
	never          = kind{name: "`never`", want: "the word never", hint: "write never, or leave the key out", json: object{{"enum", []any{"never"}}}, fits: func(n *node) bool { return n.is == isText && n.text == "never" }}
	provider       = kind{name: "`openai`", want: "openai", hint: "write openai, or leave the key out", json: object{{"enum", []any{openAI}}}, fits: is(isText), parts: checkProvider}
)

// listsOfScalars is a list of values of one type.
var listsOfScalars = anyOf(listOf(typed("string")), listOf(typed("number")), listOf(typed("boolean")))

// instantForm matches a time as RFC 3339 writes it, in UTC.
var instantForm = regexp.MustCompile(`^[0-9]{4}-(0[1-9]|1[0-2])-([0-2][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?Z$`)

// strategies returns the names of the scheduling strategies.
func strategies() []string {
	var words []string
	for _, s := range assign.Strategies() {
		words = append(words, string(s))
	}
	return words
}

// as returns the kind with another JSON Schema.
func (k kind) as(json object) kind {
	k.json = json
	return k
}

// hinted returns the kind with another hint.
func (k kind) hinted(hint string) kind {
	k.hint = hint
	return k
}

// checked returns the kind with a check of its parts.
func (k kind) checked(parts func(r *report, key string, n *node) bool) kind {
	k.parts = parts
	return k
}

// of returns the kind of a mapping with the keys of a place, or of a list of such mappings.
func (k kind) of(place string) kind {
	switch {
	case k.name != list.name:
		return k.as(ref(place))
	case k.parts != nil:
		return k.as(filledListOf(ref(place)))
	}
	return k.as(listOf(ref(place)))
}

// orText returns the kind of a list of texts or mappings with the keys of a place.
func (k kind) orText(place string) kind { return k.as(listOf(anyOf(typed("string"), ref(place)))) }

// each returns the kind of a mapping with any names and values of a schema.
func (k kind) each(value object) kind {
	return k.as(object{{"type", "object"}, {"additionalProperties", value}})
}

// named returns the kind of a mapping with names of a pattern and values of a schema.
func (k kind) named(pattern string, value object) kind {
	return k.as(object{{"type", "object"}, {"propertyNames", object{{"pattern", pattern}}}, {"additionalProperties", value}})
}

// words returns the kind of one of several words.
func words(known ...string) kind {
	choice := strings.Join(known, ", ")
	last := len(known) - 1
	return kind{
		name: "`" + strings.Join(known, "`, `") + "`", want: "one of the words " + choice, hint: "write one of " + choice,
		one: strings.Join(known[:last], ", ") + " or " + known[last], json: oneOf(known), fits: is(isText),
		parts: func(r *report, key string, n *node) bool {
			if slices.Contains(known, n.text) {
				return true
			}
			hint := "write one of " + choice
			if best := nearestOf(n.text, known...); best != "" {
				hint = fmt.Sprintf("did you mean %s? known are %s", best, choice)
			}
			r.bad(n, hint, "%s: unknown word %s", key, quote(n.text))
			return false
		},
	}
}

// wordList returns the kind of a list of such words.
func wordList(known ...string) kind {
	one := words(known...)
	return kind{
		name: "list of " + one.name, want: "a list of words", hint: "write [" + strings.Join(known, ", ") + "], or one of them",
		json: listOf(oneOf(known)), fits: is(isList),
		parts: func(r *report, key string, n *node) bool {
			ok := texts.parts(r, key, n)
			for _, item := range n.parts() {
				if item.is == isText && !one.parts(r, key, item) {
					ok = false
				}
			}
			return ok
		},
	}
}

// number returns the kind of a number within bounds.
func number(low, high float64) kind {
	want := fmt.Sprintf("a number from %g to %g", low, high)
	return kind{name: "number", want: want, hint: "write " + want + ", without quotes"}.numbers(low, high)
}

// numbers returns the kind for numbers within bounds.
func (k kind) numbers(low, high float64) kind {
	k.json = bounded("number", low, high)
	k.fits = func(n *node) bool {
		f, ok := n.float()
		return ok && f >= low && f <= high
	}
	return k
}

// integers returns the kind for whole numbers within bounds.
func (k kind) integers(low, high int) kind {
	k.json = bounded("integer", low, high)
	k.fits = func(n *node) bool {
		i, ok := n.whole()
		return ok && i >= low && i <= high
	}
	return k
}

// maxLimit is the largest size limit of a prompt or a piece of context, in bytes.
const maxLimit = 4 << 20

// maxMillis bounds times, in milliseconds: 285 years.
const maxMillis = 9e12

// isFileRef reports whether a value has the form {file: PATH}.
func isFileRef(n *node) bool {
	return n.is == isObject && n.len() == 1 && n.kids[0].key == "file" && n.kids[0].is == isText && strings.TrimSpace(n.kids[0].text) != ""
}

// duration returns a number of milliseconds; nil is zero.
func duration(n *node) time.Duration {
	if n == nil {
		return 0
	}
	f, _ := n.float()
	return time.Duration(math.Round(f * float64(time.Millisecond)))
}

// integer returns a whole number; nil is zero.
func integer(n *node) int {
	if n == nil {
		return 0
	}
	i, _ := n.whole()
	return i
}

// text returns a text; nil is empty.
func text(n *node) string {
	if n == nil {
		return ""
	}
	return n.text
}

// level returns a label; nil is the zero value, which is internal.
func level(n *node) label.Classification {
	if n == nil {
		return label.Internal
	}
	c, _ := label.ParseClassification(n.text)
	return c
}

// textList returns the texts of a list; nil is nil.
func textList(n *node) []string {
	if n == nil || n.len() == 0 {
		return nil
	}
	out := make([]string, n.len())
	for i, item := range n.parts() {
		out[i] = item.text
	}
	return out
}

func checkNotBlank(r *report, key string, n *node) bool {
	if strings.TrimSpace(n.text) != "" {
		return true
	}
	r.bad(n, "write one, or leave the key out", "%s: it is empty", key)
	return false
}

func checkTexts(r *report, key string, n *node) bool {
	ok := true
	for i, item := range n.parts() {
		if item.is != isText {
			r.bad(item, "put it in quotes", "%s[%d]: %s where a text belongs", key, i, item.describe())
			ok = false
		}
	}
	return ok
}

// checkTextValues checks headers. It does not describe their values, which may be credentials.
func checkTextValues(r *report, key string, n *node) bool {
	ok := true
	for _, member := range n.parts() {
		if member.is != isText {
			r.bad(member, "put it in quotes", "%s: %s is not a text", key, quote(member.key))
			ok = false
		}
	}
	return ok
}

// checkGoal reports an empty text; a mapping is checked when it is read.
func checkGoal(r *report, key string, n *node) bool {
	return n.is == isObject || checkNotBlank(r, key, n)
}

func checkProvider(r *report, key string, n *node) bool {
	if n.text == openAI {
		return true
	}
	r.badAs(n, ErrRefused, providerHint(key, n.text), "%s: %s is not built in", key, quote(n.text))
	return false
}
