package jsonvalue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads one JSON value as strictly as [Parse] does and returns what [Value.Value]
// would, without making the canonical form. It also reads numbers beyond float64, which
// have no canonical form. The strings of the value are parts of raw, which stays in memory
// as long as one of them does.
func Decode(raw string) (any, error) {
	if len(raw) > MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrInvalid, len(raw), MaxBytes)
	}
	if !utf8.ValidString(raw) {
		return nil, fmt.Errorf("%w: not valid UTF-8 at byte %d", ErrInvalid, invalidAt(raw))
	}
	d := decoder{raw: raw, tokens: jsontext.NewDecoder(bytes.NewBufferString(raw))}
	value, err := d.value(0)
	if err != nil {
		return nil, d.refusal(err)
	}
	if rest := strings.TrimLeft(raw[d.tokens.InputOffset():], " \t\r\n"); rest != "" {
		return nil, fmt.Errorf("%w: something follows the value at byte %d", ErrInvalid, len(raw)-len(rest))
	}
	return value, nil
}

// invalidAt returns the offset of the first byte that is not valid UTF-8.
func invalidAt(text string) int {
	for i, r := range text {
		if r != utf8.RuneError {
			continue
		}
		if _, n := utf8.DecodeRuneInString(text[i:]); n == 1 {
			return i
		}
	}
	return len(text)
}

// A decoder builds a value from tokens, which are strict by themselves: valid escapes, no
// half of a surrogate pair, no key twice in an object.
type decoder struct {
	raw    string
	tokens *jsontext.Decoder
}

var errDeep = fmt.Errorf("%w: nested deeper than %d", ErrInvalid, MaxDepth)

func (d *decoder) value(depth int) (any, error) {
	if depth > MaxDepth {
		return nil, errDeep
	}
	switch d.tokens.PeekKind() {
	case '{':
		return d.object(depth)
	case '[':
		return d.array(depth)
	case '"':
		return d.text()
	case '0':
		number, err := d.scalar()
		return json.Number(number), err
	}
	tok, err := d.tokens.ReadToken()
	if err != nil || tok.Kind() == 'n' {
		return nil, err
	}
	return tok.Kind() == 't', nil
}

func (d *decoder) object(depth int) (any, error) {
	members := map[string]any{}
	_, err := d.tokens.ReadToken()
	for err == nil && d.tokens.PeekKind() == '"' {
		var key string
		if key, err = d.text(); err == nil {
			members[key], err = d.value(depth + 1)
		}
	}
	return members, d.end(err)
}

func (d *decoder) array(depth int) (any, error) {
	items := []any{}
	_, err := d.tokens.ReadToken()
	for err == nil && d.tokens.PeekKind() != ']' {
		var item any
		item, err = d.value(depth + 1)
		items = append(items, item)
	}
	return items, d.end(err)
}

// end reads the bracket after the last member; anything else there is an error.
func (d *decoder) end(err error) error {
	if err == nil {
		_, err = d.tokens.ReadToken()
	}
	return err
}

// scalar reads a string or a number and returns how it is written.
func (d *decoder) scalar() (string, error) {
	v, err := d.tokens.ReadValue()
	if err != nil {
		return "", err
	}
	end := int(d.tokens.InputOffset())
	return d.raw[end-len(v) : end], nil
}

// text reads a string. One without escapes is a part of the input.
func (d *decoder) text() (string, error) {
	quoted, err := d.scalar()
	if err != nil {
		return "", err
	}
	if strings.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1], nil
	}
	b, err := jsontext.AppendUnquote(make([]byte, 0, len(quoted)), quoted)
	return string(b), err
}

// refusal returns an error with the problem and its offset. It does not quote the text,
// which err may do.
func (d *decoder) refusal(err error) error {
	if errors.Is(err, ErrInvalid) {
		return err
	}
	what, at := "broken off or malformed", d.tokens.InputOffset()
	if wrong, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		at = wrong.ByteOffset
	}
	switch unit, ok := escaped(d.raw[at:]); {
	case errors.Is(err, jsontext.ErrDuplicateName):
		what = "duplicate key"
	case ok && utf16.IsSurrogate(unit):
		what = "half of a surrogate pair"
	}
	return fmt.Errorf("%w: %s at byte %d", ErrInvalid, what, at)
}

// escaped returns the code unit of the escape \uXXXX at the beginning of a text.
func escaped(text string) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(text[2:6], 16, 16)
	return rune(unit), err == nil
}
