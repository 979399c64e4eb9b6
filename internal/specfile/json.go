package specfile

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits of a JSON file. maxValues bounds memory: values made of brackets and commas take
// many times their size in the file.
const (
	maxJSON   = 64 << 20
	maxDepth  = 100
	maxValues = 1 << 21
)

// A fault is a place where a file is not valid YAML or JSON.
type fault struct {
	at            int
	message, hint string
	refused       bool // it could be parsed, but is not supported
}

func (f *fault) Error() string { return f.message }

// condition returns what is wrong with a file that could or could not be parsed.
func (f *fault) condition(parsed bool) error {
	if parsed && !f.refused {
		return ErrInvalid
	}
	return ErrSyntax
}

// parseJSON reads the text of a source, which must be strict JSON (RFC 8259). It returns
// duplicate keys separately.
func parseJSON(s *source) (n *node, twice []fault, err error) { return newJSONParser(s).document() }

// A jsonParser makes nodes from tokens. Texts without escapes share memory with the file.
type jsonParser struct {
	src       *source
	tokens    *jsontext.Decoder
	at        int  // where the last token begins
	key       bool // a key was expected, and the token is not one
	values    int
	maxValues int
	twice     []fault
	nodes     []node // scratch stack, so that each list is copied once, at its size
}

func newJSONParser(s *source) *jsonParser {
	return &jsonParser{src: s, tokens: jsontext.NewDecoder(strings.NewReader(s.text), jsontext.AllowDuplicateNames(true)), maxValues: maxValues}
}

// document reads the one value of a file.
func (p *jsonParser) document() (n *node, twice []fault, err error) {
	n = new(node)
	if err := p.value(n, 0); err != nil {
		return nil, nil, p.fault(err)
	}
	if _, err := p.next(); err != io.EOF {
		return nil, nil, &fault{at: p.at, message: p.found(p.at) + " after the end of the document"}
	}
	return n, p.twice, nil
}

// next reads a token, which begins at p.at.
func (p *jsonParser) next() (jsontext.Token, error) {
	p.at = int(p.tokens.InputOffset())
	for p.at < len(p.src.text) && strings.IndexByte(" \t\r\n,:", p.src.text[p.at]) >= 0 {
		p.at++
	}
	return p.tokens.ReadToken()
}

// raw returns the last token as it is written.
func (p *jsonParser) raw() string { return p.src.text[p.at:p.tokens.InputOffset()] }

// text returns the value of a string token.
func (p *jsonParser) text(t jsontext.Token) string {
	if raw := p.raw(); strings.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	return t.String()
}

// value reads one value into n.
func (p *jsonParser) value(n *node, depth int) error {
	t, err := p.next()
	switch p.values++; {
	case err == io.EOF:
		return &fault{at: p.at, message: "the file ends where a value belongs"}
	case err != nil:
		return err
	case p.values > p.maxValues:
		return &fault{at: p.at, message: fmt.Sprintf("more than %d values in one file", p.maxValues)}
	case depth > maxDepth:
		return &fault{at: p.at, message: fmt.Sprintf("nested deeper than %d levels", maxDepth)}
	}
	n.src, n.at = p.src, p.at
	switch t.Kind() {
	case '{':
		n.is = isObject
		return p.parts(n, '}', depth+1)
	case '[':
		n.is = isList
		return p.parts(n, ']', depth+1)
	case '"':
		n.is, n.form, n.text = isText, quoted, p.text(t)
	case '0':
		n.is, n.text = isNumber, p.raw()
	case 't', 'f':
		n.is, n.text = isBool, p.raw()
	}
	return nil
}

// parts reads the parts of an object or a list up to its end.
func (p *jsonParser) parts(n *node, end jsontext.Kind, depth int) error {
	start := len(p.nodes)
	for p.tokens.PeekKind() != end {
		var part node
		if n.is == isObject {
			t, err := p.next()
			if p.key = err != nil; p.key {
				return err
			}
			part.key, part.keyAt = p.text(t), p.at
		}
		if err := p.value(&part, depth); err != nil {
			return err
		}
		p.nodes = append(p.nodes, part)
	}
	if _, err := p.tokens.ReadToken(); err != nil {
		return err
	}
	n.kids = slices.Clone(p.nodes[start:])
	n.close(int(p.tokens.InputOffset()))
	p.nodes = p.nodes[:start]
	p.twice = append(p.twice, n.duplicates()...)
	return nil
}

// found names the character at an offset, for messages.
func (p *jsonParser) found(at int) string {
	if r, size := utf8.DecodeRuneInString(p.src.text[at:]); size > 0 {
		return strconv.QuoteRune(r)
	}
	return "the end of the file"
}

// expected maps messages of the decoder to what it expected.
var expected = []struct{ says, belongs string }{
	{"(expecting ':')", "a colon belongs"}, {"(expecting ',' or '}')", `a comma or '}' belongs`}, {"(expecting ',' or ']')", `a comma or ']' belongs`},
	{jsontext.ErrNonStringName.Error(), "a key in double quotes belongs"}, {"(expecting digit)", "a digit belongs"}, {"", "a value belongs"},
}

// fault describes an error of the decoder.
func (p *jsonParser) fault(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	wrong, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok {
		return &fault{at: p.at, message: err.Error()}
	}
	at, says := int(wrong.ByteOffset), wrong.Err.Error()
	_, behind, _ := strings.Cut(p.src.text[min(at, len(p.src.text)):], ",")
	behind = strings.TrimLeft(behind, " \t\r\n")
	switch {
	case strings.HasPrefix(p.src.text[at:], ",") && behind != "" && strings.IndexByte("]}", behind[0]) >= 0:
		return &fault{at: at, message: fmt.Sprintf("a comma before %q", behind[0])}
	case errors.Is(err, io.ErrUnexpectedEOF) && strings.HasPrefix(p.src.text[p.at:], `"`):
		return &fault{at: p.at, message: "a string without an end"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &fault{at: at, message: "the file ends in the middle of a value"}
	case strings.Contains(says, "surrogate"):
		return &fault{at: at, message: "one half of a surrogate pair, without the other"}
	case strings.Contains(says, "escape sequence"):
		return &fault{at: at, message: `no escape of JSON: write \" \\ \/ \b \f \n \r \t or \u and four hexadecimal digits`}
	case strings.Contains(says, "non-control"):
		return &fault{at: at, message: p.found(at) + " in a string: write it as an escape, such as \\n"}
	case p.key && strings.Contains(says, "at start of value"):
		at, says = p.at, jsontext.ErrNonStringName.Error()
	case strings.Contains(says, "in literal"):
		at = p.at
	}
	i := slices.IndexFunc(expected, func(e struct{ says, belongs string }) bool { return strings.Contains(says, e.says) })
	return &fault{at: at, message: p.found(at) + " where " + expected[i].belongs}
}
