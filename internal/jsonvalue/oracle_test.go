package jsonvalue_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/jsonvalue"
)

// oracle reads a value strictly with the decoder of encoding/json, which knows
// neither duplicate keys nor surrogates nor limits: those are checked beside it.
func oracle(raw string) (any, error) {
	if len(raw) > jsonvalue.MaxBytes || !utf8.ValidString(raw) || halfPair(raw) {
		return nil, errRefused
	}
	o := reader{json.NewDecoder(strings.NewReader(raw))}
	o.UseNumber()
	value, err := o.value(0)
	if err != nil {
		return nil, errRefused
	}
	if _, err := o.Token(); err != io.EOF {
		return nil, errRefused
	}
	return value, nil
}

var errRefused = errors.New("refused")

type reader struct{ *json.Decoder }

func (o reader) value(depth int) (any, error) {
	if depth > jsonvalue.MaxDepth {
		return nil, errRefused
	}
	switch tok, err := o.Token(); tok {
	case json.Delim('{'):
		return o.object(depth)
	case json.Delim('['):
		return o.array(depth)
	default:
		return tok, err
	}
}

func (o reader) object(depth int) (any, error) {
	members := map[string]any{}
	for o.More() {
		tok, err := o.Token()
		key, _ := tok.(string)
		if _, twice := members[key]; twice || err != nil {
			return nil, errRefused
		}
		if members[key], err = o.value(depth + 1); err != nil {
			return nil, err
		}
	}
	_, err := o.Token()
	return members, err
}

func (o reader) array(depth int) (any, error) {
	items := []any{}
	for o.More() {
		item, err := o.value(depth + 1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := o.Token()
	return items, err
}

// halfPair reports whether an escape stands for half of a surrogate pair. Of
// text that is no JSON it may report either.
func halfPair(raw string) bool {
	var high rune // what the escape just before stands for, if it is a high surrogate
	for i := 0; i < len(raw); {
		unit, n := rune(raw[i]), 1
		if raw[i] == '\\' {
			unit, n = escape(raw[i:])
		}
		if high != 0 && utf16.DecodeRune(high, unit) == unicode.ReplacementChar || high == 0 && 0xdc00 <= unit && unit < 0xe000 {
			return true
		}
		if high != 0 || !utf16.IsSurrogate(unit) {
			high = 0
		} else {
			high = unit
		}
		i += n
	}
	return high != 0
}

// escape returns the unit that an escape stands for, 0 for any but \u, and its length.
func escape(text string) (rune, int) {
	var unit string
	if len(text) >= 6 && json.Unmarshal([]byte(`"`+text[:6]+`"`), &unit) != nil || len(text) < 6 || text[1] != 'u' {
		return 0, 2
	}
	var n rune
	for _, c := range strings.ToLower(text[2:6]) {
		n = n<<4 | rune(strings.IndexRune("0123456789abcdef", c))
	}
	return n, 6
}
