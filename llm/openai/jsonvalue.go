package openai

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// A valueReader reads JSON in one pass. Its time and memory are linear in the size of the
// text, whatever the shape: it builds no values that are not needed. The zero value is
// ready for use.
type valueReader struct {
	tokens *jsontext.Decoder
	in     bytes.Buffer
	data   []byte // what in had
}

// open makes data what d reads.
func (d *valueReader) open(data []byte) {
	d.data, d.in = data, *bytes.NewBuffer(data)
	if d.tokens == nil {
		d.tokens = jsontext.NewDecoder(&d.in, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		return
	}
	d.tokens.Reset(&d.in, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// object calls member with the name of each member. A value that member does not read is
// skipped. null is an object without members.
func (d *valueReader) object(member func(name []byte) error) error {
	if open, err := d.enter('{'); !open || err != nil {
		return err
	}
	for d.tokens.PeekKind() == '"' {
		raw, err := d.tokens.ReadValue()
		if err != nil {
			return err
		}
		name := []byte(raw[1 : len(raw)-1])
		if bytes.IndexByte(name, '\\') >= 0 {
			name, _ = jsontext.AppendUnquote(nil, raw)
		}
		if err := d.readOrSkip(func() error { return member(name) }); err != nil {
			return err
		}
	}
	_, err := d.tokens.ReadToken() // the end, or the error
	return err
}

// within is object for a value that may be of another kind, which is skipped.
func (d *valueReader) within(member func(name []byte) error) error {
	if d.tokens.PeekKind() != '{' {
		return nil
	}
	return d.object(member)
}

// since returns the text of the value that was read since an offset, which is that of the token before.
func (d *valueReader) since(offset int64) []byte {
	return bytes.TrimLeft(d.data[offset:d.tokens.InputOffset()], ",: \t\r\n")
}

// readOrSkip calls read for the next value, and skips the value unless read has read it.
func (d *valueReader) readOrSkip(read func() error) error {
	at := d.tokens.InputOffset()
	if err := read(); err != nil || d.tokens.InputOffset() > at {
		return err
	}
	return d.tokens.SkipValue()
}

// array calls item for each item. An item that it does not read is skipped. null is an
// array without items.
func (d *valueReader) array(item func() error) error {
	if open, err := d.enter('['); !open || err != nil {
		return err
	}
	for {
		switch d.tokens.PeekKind() {
		case ']', 0:
			_, err := d.tokens.ReadToken() // the end, or the error
			return err
		}
		if err := d.readOrSkip(item); err != nil {
			return err
		}
	}
}

// enter reads the opening token of a container. null opens nothing.
func (d *valueReader) enter(kind jsontext.Kind) (open bool, err error) {
	switch d.tokens.PeekKind() {
	case kind:
		_, err := d.tokens.ReadToken()
		return true, err
	case 'n', 0:
		return false, nil
	}
	return false, errForm
}

// string appends a string to a text. null is empty.
func (d *valueReader) string(text []byte) ([]byte, error) {
	switch d.tokens.PeekKind() {
	case '"':
		return d.quoted(text)
	case 'n', 0:
		return text, nil
	}
	return text, errForm
}

// quoted appends the string that comes next to a text.
func (d *valueReader) quoted(text []byte) ([]byte, error) {
	raw, err := d.tokens.ReadValue()
	if err == nil {
		text, _ = jsontext.AppendUnquote(text, raw) // invalid UTF-8 is replaced
	}
	return text, err
}

// optional appends a value to a text if it is a string. Other values are left to be skipped.
func (d *valueReader) optional(text []byte) ([]byte, error) {
	if d.tokens.PeekKind() == '"' {
		return d.quoted(text)
	}
	return text, nil
}

// verbatim appends to a text a string, or any other value as its JSON text. null is empty.
func (d *valueReader) verbatim(text []byte) ([]byte, error) {
	switch d.tokens.PeekKind() {
	case '"', 'n', 0:
		return d.string(text)
	}
	raw, err := d.tokens.ReadValue()
	return append(text, raw...), err
}

// integer reads an integer: a number without a fraction, or a string that holds
// one. known is false for every other value. A negative number that is no integer
// is read as -1, so that its sign is known.
func (d *valueReader) integer() (n int, known bool, err error) {
	var raw []byte
	switch d.tokens.PeekKind() {
	case '0':
		raw, err = d.tokens.ReadValue()
	case '"':
		raw, err = d.string(nil)
	default:
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	raw = bytes.TrimSpace(raw)
	text := string(raw[:min(len(raw), 64)]) // a longer number exceeds every integer or has a fraction
	if n, err := strconv.Atoi(text); err == nil {
		return n, true, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case f < 0:
		return -1, true, nil
	case err == nil && len(raw) <= 64 && f == math.Trunc(f) && f <= 1<<53:
		return int(f), true, nil
	}
	return 0, false, nil
}

// An object is a JSON object with its members in order.
type object []member

type member struct {
	name  string
	value any
}

// get returns the value of the last member with a name, or nil.
func (o object) get(name string) any {
	for _, m := range slices.Backward(o) {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// value reads a value of any form: an object, a []any, a string, a json.Number or nil, which
// also means true and false. With an error it returns what came before.
func (d *valueReader) value() (any, error) {
	switch d.tokens.PeekKind() {
	case '{':
		var out object
		err := d.object(func(name []byte) error {
			key := string(name) // name is valid until the next read
			value, err := d.value()
			out = append(out, member{key, value})
			return err
		})
		return out, err
	case '[':
		var out []any
		err := d.array(func() error {
			item, err := d.value()
			out = append(out, item)
			return err
		})
		return out, err
	case '"':
		text, err := d.string(nil)
		return string(text), err
	case '0':
		raw, err := d.tokens.ReadValue()
		return json.Number(raw), err
	}
	return nil, nil
}
