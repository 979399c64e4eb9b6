package specfile

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JSON is read by a scanner of its own and not by encoding/json: that one
// takes duplicate keys and broken surrogates in silence and does not say where
// a value begins. This one is one pass, strict (RFC 8259), and keeps parts of
// the file as they are instead of copies.

// Limits of a JSON file. MaxValues bounds memory: a file that is made of
// brackets and commas would take thirty times its size.
const (
	maxJSON   = 64 << 20
	maxDepth  = 100
	maxValues = 1 << 21
)

// A fault is a place where a file is no YAML or JSON.
type fault struct {
	at            int
	message, hint string
	refused       bool // it could be read, but is not taken
}

func (f *fault) Error() string { return f.message }

// parseJSON reads the text of a source. Duplicate keys come back beside the tree.
func parseJSON(s *source) (n *node, twice []fault, err error) {
	p := &jsonParser{src: s, text: s.text}
	defer func() {
		// Descending by plain calls and leaving by panic keeps the scanner short; nothing else is caught.
		if r := recover(); r != nil {
			f, ok := r.(*fault)
			if !ok {
				panic(r)
			}
			n, twice, err = nil, nil, f
		}
	}()
	p.blanks()
	n = new(node)
	p.value(n, 0)
	p.blanks()
	if p.i < len(p.text) {
		p.fail("%s after the end of the document", p.found())
	}
	return n, p.twice, nil
}

type jsonParser struct {
	src    *source
	text   string
	i      int
	values int
	twice  []fault
	keys   []string // scratch stacks, so that each list is copied once, at its size
	keyAt  []int
	nodes  []node
}

func (p *jsonParser) fail(format string, args ...any) { p.failAt(p.i, format, args...) }

func (p *jsonParser) failAt(at int, format string, args ...any) {
	panic(&fault{at: at, message: fmt.Sprintf(format, args...)})
}

// found names the character at the scanner, for messages.
func (p *jsonParser) found() string {
	if p.i >= len(p.text) {
		return "the end of the file"
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.i:])
	return strconv.QuoteRune(r)
}

func (p *jsonParser) blanks() {
	for p.i < len(p.text) {
		switch p.text[p.i] {
		case ' ', '\t', '\n', '\r':
			p.i++
		default:
			return
		}
	}
}

// value reads one value into n.
func (p *jsonParser) value(n *node, depth int) {
	if p.values++; p.values > maxValues {
		p.fail("more than %d values in one file", maxValues)
	}
	if depth > maxDepth {
		p.fail("nested deeper than %d levels", maxDepth)
	}
	n.src, n.at = p.src, p.i
	if p.i == len(p.text) {
		p.fail("the file ends where a value belongs")
	}
	switch c := p.text[p.i]; {
	case c == '{':
		n.is = isObject
		p.object(n, depth)
	case c == '[':
		n.is = isList
		p.list(n, depth)
	case c == '"':
		n.is, n.form, n.text = isText, quoted, p.string()
	case c == '-' || c >= '0' && c <= '9':
		n.is, n.text = isNumber, p.number()
	case p.word("true"), p.word("false"):
		n.is, n.text = isBool, p.text[n.at:p.i]
	case p.word("null"):
	default:
		p.fail("%s where a value belongs", p.found())
	}
}

func (p *jsonParser) word(w string) bool {
	if !strings.HasPrefix(p.text[p.i:], w) {
		return false
	}
	p.i += len(w)
	return true
}

// next reads what separates two parts of a list or an object, or ends it.
func (p *jsonParser) next(first bool, shut byte) (more bool) {
	p.blanks()
	if p.i < len(p.text) && p.text[p.i] == shut {
		p.i++
		return false
	}
	if first {
		return true
	}
	if p.i == len(p.text) || p.text[p.i] != ',' {
		p.fail("%s where a comma or %q belongs", p.found(), shut)
	}
	comma := p.i
	p.i++
	p.blanks()
	if p.i < len(p.text) && p.text[p.i] == shut {
		p.failAt(comma, "a comma before %q", shut)
	}
	return true
}

func (p *jsonParser) list(n *node, depth int) {
	start := len(p.nodes)
	p.i++
	for first := true; p.next(first, ']'); first = false {
		var item node
		p.value(&item, depth+1)
		p.nodes = append(p.nodes, item)
	}
	n.kids = &kids{nodes: append([]node(nil), p.nodes[start:]...), end: p.i}
	p.nodes = p.nodes[:start]
}

func (p *jsonParser) object(n *node, depth int) {
	start, startKeys := len(p.nodes), len(p.keys)
	p.i++
	for first := true; p.next(first, '}'); first = false {
		at := p.i
		if p.i == len(p.text) || p.text[p.i] != '"' {
			p.fail("%s where a key in double quotes belongs", p.found())
		}
		key := p.string()
		p.blanks()
		if p.i == len(p.text) || p.text[p.i] != ':' {
			p.fail("%s where a colon belongs", p.found())
		}
		p.i++
		p.blanks()
		var value node
		p.keys, p.keyAt = append(p.keys, key), append(p.keyAt, at)
		p.value(&value, depth+1)
		p.nodes = append(p.nodes, value)
	}
	n.kids = &kids{
		keys:  append([]string(nil), p.keys[startKeys:]...),
		keyAt: append([]int(nil), p.keyAt[startKeys:]...),
		nodes: append([]node(nil), p.nodes[start:]...),
		end:   p.i,
	}
	p.nodes, p.keys, p.keyAt = p.nodes[:start], p.keys[:startKeys], p.keyAt[:startKeys]
	p.twice = append(p.twice, duplicates(p.src, n.kids)...)
}

func (p *jsonParser) number() string {
	start := p.i
	digits := func() {
		from := p.i
		for p.i < len(p.text) && p.text[p.i] >= '0' && p.text[p.i] <= '9' {
			p.i++
		}
		if p.i == from {
			p.fail("%s where a digit belongs", p.found())
		}
	}
	if p.text[p.i] == '-' {
		p.i++
	}
	if p.i < len(p.text) && p.text[p.i] == '0' {
		if p.i++; p.i < len(p.text) && p.text[p.i] >= '0' && p.text[p.i] <= '9' {
			p.failAt(start, "a number that begins with 0")
		}
	} else {
		digits()
	}
	if p.i < len(p.text) && p.text[p.i] == '.' {
		p.i++
		digits()
	}
	if p.i < len(p.text) && (p.text[p.i] == 'e' || p.text[p.i] == 'E') {
		if p.i++; p.i < len(p.text) && (p.text[p.i] == '+' || p.text[p.i] == '-') {
			p.i++
		}
		digits()
	}
	return p.text[start:p.i]
}

// string reads a string; without escapes it is a part of the file, not a copy.
func (p *jsonParser) string() string {
	start := p.i
	p.i++
	for p.i < len(p.text) {
		switch c := p.text[p.i]; {
		case c == '"':
			p.i++
			return p.text[start+1 : p.i-1]
		case c == '\\':
			return p.escaped(start)
		case c < ' ':
			p.fail("%s in a string: write it as an escape, such as \\n", p.found())
		default:
			p.i++
		}
	}
	p.failAt(start, "a string without an end")
	return ""
}

func (p *jsonParser) escaped(start int) string {
	var b strings.Builder
	b.WriteString(p.text[start+1 : p.i])
	for p.i < len(p.text) {
		switch c := p.text[p.i]; {
		case c == '"':
			p.i++
			return b.String()
		case c == '\\':
			text, size, err := unescape(p.text[p.i:])
			if err != nil {
				p.fail("%v", err)
			}
			b.WriteString(text)
			p.i += size
		case c < ' ':
			p.fail("%s in a string: write it as an escape, such as \\n", p.found())
		default:
			b.WriteByte(c)
			p.i++
		}
	}
	p.failAt(start, "a string without an end")
	return ""
}
