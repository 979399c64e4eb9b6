package textcall

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// A literal is a value that is read as JSON, Python or JavaScript write it: with texts in either quotes, names of members
// without them, True and None, and a comma behind the last member.
type literal struct {
	text string // what is left to read
	json strings.Builder
}

const maxDepth = 200

// readLiteral reads the value at the start of a text; length is 0 if there is none that can be read in one way only.
func readLiteral(text string) (value json.RawMessage, length int) {
	l := &literal{text: text}
	if !l.value(0) {
		return nil, 0
	}
	return json.RawMessage(l.json.String()), len(text) - len(l.text)
}

// readArguments reads the arguments of a call at the start of a text: those with keywords, or one object.
func readArguments(text string) (arguments json.RawMessage, length int) {
	l := &literal{text: text}
	if l.list('(', ')', '=', 0) {
		return json.RawMessage(l.json.String()), len(text) - len(l.text)
	}
	l = &literal{text: text[1:]}
	if l.next('{') && l.value(0) && l.take(')') {
		return json.RawMessage(l.json.String()), len(text) - len(l.text)
	}
	return nil, 0
}

// literalForms finds what has no quotes: names of members, and values.
var literalForms = sync.OnceValue(func() (f struct{ name, value *regexp.Regexp }) {
	f.name, f.value = regexp.MustCompile(`^[\pL_][\pL\pN_-]*`), regexp.MustCompile(`^[\w.+-]+`)
	return f
})

func (l *literal) value(depth int) bool {
	switch {
	case depth > maxDepth:
		return false
	case l.next('{'):
		return l.list('{', '}', ':', depth+1)
	case l.next('['):
		return l.list('[', ']', 0, depth+1)
	case l.next('"'), l.next('\''):
		return l.quoted()
	}
	word := literalForms().value.FindString(l.text)
	l.text = l.text[len(word):]
	switch word {
	case "True", "False":
		word = strings.ToLower(word)
	case "None":
		word = "null"
	}
	l.json.WriteString(word)
	return json.Valid([]byte(word))
}

// list reads the members of an object, each with what assigns its value, or the items of a list.
func (l *literal) list(first, last, assigns byte, depth int) bool {
	l.take(first)
	write := string(first) + string(last)
	if assigns != 0 {
		write = "{}"
	}
	l.json.WriteByte(write[0])
	for n := 0; !l.take(last); n++ {
		if n > 0 {
			if !l.take(',') {
				return false
			}
			if l.take(last) {
				break
			}
			l.json.WriteByte(',')
		}
		if assigns != 0 {
			if !l.memberName(assigns == '=') || !l.take(assigns) {
				return false
			}
			l.json.WriteByte(':')
		}
		if !l.value(depth) {
			return false
		}
	}
	l.json.WriteByte(write[1])
	return true
}

// memberName reads the name of a member; a keyword has no quotes.
func (l *literal) memberName(isKeyword bool) bool {
	if (l.next('"') || l.next('\'')) && !isKeyword {
		return l.quoted()
	}
	name := literalForms().name.FindString(l.text)
	l.text = l.text[len(name):]
	l.json.WriteString(`"` + name + `"`)
	return name != ""
}

// quoted reads a text. Escapes that JSON does not have are not read, but for that of a single quote.
func (l *literal) quoted() bool {
	quote, start := l.text[0], l.json.Len()
	l.json.WriteByte('"')
	for i := 1; i < len(l.text); i++ {
		switch c := l.text[i]; {
		case c == quote:
			l.text = l.text[i+1:]
			l.json.WriteByte('"')
			return json.Valid([]byte(l.json.String()[start:]))
		case c == '\\' && i+1 < len(l.text):
			i++
			if c = l.text[i]; c == '\'' {
				l.json.WriteByte(c)
				continue
			}
			if quote == '\'' && c == '/' { // both characters in Python, one in JavaScript
				return false
			}
			l.json.Write([]byte{'\\', c})
		case c == '"', c < ' ':
			fmt.Fprintf(&l.json, `\u%04x`, c)
		default:
			l.json.WriteByte(c)
		}
	}
	return false
}

// next reports whether a character is next, behind spaces.
func (l *literal) next(c byte) bool {
	l.text = strings.TrimLeft(l.text, " \t\r\n")
	return l.text != "" && l.text[0] == c
}

// take reads a character, if it is next.
func (l *literal) take(c byte) bool {
	if !l.next(c) {
		return false
	}
	l.text = l.text[1:]
	return true
}
