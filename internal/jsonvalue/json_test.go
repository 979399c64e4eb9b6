package jsonvalue_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func repeat(s, sep string, n int) string {
	return strings.TrimSuffix(strings.Repeat(s+sep, n), sep)
}

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// anyJSON draws what encoding/json decodes to.
func anyJSON(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			if depth > 0 {
				return rapid.SliceOfN(anyJSON(depth-1), 0, 3).Draw(t, "array")
			}
		case 1:
			if depth > 0 {
				return rapid.MapOfN(rapid.String(), anyJSON(depth-1), 0, 3).Draw(t, "object")
			}
		case 2:
			return rapid.String().Draw(t, "string")
		case 3:
			return rapid.Bool().Draw(t, "bool")
		case 4:
			return rapid.Float64().Draw(t, "float")
		case 5:
			return rapid.Int64().Draw(t, "integer")
		}
		return nil
	})
}

// Requirement: G19.
func TestStrictJSONRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, raw string }{
		{"nothing", ""},
		{"blanks", " \n"},
		{"duplicate key", `{"a":1,"a":2}`},
		{"duplicate key further down", `[{"x":{"a":1,"b":2,"a":1}}]`},
		{"duplicate key, one spelt with an escape", `{"a":1,"\u0061":2}`},
		{"duplicate key, escaped solidus", `{"a/b":1,"a\/b":2}`},
		{"duplicate key, surrogate pair", "{\"\U0001f600\":1,\"\\ud83d\\ude00\":2}"},
		{"duplicate empty key", `{"":1,"":2}`},
		{"trailing value", `{} {}`},
		{"trailing text", `{} x`},
		{"trailing bracket", `[]]`},
		{"trailing comma in array", `[1,]`},
		{"trailing comma in object", `{"a":1,}`},
		{"missing comma", `[1 2]`},
		{"missing colon", `{"a" 1}`},
		{"key without quotes", `{a:1}`},
		{"key that is a number", `{1:1}`},
		{"single quotes", `{'a':1}`},
		{"comment", `{/**/}`},
		{"unterminated object", `{"a":1`},
		{"unterminated string", `"abc`},
		{"unterminated array", `[1`},
		{"closing alone", `]`},
		{"raw control character", "\"a\nb\""},
		{"bad escape", `"\x41"`},
		{"NaN", `NaN`},
		{"Infinity", `-Infinity`},
		{"leading zero", `01`},
		{"leading plus", `+1`},
		{"bare point", `.5`},
		{"hexadecimal", `0x10`},
		{"out of a double's range", `1e400`},
		{"capital literal", `True`},
		{"byte order mark", "\ufeff{}"},
		{"vertical tab as a blank", "\v{}"},
		{"no-break space as a blank", "\u00a0{}"},
		{"invalid UTF-8 in a string", "\"\xff\""},
		{"invalid UTF-8 in a key", "{\"\xc0\xaf\":1}"},
		{"encoded surrogate", "\"\xed\xa0\x80\""},
		{"lone high surrogate", `"\ud800"`},
		{"lone low surrogate", `"\udc00"`},
		{"high surrogate before text", `"\ud800abc"`},
		{"two high surrogates", `"\ud800\ud800"`},
		{"swapped surrogates", `"\ude00\ud83d"`},
		{"lone surrogate in a key", `{"\ud800":1}`},
		{"too deep", nested(jsonvalue.MaxDepth + 2)},
		{"too deep by objects", strings.Repeat(`{"a":`, jsonvalue.MaxDepth+1) + "1" + strings.Repeat("}", jsonvalue.MaxDepth+1)},
		{"too long", `"` + strings.Repeat("x", jsonvalue.MaxBytes) + `"`},
		{"too long by its blanks", strings.Repeat(" ", jsonvalue.MaxBytes) + "1"},
		{"too long in its canonical form", "[" + repeat("1e15", ",", jsonvalue.MaxBytes/16) + "]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v, err := jsonvalue.Parse(tt.raw)
			require.ErrorIs(t, err, jsonvalue.ErrInvalid)
			require.Zero(t, v)
			_, err = envelope.Structured(tt.raw)
			require.ErrorIs(t, err, jsonvalue.ErrInvalid)
			if _, err = jsonvalue.Decode(tt.raw); tt.name != "out of a double's range" && tt.name != "too long in its canonical form" {
				require.ErrorIs(t, err, jsonvalue.ErrInvalid)
			}
		})
	}
}

func TestCanonicalForm(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, raw, want string }{
		{"blanks and order", " { \"b\" : [ 1 , 2 ] , \"a\" : null }\r\n", `{"a":null,"b":[1,2]}`},
		{"keys that differ in case are different", `{"a":1,"A":2}`, `{"A":2,"a":1}`},
		{"keys that differ in normal form are different", "{\"\u00e9\":1,\"e\u0301\":2}", "{\"e\u0301\":2,\"\u00e9\":1}"},
		{"UTF-16 order", "{\"\ufb33\":1,\"\U0001f600\":2}", "{\"\U0001f600\":2,\"\ufb33\":1}"},
		{"escapes", `"\u0061\/\u20ac\u001f\n<&>"`, `"a/€\u001f\n<&>"`},
		{"line separators stay", "\"\u2028\"", "\"\u2028\""},
		{"root scalars", `  -0.0`, `0`},
		{"root string", `"x"`, `"x"`},
		{"numbers", `[1.0,1.50,1e2,1E-7,100,-0]`, `[1,1.5,100,1e-7,100,0]`},
		{"2^53 stays", `[9007199254740992,-9007199254740992]`, `[9007199254740992,-9007199254740992]`},
		{"2^53+1 as string", `[9007199254740993,-9007199254740993]`, `["9007199254740993","-9007199254740993"]`},
		{"2^64 as string", `{"id":18446744073709551616}`, `{"id":"18446744073709551616"}`},
		{"digits as string", `123456789012345678901234567890`, `"123456789012345678901234567890"`},
		{"integers that the canonical form would spell out", `[1e20,4.5e17,-1e16]`, `["1e20","4.5e17","-1e16"]`},
		{"beyond that it has an exponent", `[1e21,1.5e300]`, `[1e+21,1.5e+300]`},
		{"big integers beside odd strings", `{"<":"&","n":9007199254740993}`, `{"<":"&","n":"9007199254740993"}`},
		{"as deep as allowed", nested(jsonvalue.MaxDepth), nested(jsonvalue.MaxDepth)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v, err := jsonvalue.Parse(tt.raw)
			require.NoError(t, err)
			require.Equal(t, tt.want, v.Canonical())
			again, err := jsonvalue.Parse(v.Canonical())
			require.NoError(t, err)
			require.Equal(t, v.Canonical(), again.Canonical(), "stable")
		})
	}
}

func TestValueIsDecodedAsWritten(t *testing.T) {
	t.Parallel()
	v, err := jsonvalue.Parse(`{"n":1.50,"big":9007199254740993,"s":"x","a":[true,null,{}],"o":{}}`)
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"n": json.Number("1.50"), "big": json.Number("9007199254740993"), "s": "x",
		"a": []any{true, nil, map[string]any{}}, "o": map[string]any{},
	}, v.Value())
}

func TestFindJSON(t *testing.T) {
	t.Parallel()
	const want = `{"a":1}`
	for _, text := range []string{ // which stay as they are
		`{"a":1}`, "\n {\"a\":1} \n", "```\n{\"a\":1}\n```", "```json\n{\"a\":1}\n```", "```JSON\r\n{\"a\":1}\r\n```",
		"  ```json\n\n{\n\"a\": 1\n}\n\n```  ", "```json\n{\"a\":1}```",
	} {
		v, kept, err := jsonvalue.Find(text, nil)
		require.NoError(t, err, "%q", text)
		require.Equal(t, want, v.Canonical(), "%q", text)
		require.Equal(t, text, kept)
	}
	for _, text := range []string{ // of which the value is left
		"Here it is: {\"a\":1}", "{\"a\":1} I hope that helps", "Sure:\n```json\n{\"a\":1}\n```", "```json\n{\"a\":1}\n```\nDone.",
		"````json\n{\"a\":1}\n````", "```{\"a\":1}\n```", "```json {\"a\":1}\n```", "~~~\n{\"a\":1}\n~~~", "`{\"a\":1}`",
		"{\"a\":1}\n```", "```json\n{\"a\":1}", "As [the file] says {sic}, it is\n{\"a\":1}\n(see {x}).",
		"<think>Is it {\"a\":2} or {\"a\":3}?</think>\nIt is {\"a\":1}.", "{\"a\":1}\n\nAgain: {\"a\":1}",
		"First {\"a\":0}. No:\n```json\n{\"a\":1}\n```", "See [1] and [2, 3]: {\"a\":1}",
		"```json\n{\"a\":1}\n```\nThat is {\"a\": 1}, see [1] and {x}.", "```json\n{\"a\":1}\n```\n{\"a\":",
	} {
		v, kept, err := jsonvalue.Find(text, func(v any) bool { _, ok := v.(map[string]any); return ok })
		require.NoError(t, err, "%q", text)
		require.Equal(t, want, v.Canonical(), "%q", text)
		require.Equal(t, `{"a":1}`, kept, "%q", text)
	}
	v, kept, err := jsonvalue.Find("<think>{\"a\":2}</think>\n{\"a\":1}", nil)
	require.NoError(t, err)
	require.Equal(t, want, v.Canonical())
	require.Equal(t, `{"a":1}`, kept)
	for _, text := range []string{
		"", "```", "``````", "```json```", "```json\n```", "No.", "{", "[", "<think>{\"a\":1}", "<think>{\"a\":1}</think>",
		"```json\n{\"a\":1}\n```\n```json\n{\"a\":2}\n```", "{\"a\":1} or {\"a\":2}", "{\"a\":1}{\"a\":2}", "```json\n{\"a\":1,\"a\":2}\n```",
		`{"b":{"a":1},}`, `{"b":{"a":1}`, `[{"a":1},]`, `So: {"b":{"a":1}, and so on`, "{\"b\":\"\xff\",\"c\":{\"a\":1}}", "It is 1.", "It is \"a\".",
		"[1] {\"a\":1}",
		"They wrote:\n```json\n{\"a\":1}\n```\nMy answer is {\"a\":2}", "```json\n{\"a\":1}\n```\n```\n{\"a\":2}\n```", "```json\n{\"a\":1}\n```\n{\"a\":2} or {\"a\":3}",
	} {
		_, kept, err := jsonvalue.Find(text, nil)
		require.ErrorIs(t, err, jsonvalue.ErrInvalid, "%q", text)
		require.Empty(t, kept, "%q", text)
	}
}

// Brackets that begin no value cost time in proportion to the text.
func TestFindJSONIsLinear(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"[", "{", "[1,", "[\"a", "[[1],", "{ ", "[1,[", "}", "```json\n[", "[1 "} {
		_, _, err := jsonvalue.Find("It is "+strings.Repeat(of, 1<<16/len(of)), nil)
		require.ErrorIs(t, err, jsonvalue.ErrInvalid, "%q", of)
	}
}

func TestFindJSONKeepsFencesInsideStrings(t *testing.T) {
	t.Parallel()
	v, _, err := jsonvalue.Find("```json\n{\"code\":\"```go\\nx\\n```\"}\n```", nil)
	require.NoError(t, err)
	require.Equal(t, "{\"code\":\"```go\\nx\\n```\"}", v.Canonical())
}

// FuzzParseJSON holds: no panic; what is accepted means what encoding/json
// says that it means; the canonical form is stable and means the same; what
// encoding/json reads is refused only for a reason that this package gives.
//
// Requirement: G19.
func FuzzParseJSON(f *testing.F) {
	for _, seed := range []string{`{"a":1,"\u0061":2}`, `[1e20,-0,9007199254740993,1.50]`, `"\ud83d\ude00"`, `"\ud800"`, nested(130), `{} x`, ` null `, `{"":{"":[]}}`, "\"\xff\"", `1e400`, "```json\n[1]\n```"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		v, err := jsonvalue.Parse(raw)
		value, decoded := jsonvalue.Decode(raw)
		if decoded != nil {
			require.Error(t, err, "what cannot be decoded cannot be parsed")
		}
		if err == nil {
			require.Equal(t, v.Value(), value)
		}
		if err != nil {
			require.ErrorIs(t, err, jsonvalue.ErrInvalid)
			require.Zero(t, v)
			requireReason(t, raw)
			return
		}
		want := decode(t, raw)
		require.Equal(t, want, v.Value())
		again, err := jsonvalue.Parse(v.Canonical())
		require.NoError(t, err)
		require.Equal(t, v.Canonical(), again.Canonical())
		require.Equal(t, loose(want), loose(decode(t, v.Canonical())))
		found, _, err := jsonvalue.Find("```json\n"+raw+"\n```", nil)
		require.NoError(t, err)
		require.Equal(t, v.Canonical(), found.Canonical())
	})
}

func decode(t *testing.T, raw string) any {
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	return v
}

// loose makes numbers comparable however they are written, also as strings.
func loose(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = loose(v[key])
		}
	case []any:
		for i := range v {
			v[i] = loose(v[i])
		}
	case json.Number:
		f, _ := v.Float64()
		return f
	case string:
		if f, err := json.Number(v).Float64(); err == nil && json.Valid([]byte(v)) {
			return f
		}
	}
	return v
}

// requireReason fails unless there is a reason to refuse raw.
func requireReason(t *testing.T, raw string) {
	if !json.Valid([]byte(raw)) || !utf8.ValidString(raw) || len(raw) > jsonvalue.MaxBytes/4 {
		return
	}
	written, depth := outside(raw)
	if written != countMembers(decode(t, raw)) || depth > jsonvalue.MaxDepth { // duplicate keys; too deep
		return
	}
	lower := strings.ToLower(raw)
	if strings.Contains(lower, `\ud`) { // possibly a lone surrogate
		return
	}
	var f any
	if err := json.Unmarshal([]byte(raw), &f); err != nil { // a number out of range
		var number *json.UnmarshalTypeError
		require.True(t, errors.As(err, &number))
		return
	}
	t.Fatalf("%q is strict JSON, and was refused", raw)
}

// outside counts the members that are written, one for each colon outside of strings, and the depth.
func outside(raw string) (members, depth int) {
	level, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ':':
			members++
		case c == '[' || c == '{':
			level++
			depth = max(depth, level)
		case c == ']' || c == '}':
			level--
		}
	}
	return members, depth
}

func countMembers(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, member := range v {
			n += countMembers(member)
		}
	case []any:
		for _, item := range v {
			n += countMembers(item)
		}
	}
	return n
}
