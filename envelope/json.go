package envelope

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
)

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

// beyondDouble reports whether RFC 8785 would write n in digits that a double
// does not hold: for integers beyond ±2^53, and for what it writes as one.
func beyondDouble(n json.Number) bool {
	if strings.ContainsAny(string(n), ".eE") {
		f, err := n.Float64()
		f = math.Abs(f)
		return err == nil && f > 1<<53 && f < 1e21
	}
	i, err := n.Int64()
	return err != nil || i > 1<<53 || i < -1<<53
}

// FindJSON returns the JSON value that a model's text consists of: the whole
// text, or the only code fence around it. Anything else is an [ErrJSON].
func FindJSON(text string) (JSON, error) {
	return ParseJSON(unfence(strings.TrimSpace(text)))
}

// FindValue does as [FindJSON] does, and returns what [JSON.Value] would; like
// [DecodeJSON] it makes no canonical form.
func FindValue(text string) (any, error) {
	return DecodeJSON(unfence(strings.TrimSpace(text)))
}

// unfence removes one pair of code fence lines that encloses the whole text.
func unfence(text string) string {
	body, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	info, body, ok := strings.Cut(body, "\n")
	if !ok || strings.ContainsAny(info, "`{[\"") {
		return text
	}
	body, ok = strings.CutSuffix(body, "```")
	if !ok {
		return text
	}
	return strings.TrimSpace(body)
}
