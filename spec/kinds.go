package spec

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/label"
)

// A kind is what may be written as the value of a key.
type kind struct {
	name string // in the reference
	want string // in messages, after "where" and before "belongs"
	hint string // what to write instead
	many string // what to write instead of a list, where that is something else
	// fits reports whether the value has the right type.
	fits func(n *node) bool
	// parts looks into a value of the right type, reports what is wrong there
	// and says whether the value can be used; nil means that it can.
	parts func(l *loader, key string, n *node) bool
}

// inQuotes is what to do about a number, true or false where a text belongs.
const inQuotes = "put it in quotes"

// instead says what to write in the place of a value that is not of the kind.
func (k kind) instead(n *node) string {
	switch f, number := n.float(); {
	case n.is == isList && k.many != "":
		return k.many
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
	anyText   = kind{name: "text", want: "a text", hint: inQuotes, fits: is(isText)}
	oneLine   = kind{name: "text", want: "a text", hint: inQuotes, fits: is(isText), parts: (*loader).notBlank}
	envText   = kind{name: "text, `${ENV}`", want: "a text", hint: inQuotes, fits: is(isText)}
	secret    = kind{name: "text, `${ENV}`", want: "a text", hint: "write ${NAME}, where NAME is a variable of the environment", fits: is(isText)}
	path      = kind{name: "path, `${ENV}`", want: "the path of a file", hint: inQuotes, many: "write one path", fits: is(isText), parts: (*loader).notBlank}
	inputFile = kind{name: path.name, want: path.want, hint: path.hint, many: "write one path; one input for each file", fits: path.fits, parts: path.parts}
	boolean   = kind{name: "true or false", want: "true or false", hint: "write true or false, without quotes", fits: is(isBool)}
	mapping   = kind{name: "mapping", want: "a mapping", hint: "write key: value lines below it, or {key: value}", fits: is(isObject)}
	list      = kind{name: "list", want: "a list", hint: "write a line that begins with - for each, or [a, b]", fits: is(isList)}
	texts     = kind{name: "list of texts", want: "a list of texts", hint: "write [a, b]", fits: is(isList), parts: (*loader).onlyTexts}
	whole     = kind{name: "whole number", want: "a whole number", hint: "write a number such as 2, without quotes", fits: isWhole(-math.MaxInt32)}
	count     = kind{name: "whole number from 1", want: "a whole number of at least 1", hint: "write a number such as 4, without quotes, or leave the key out", fits: isWhole(1)}
	millis    = kind{name: "milliseconds", want: "a number of milliseconds", hint: "write a number such as 30000, which is 30 s, without quotes and unit", fits: isMillis}

	textOrFile = kind{name: "text or `{file: PATH}`", want: "a text or {file: PATH}", hint: "write the text, after | if it has several lines, or {file: PATH}", fits: func(n *node) bool { return n.is == isText || isFileRef(n) }}
	schema     = kind{name: "JSON Schema, `{file: PATH}` or name", want: "a JSON Schema, {file: PATH} or a name of schemas", hint: "write {type: object, properties: …}", fits: is(isObject, isText, isBool)}
	headers    = kind{name: "mapping of texts, `${ENV}`", want: "a mapping of texts", hint: "write {Name: value}", fits: is(isObject), parts: (*loader).onlyTextValues}
	scalars    = kind{name: "mapping of texts, numbers and booleans", want: "a mapping of texts, numbers and booleans", hint: "write {name: value}", fits: is(isObject)}

	classification = words(label.Classifications()...)
	scope          = kind{name: "`dependencies`", want: "dependencies", hint: "write dependencies, or leave the key out", fits: is(isText), parts: (*loader).scope}
	provider       = kind{name: "`openai`", want: "openai", hint: "write openai, or leave the key out", fits: is(isText), parts: (*loader).provider}
)

// words is the kind of one of several words.
func words(known ...string) kind {
	choice := strings.Join(known, ", ")
	return kind{
		name: "`" + strings.Join(known, "`, `") + "`", want: "one of the words " + choice, hint: "write one of " + choice,
		fits: is(isText),
		parts: func(l *loader, key string, n *node) bool {
			if slices.Contains(known, n.text) {
				return true
			}
			hint := "write one of " + choice
			if best := nearestOf(n.text, known...); best != "" {
				hint = fmt.Sprintf("did you mean %s? known are %s", best, choice)
			}
			l.bad(n, ErrInvalid, hint, "%s: unknown word %s", key, quote(n.text))
			return false
		},
	}
}

// number is the kind of a number within bounds.
func number(low, high float64) kind {
	want := fmt.Sprintf("a number from %g to %g", low, high)
	return kind{name: "number", want: want, hint: "write " + want + ", without quotes", fits: func(n *node) bool {
		f, ok := n.float()
		return ok && f >= low && f <= high
	}}
}

func isWhole(low int) func(*node) bool {
	return func(n *node) bool {
		i, ok := n.whole()
		return ok && i >= low && i <= math.MaxInt32
	}
}

func isMillis(n *node) bool {
	f, ok := n.float()
	return ok && f >= 0 && f*float64(time.Millisecond) < math.MaxInt64
}

// isFileRef reports whether a value has the form {file: PATH}.
func isFileRef(n *node) bool {
	return n.is == isObject && n.len() == 1 && n.kids.keys[0] == "file" && n.kids.nodes[0].is == isText
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

// decimal returns a number; nil is nil.
func decimal(n *node) *float64 {
	if n == nil {
		return nil
	}
	f, _ := n.float()
	return &f
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
	for i := range n.kids.nodes {
		out[i] = n.kids.nodes[i].text
	}
	return out
}

func (l *loader) notBlank(key string, n *node) bool {
	if strings.TrimSpace(n.text) != "" {
		return true
	}
	l.bad(n, ErrInvalid, "write one, or leave the key out", "%s: it is empty", key)
	return false
}

func (l *loader) onlyTexts(key string, n *node) bool {
	ok := true
	for i := range n.kids.nodes {
		if item := &n.kids.nodes[i]; item.is != isText {
			l.bad(item, ErrInvalid, "put it in quotes", "%s[%d]: %s where a text belongs", key, i, item.describe())
			ok = false
		}
	}
	return ok
}

// onlyTextValues is for headers, whose values may be credentials: they are not described.
func (l *loader) onlyTextValues(key string, n *node) bool {
	ok := true
	for i := range n.kids.nodes {
		if n.kids.nodes[i].is != isText {
			l.bad(&n.kids.nodes[i], ErrInvalid, "put it in quotes", "%s: %s is no text", key, quote(n.kids.keys[i]))
			ok = false
		}
	}
	return ok
}

func (l *loader) scope(key string, n *node) bool {
	switch n.text {
	case "dependencies":
		return true
	case "all":
		l.bad(n, ErrNotBuilt, "remove it, and name in dependsOn what the task needs", "%s: all: not built yet", key)
		return false
	}
	return words("dependencies").parts(l, key, n)
}

func (l *loader) provider(key string, n *node) bool {
	if n.text == "openai" {
		return true
	}
	l.bad(n, ErrRefused, "write openai, and the baseURL of an OpenAI-compatible endpoint", "%s: %s is not built in", key, quote(n.text))
	return false
}
