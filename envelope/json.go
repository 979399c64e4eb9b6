package envelope

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
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

// DecodeJSON reads one JSON value as strictly as [ParseJSON] does, and returns
// what [JSON.Value] would. It makes no canonical form, which is most of the
// work: it is for values that are looked at and not kept. Numbers that no
// float64 holds are read here; only their canonical form does not exist.
func DecodeJSON(raw string) (any, error) {
	if len(raw) > MaxJSONBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrJSON, len(raw), MaxJSONBytes)
	}
	if !utf8.ValidString(raw) {
		return nil, fmt.Errorf("%w: not valid UTF-8", ErrJSON)
	}
	d := decoder{tokens: json.NewDecoder(strings.NewReader(raw))}
	d.tokens.UseNumber()
	value, err := d.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := d.tokens.Token(); err != io.EOF {
		return nil, fmt.Errorf("%w: something follows the value at byte %d", ErrJSON, d.tokens.InputOffset())
	}
	if at := loneSurrogate(raw); at >= 0 { // the standard decoder repairs them in silence
		return nil, fmt.Errorf("%w: half of a surrogate pair at byte %d", ErrJSON, at)
	}
	return value, nil
}

// loneSurrogate returns where in well-formed JSON an escape stands for half of
// a surrogate pair without the other half, or -1.
func loneSurrogate(raw string) int {
	for i := 0; ; {
		next := strings.IndexByte(raw[i:], '\\')
		if next < 0 {
			return -1
		}
		i += next
		unit, ok := escaped(raw[i:])
		switch {
		case !ok:
			i += 2
		case !utf16.IsSurrogate(unit):
			i += 6
		default:
			if low, ok := escaped(raw[i+6:]); !ok || utf16.DecodeRune(unit, low) == unicode.ReplacementChar {
				return i
			}
			i += 12
		}
	}
}

// escaped returns the unit of an escape \uXXXX that a text begins with.
func escaped(text string) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(text[2:6], 16, 16)
	return rune(unit), err == nil
}

type decoder struct{ tokens *json.Decoder }

func (d *decoder) value(depth int) (any, error) {
	if depth > MaxJSONDepth {
		return nil, fmt.Errorf("%w: nested deeper than %d", ErrJSON, MaxJSONDepth)
	}
	tok, err := d.tokens.Token()
	if err != nil {
		return nil, d.syntax()
	}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '{' {
			return d.object(depth)
		}
		return d.array(depth)
	default:
		return tok, nil
	}
}

func (d *decoder) object(depth int) (any, error) {
	members := map[string]any{}
	for d.tokens.More() {
		tok, err := d.tokens.Token()
		if err != nil {
			return nil, d.syntax()
		}
		key := tok.(string) // the decoder allows nothing else here
		if _, twice := members[key]; twice {
			return nil, fmt.Errorf("%w: duplicate key at byte %d", ErrJSON, d.tokens.InputOffset())
		}
		if members[key], err = d.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return members, d.end()
}

func (d *decoder) array(depth int) (any, error) {
	items := []any{}
	for d.tokens.More() {
		item, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, d.end()
}

func (d *decoder) end() error {
	if _, err := d.tokens.Token(); err != nil {
		return d.syntax()
	}
	return nil
}

func (d *decoder) syntax() error {
	return fmt.Errorf("%w: broken off or malformed at byte %d", ErrJSON, d.tokens.InputOffset())
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
