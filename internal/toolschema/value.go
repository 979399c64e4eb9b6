package toolschema

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// A value of JSON is an *object, an *array, or the text of anything else as a jsontext.Value.
// Members keep their order, in which the author of a schema wants a model to read them, and
// numbers keep their digits.
type (
	object struct{ members []member }
	member struct {
		name  string
		value any
	}
	array struct{ items []any }
)

// maxNesting is how deeply values may be nested. encoding/json allows ten times that.
const maxNesting = 1000

var (
	errNesting  = errors.New("nested too deeply")
	errTrailing = errors.New("something follows the value")
)

// parse reads a value. It refuses duplicate names and invalid UTF-8. The value shares the memory of
// raw.
func parse(raw []byte) (any, error) {
	r := readers.Get().(*reader)
	defer readers.Put(r)
	r.raw, r.in, r.nested = raw, *bytes.NewBuffer(raw), 0
	r.tokens.Reset(&r.in)
	defer func() { r.raw, r.in = nil, bytes.Buffer{} }()
	v, err := r.value()
	if err != nil {
		return nil, err
	}
	if _, err := r.tokens.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errTrailing
	}
	return v, nil
}

// A reader reads values from a text.
type reader struct {
	raw    []byte
	in     bytes.Buffer
	tokens *jsontext.Decoder
	nested int
}

// readers keeps readers for use again.
var readers = sync.Pool{New: func() any { return &reader{tokens: jsontext.NewDecoder(new(bytes.Buffer))} }}

// next returns the text of the next value.
func (r *reader) next() ([]byte, error) {
	v, err := r.tokens.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(r.tokens.InputOffset())
	return r.raw[end-len(v) : end : end], nil
}

// value reads the next value.
func (r *reader) value() (any, error) {
	switch r.tokens.PeekKind() {
	case '{':
		return r.object()
	case '[':
		return r.array()
	}
	v, err := r.next()
	return jsontext.Value(v), err
}

// open reads the beginning of an object or array.
func (r *reader) open() error {
	if r.nested++; r.nested > maxNesting {
		return errNesting
	}
	_, err := r.tokens.ReadToken()
	return err
}

// close reads the end of an object or array.
func (r *reader) close() error {
	r.nested--
	_, err := r.tokens.ReadToken()
	return err
}

func (r *reader) object() (any, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	o := &object{}
	for r.tokens.PeekKind() == '"' {
		raw, err := r.next()
		if err != nil {
			return nil, err
		}
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		if o.members == nil {
			o.members = make([]member, 0, 4)
		}
		o.members = append(o.members, member{nameOf(raw), v})
	}
	return o, r.close()
}

func (r *reader) array() (any, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	a := &array{}
	for k := r.tokens.PeekKind(); k != ']' && k != 0; k = r.tokens.PeekKind() {
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		a.items = append(a.items, v)
	}
	return a, r.close()
}

// nameOf returns the text that a valid JSON string spells.
func nameOf(raw []byte) string {
	name := raw[1 : len(raw)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name, _ = jsontext.AppendUnquote(nil, raw)
	}
	switch string(name) { // no allocation for what most schemas have
	case "type":
		return "type"
	case "string":
		return "string"
	case "description":
		return "description"
	case "properties":
		return "properties"
	case "object":
		return "object"
	case "required":
		return "required"
	case "items":
		return "items"
	case "enum":
		return "enum"
	case "array":
		return "array"
	case "integer":
		return "integer"
	case "number":
		return "number"
	case "additionalProperties":
		return "additionalProperties"
	}
	return string(name)
}

// appendValue appends a value as compact JSON.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case *object:
		b = append(b, '{')
		for i, m := range v.members {
			if i > 0 {
				b = append(b, ',')
			}
			b, _ = jsontext.AppendQuote(b, m.name) // replaces invalid UTF-8
			b = appendValue(append(b, ':'), m.value)
		}
		return append(b, '}')
	case *array:
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, item)
		}
		return append(b, ']')
	case jsontext.Value:
		return append(b, v...)
	}
	return append(b, "null"...)
}

// text returns a text as a value.
func text(s string) jsontext.Value {
	raw, _ := jsontext.AppendQuote(nil, s)
	return raw
}

// textOf returns the text of a value that is one.
func textOf(v any) (string, bool) {
	raw, _ := v.(jsontext.Value)
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return nameOf(raw), true
}

// isLiteral reports whether a value is true, false or null.
func isLiteral(v any, literal string) bool {
	raw, ok := v.(jsontext.Value)
	return ok && string(raw) == literal
}

// isNumber reports whether a value is a number.
func isNumber(v any) bool {
	raw, ok := v.(jsontext.Value)
	return ok && (raw.Kind() == '0')
}

// literalTrue is the value true.
var literalTrue = jsontext.Value("true")

func (o *object) index(name string) int {
	return slices.IndexFunc(o.members, func(m member) bool { return m.name == name })
}

// get returns the value of a member, or nil.
func (o *object) get(name string) any {
	if i := o.index(name); i >= 0 {
		return o.members[i].value
	}
	return nil
}

func (o *object) has(name string) bool { return o.index(name) >= 0 }

// set sets a member, at its place or at the end.
func (o *object) set(name string, v any) {
	if i := o.index(name); i >= 0 {
		o.members[i].value = v
		return
	}
	o.members = append(o.members, member{name, v})
}

// put adds a member at the end, unless there is one.
func (o *object) put(name string, v any) {
	if !o.has(name) {
		o.members = append(o.members, member{name, v})
	}
}

// remove removes a member, and returns its value.
func (o *object) remove(name string) any {
	i := o.index(name)
	if i < 0 {
		return nil
	}
	v := o.members[i].value
	o.members = slices.Delete(o.members, i, i+1)
	return v
}

// objectOf returns a value that is an object, or nil.
func objectOf(v any) *object {
	o, _ := v.(*object)
	return o
}

// listOf returns the items of a value that is an array.
func listOf(v any) []any {
	if a, ok := v.(*array); ok {
		return a.items
	}
	return nil
}

// texts returns the texts of a list, each once.
func texts(v any) (list []string) {
	for _, item := range listOf(v) {
		if s, ok := textOf(item); ok && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// listOfTexts returns texts as a value.
func listOfTexts(list []string) *array {
	a := &array{items: make([]any, len(list))}
	for i, s := range list {
		a.items[i] = text(s)
	}
	return a
}
