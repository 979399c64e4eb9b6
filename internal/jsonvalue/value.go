package jsonvalue

import (
	"errors"
	"strconv"
)

// Limits on structured values.
const (
	MaxBytes = 4 << 20 // of one value as it was written
	MaxDepth = 128     // arrays and objects inside each other
)

// ErrInvalid reports a text that is not one strict JSON value.
var ErrInvalid = errors.New("not one strict JSON value")

// A Value is one JSON value that was read strictly and once. It is immutable.
type Value struct {
	canonical string
	value     any
}

// Canonical returns the value as RFC 8785 writes it: without whitespace, with sorted keys.
func (v Value) Canonical() string { return v.canonical }

// Value returns the decoded value: map[string]any, []any, string, bool, nil,
// and json.Number for numbers, as they were written. It is a copy.
func (v Value) Value() any { return copied(v.value) }

// copied returns v with maps and slices of its own.
func copied(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, member := range v {
			out[key] = copied(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = copied(item)
		}
		return out
	}
	return v
}

// Parse reads one JSON value strictly: valid UTF-8 and escapes, no
// duplicate keys (compared after decoding), nothing after the value, at most
// [MaxBytes] long and [MaxDepth] deep. Otherwise the error wraps [ErrInvalid]; it has the
// offset and never quotes the text.
//
// The canonical form keeps numbers between ±2^53 and ±1e21, and all integers
// beyond, as strings: RFC 8785 would write other digits than the text has.
// Reading a canonical form again gives the same canonical form.
func Parse(raw string) (Value, error) {
	value, err := Decode(raw)
	if err != nil {
		return Value{}, err
	}
	return Encode(value)
}

// FindValue returns the value of a text that is only a JSON value, or one code fence around
// it, as [Decode] does.
func FindValue(text string) (any, error) {
	_, body, _ := Unfence(text)
	return Decode(body)
}

// At returns the part of a decoded value that the segments of an RFC 6901 pointer name.
func At(v any, path []string) (part any, found bool) {
	for _, token := range path {
		switch in := v.(type) {
		case map[string]any:
			if v, found = in[token]; !found {
				return nil, false
			}
		case []any:
			i, ok := Index(token)
			if !ok || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// Index returns the number of an array element, written as RFC 6901 does.
func Index(token string) (int, bool) {
	k, err := strconv.Atoi(token)
	return k, err == nil && k >= 0 && strconv.Itoa(k) == token
}
