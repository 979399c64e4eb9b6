package envelope

import "errors"

// Limits on structured values.
const (
	MaxJSONBytes = 4 << 20 // of one value as it was written
	MaxJSONDepth = 128     // arrays and objects inside each other
)

// ErrJSON reports a text that is not one strict JSON value.
var ErrJSON = errors.New("not one strict JSON value")

// JSON is one JSON value that was read strictly and once. It is immutable.
type JSON struct {
	canonical string
	value     any
}

// Canonical returns the value as RFC 8785 writes it: no blanks, sorted keys.
func (v JSON) Canonical() string { return v.canonical }

// Value returns the decoded value: map[string]any, []any, string, bool, nil,
// and json.Number for numbers, as they were written. It is a copy.
func (v JSON) Value() any { return copied(v.value) }

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

// ParseJSON reads one JSON value strictly: valid UTF-8 and escapes, no
// duplicate keys (compared after decoding), nothing after the value, at most
// [MaxJSONBytes] long and [MaxJSONDepth] deep. Otherwise the error wraps
// [ErrJSON]; it says where, and never quotes the text.
//
// The canonical form keeps numbers between ±2^53 and ±1e21, and all integers
// beyond, as strings: RFC 8785 would write digits there that nobody wrote.
// Reading a canonical form again gives the same canonical form.
func ParseJSON(raw string) (JSON, error) {
	value, err := DecodeJSON(raw)
	if err != nil {
		return JSON{}, err
	}
	return EncodeJSON(value)
}

// FindValue returns the value of a text that is nothing but JSON, or one code fence
// around it, as [JSON.Value] would; like [DecodeJSON] it makes no canonical form.
func FindValue(text string) (any, error) {
	_, body, _ := Unfence(text)
	return DecodeJSON(body)
}
