package jsonvalue

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Encode returns the canonical form of a decoded value, as [Value.Value] and [Decode]
// return it: map[string]any, []any, string, bool, nil and json.Number. The result is that
// of [Parse] for the text of the value. A value that no strict JSON text represents is an
// [ErrInvalid]. The result shares the value, which must not be changed afterwards.
func Encode(value any) (Value, error) {
	b, err := appendCanonical(nil, value, 0)
	if err != nil {
		return Value{}, err
	}
	if len(b) > MaxBytes { // 1e15 becomes sixteen digits
		return Value{}, fmt.Errorf("%w: %d bytes in its canonical form, at most %d", ErrInvalid, len(b), MaxBytes)
	}
	return Value{canonical: string(b), value: value}, nil
}

// appendCanonical appends a value as RFC 8785 writes it.
func appendCanonical(b []byte, value any, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("%w: nested deeper than %d", ErrInvalid, MaxDepth)
	}
	switch v := value.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case string:
		return appendQuoted(b, v)
	case json.Number:
		return appendNumber(b, v)
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = appendCanonical(b, item, depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case map[string]any:
		return appendObject(b, v, depth)
	}
	return nil, fmt.Errorf("%w: a %T has no canonical form", ErrInvalid, value)
}

func appendObject(b []byte, members map[string]any, depth int) ([]byte, error) {
	var few [16]string
	keys := few[:0]
	for key := range members {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, byUnits)
	b = append(b, '{')
	for i, key := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendQuoted(b, key); err != nil {
			return nil, err
		}
		if b, err = appendCanonical(append(b, ':'), members[key], depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// byUnits orders keys by their UTF-16 code units, as RFC 8785 does.
func byUnits(a, b string) int {
	for a != "" && b != "" {
		r, n := utf8.DecodeRuneInString(a)
		s, m := utf8.DecodeRuneInString(b)
		if r != s {
			return firstUnit(r) - firstUnit(s)
		}
		a, b = a[n:], b[m:]
	}
	return len(a) - len(b)
}

// firstUnit returns a number that orders runes by their UTF-16 code units. Two runes with
// the same high surrogate differ in the low one.
func firstUnit(r rune) int {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return int(high)<<16 | int(low)
	}
	return int(r) << 16
}

// appendQuoted appends a string with the escapes of RFC 8785 and no others.
func appendQuoted(b []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("%w: not valid UTF-8", ErrInvalid)
	}
	return jsontext.AppendQuote(b, s)
}

// appendNumber appends a number as ECMAScript writes it. A number that would be written as
// an integer beyond ±2^53 is appended as a string, since a double does not have its digits.
func appendNumber(b []byte, n json.Number) ([]byte, error) {
	if !strings.ContainsAny(string(n), ".eE") {
		return appendInteger(b, n)
	}
	f, err := n.Float64()
	if err != nil {
		return nil, errNumber
	}
	if abs := math.Abs(f); abs > 1<<53 && abs < 1e21 {
		return appendQuoted(b, string(n))
	}
	return append(b, jsontext.Float(f+0).String()...), nil // -0 + 0 is 0
}

func appendInteger(b []byte, n json.Number) ([]byte, error) {
	i, err := n.Int64()
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		return nil, errNumber
	case err != nil || i > 1<<53 || i < -1<<53:
		return appendQuoted(b, string(n))
	}
	return strconv.AppendInt(b, i, 10), nil
}

var errNumber = fmt.Errorf("%w: a number in it has no canonical form", ErrInvalid)
