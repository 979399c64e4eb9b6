package jsonvalue_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Requirement: G19.
func TestDecodeErrorsHavePositions(t *testing.T) {
	t.Parallel()
	const malformed = "broken off or malformed at byte %d"
	tests := []struct {
		name, raw, want string
		at              int
	}{
		{"nothing", "", malformed, 0},
		{"blanks", " \r\n\t", malformed, 0},
		{"another blank", "\f1", malformed, 0},
		{"a NUL", "\x00", malformed, 0},
		{"a NUL behind the value", "1\x00", "something follows the value at byte %d", 1},
		{"not UTF-8", "[\"\ufffd\",\"\xff\"]", "not valid UTF-8 at byte %d", 8},
		{"not UTF-8 outside of strings", "1\xff", "not valid UTF-8 at byte %d", 1},
		{"a rune cut short", "\"\xe2\x82", "not valid UTF-8 at byte %d", 1},
		{"half a word", "tru", malformed, 3},
		{"a wrong word", "nul1", malformed, 3},
		{"a longer word", "truex", "something follows the value at byte %d", 4},
		{"a word in an array", "[nulll]", malformed, 5},
		{"a bracket alone", "}", malformed, 0},
		{"an array broken off", "[", malformed, 1},
		{"an array broken off behind an item", "[1", malformed, 2},
		{"an array broken off behind a comma", "[1, ", malformed, 4},
		{"an array that begins with a comma", "[,1]", malformed, 1},
		{"an array that ends with a comma", "[1 ,]", malformed, 3},
		{"two commas", "[1,,2]", malformed, 3},
		{"no comma", "[1 2]", malformed, 3},
		{"a colon in an array", "[1:2]", malformed, 2},
		{"the wrong bracket", "[1}", malformed, 2},
		{"an object broken off", "{", malformed, 1},
		{"an object broken off behind a key", `{"a"`, malformed, 4},
		{"an object broken off behind a colon", `{"a":`, malformed, 5},
		{"an object broken off behind a value", `{"a":1`, malformed, 6},
		{"an object that begins with a comma", `{,"a":1}`, malformed, 1},
		{"an object that ends with a comma", `{"a":1,}`, malformed, 6},
		{"a key without a colon", `{"a" 1}`, malformed, 5},
		{"a key without a value", `{"a"}`, malformed, 4},
		{"a colon without a value", `{"a":}`, malformed, 5},
		{"two colons", `{"a"::1}`, malformed, 5},
		{"members without a comma", `{"a":1 "b":2}`, malformed, 7},
		{"the wrong brace", `{"a":1]`, malformed, 6},
		{"a key that is an object", `{{}:1}`, malformed, 1},
		{"a key that is an array", `{[]:1}`, malformed, 1},
		{"a key that is a word", `{null:1}`, malformed, 1},
		{"a key that is a number", `{"a":1,2:1}`, malformed, 7},
		{"a key twice", ` {"a":1, "a" :2}`, "duplicate key at byte %d", 9},
		{"a key twice, once escaped", `{"a":1,"\u0061":2}`, "duplicate key at byte %d", 7},
		{"a key twice, its value broken off", `{"a":1,"a":`, "duplicate key at byte %d", 7},
		{"a string broken off", `"abc`, malformed, 4},
		{"a string broken off in an escape", `"a\`, malformed, 2},
		{"a string broken off in a unit", `"a\u00`, malformed, 2},
		{"a control character", "[\"a\x1f\"]", malformed, 3},
		{"a control character behind an escape", "\"\\n\n\"", malformed, 3},
		{"an unknown escape", `"ab\x41"`, malformed, 3},
		{"a capital U", `"\U0041"`, malformed, 1},
		{"a unit that is not hexadecimal", `"\u00g0"`, malformed, 1},
		{"a unit with a sign", `"\u+041"`, malformed, 1},
		{"half a pair", `"ab\ud83dx"`, "half of a surrogate pair at byte %d", 3},
		{"half a pair at the end", `"\ud83d"`, "half of a surrogate pair at byte %d", 1},
		{"the other half alone", `["\uDE00"]`, "half of a surrogate pair at byte %d", 2},
		{"half a pair behind a pair", `"\ud83d\ude00\ud83d\n"`, "half of a surrogate pair at byte %d", 13},
		{"half a pair in a key", `{"\ud83d\u0041":1}`, "half of a surrogate pair at byte %d", 2},
		{"a sign alone", "-", malformed, 0},
		{"two signs", "--1", malformed, 1},
		{"a plus", "+1", malformed, 0},
		{"a leading zero", "[01]", malformed, 2},
		{"a point without digits before it", "[.5]", malformed, 1},
		{"a point without digits behind it", "[1.]", malformed, 3},
		{"an exponent without digits", "[1e]", malformed, 3},
		{"an exponent with a sign alone", "[1E+]", malformed, 4},
		{"a hexadecimal number", "[0x1]", malformed, 2},
		{"a number that goes on", "1_000", "something follows the value at byte %d", 1},
		{"two values", "{} []", "something follows the value at byte %d", 3},
		{"a comment", "1 // one", "something follows the value at byte %d", 2},
		{"a semicolon", "1\n;", "something follows the value at byte %d", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			value, err := jsonvalue.Decode(tt.raw)
			require.ErrorIs(t, err, jsonvalue.ErrInvalid)
			require.EqualError(t, err, "not one strict JSON value: "+fmt.Sprintf(tt.want, tt.at))
			require.Nil(t, value)
			_, err = oracle(tt.raw)
			require.Error(t, err)
		})
	}
}

// Requirement: G19.
func TestDecodeLimits(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("x", jsonvalue.MaxBytes-2) + `"`
	value, err := jsonvalue.Decode(long)
	require.NoError(t, err)
	require.Equal(t, long[1:len(long)-1], value)
	_, err = jsonvalue.Decode(long + " ")
	require.EqualError(t, err, "not one strict JSON value: 4194305 bytes, at most 4194304")
	const deepest = jsonvalue.MaxDepth + 1 // the innermost is in MaxJSONDepth others
	objects := func(n int) string { return strings.Repeat(`{"":`, n-1) + "{}" + strings.Repeat("}", n-1) }
	for _, brackets := range []func(int) string{nested, objects} {
		_, err = jsonvalue.Decode(brackets(deepest))
		require.NoError(t, err)
		_, err = jsonvalue.Decode(brackets(deepest + 1))
		require.EqualError(t, err, "not one strict JSON value: nested deeper than 128")
		_, err = jsonvalue.Decode(brackets(10_000))
		require.EqualError(t, err, "not one strict JSON value: nested deeper than 128")
	}
}

// requireAsOracle holds DecodeJSON to what encoding/json and a few checks make of a text.
func requireAsOracle(t require.TestingT, raw string) {
	want, refused := oracle(raw)
	got, err := jsonvalue.Decode(raw)
	if refused != nil {
		require.ErrorIs(t, err, jsonvalue.ErrInvalid, "%q", raw)
		require.Nil(t, got)
		return
	}
	require.NoError(t, err, "%q", raw)
	require.Equal(t, want, got)
}

// TestDecodeMatchesEncodingJSON draws JSON, JSON that is damaged at one place, and
// rows of tokens that are JSON only by chance.
//
// Requirement: G19.
func TestDecodeMatchesEncodingJSON(t *testing.T) {
	t.Parallel()
	token := rapid.SampledFrom([]string{
		"{", "}", "[", "]", ",", ":", " ", "\n", `"a"`, `"\u0061"`, `"b":`, `"A":1`, `"\\"`, `"\ud83d\ude00"`, `"\udE00"`, "\"\U0001f600\"",
		"0", "-1.50E+2", "1e400", "18446744073709551616", "true", "false", "null", "\"", "\\", "-", ".", "e", "\x00", "\x7f", "\xff", "\ufeff", "\u2028",
	})
	rapid.Check(t, func(t *rapid.T) {
		raw := strings.Join(rapid.SliceOfN(token, 0, 12).Draw(t, "tokens"), "")
		if rapid.Bool().Draw(t, "JSON") {
			b, err := json.Marshal(anyJSON(3).Draw(t, "value"))
			require.NoError(t, err)
			raw = string(b)
			requireAsOracle(t, raw)
			at := rapid.IntRange(0, len(raw)).Draw(t, "at")
			end := rapid.IntRange(at, min(at+2, len(raw))).Draw(t, "end")
			raw = raw[:at] + rapid.OneOf(token, rapid.Just("")).Draw(t, "instead") + raw[end:]
		}
		requireAsOracle(t, raw)
	})
}

// FuzzDecode compares DecodeJSON with encoding/json: it accepts the same texts and
// returns the same values.
//
// Requirement: G19.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"\u0061":2}`, ` [1e400 , -0.0E+1,18446744073709551616] `, `"\ud83d\ude00\"\/"`, `"\ud83d\u0041"`, nested(129), nested(130), `{} x`, `{"":[true,false,null]}`,
		"\"\xff\"", "\"\x7f\u2028\"", `{"a":{"b":[{},[]]},"c":"\b\f\n\r\t"}`, `[1,]`, `{"a":1,}`, `{"a"}`, "", `01`, `-`, `tru`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) { requireAsOracle(t, raw) })
}

// hostile are texts that cost much where the work is not proportional to the
// length; each is about as long as is asked for.
func hostile(size int) map[string]string {
	var keys strings.Builder
	for i := 0; keys.Len() < size-20; i++ {
		keys.WriteString(`"` + strconv.Itoa(i) + `":0,`)
	}
	deep := strings.Repeat("[", jsonvalue.MaxDepth) + strings.Repeat("]", jsonvalue.MaxDepth)
	return map[string]string{
		"one string":        `"` + strings.Repeat("x", size-2) + `"`,
		"escapes":           `"` + strings.Repeat(`\"`, size/2-1) + `"`,
		"surrogate pairs":   `"` + strings.Repeat(`\ud83d\ude00`, size/12-1) + `"`,
		"strings broken":    "[" + repeat(`"\n"`, ",", size/5-1) + "]",
		"one number":        strings.Repeat("1", size),
		"blanks":            strings.Repeat(" ", size-1) + "1",
		"blanks behind":     "1" + strings.Repeat("\n", size-1),
		"empty arrays":      "[" + repeat("[]", ",", size/3-1) + "]",
		"empty objects":     "[" + repeat("{}", ",", size/3-1) + "]",
		"as deep as it can": "[" + repeat(deep, ",", size/(2*jsonvalue.MaxDepth+1)-1) + "]",
		"keys":              "{" + keys.String() + `"last":0}`,
		"keys, one twice":   "{" + keys.String() + `"0":0}`,
		"deep":              nested(size / 2),
		"deep objects":      strings.Repeat(`{"":`, size/4),
		"brackets":          strings.Repeat("[", size),
		"a long escape":     `"\` + strings.Repeat("u", size-2),
		"not UTF-8":         `"` + strings.Repeat("\ufffd", size/3-2) + "\xff" + `"`,
	}
}

// Requirement: G19.
func TestDecodeHostile(t *testing.T) {
	t.Parallel()
	for name, raw := range hostile(jsonvalue.MaxBytes / 32) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireAsOracle(t, raw)
		})
	}
}

// BenchmarkDecodeHostile shows a time that is not proportional to the length as
// fewer MB/s of the longer text.
func BenchmarkDecodeHostile(b *testing.B) {
	for _, size := range []int{64 << 10, jsonvalue.MaxBytes} {
		for name, raw := range hostile(size) {
			b.Run(fmt.Sprintf("%s/%dKiB", name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(len(raw)))
				for b.Loop() {
					_, _ = jsonvalue.Decode(raw)
				}
			})
		}
	}
}

// parts writes a value of many small objects, just below a size.
func parts(size int) string {
	var items []string
	for i, n := 0, 20; n < size-150; i++ {
		one := fmt.Sprintf(`{"id":%d,"name":"part number %d","note":"nothing to see in this one","score":0.5}`, i, i)
		items, n = append(items, one), n+len(one)+1
	}
	return `{"facts":[` + strings.Join(items, ",") + `]}`
}

// BenchmarkDecode measures reading a structured value, compared with the oracle
// takes for it.
func BenchmarkDecode(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10} {
		raw := parts(size)
		for _, by := range []struct {
			name   string
			decode func(string) (any, error)
		}{{"DecodeJSON", jsonvalue.Decode}, {"oracle", oracle}} {
			b.Run(fmt.Sprintf("%dKiB/%s", size>>10, by.name), func(b *testing.B) {
				b.SetBytes(int64(len(raw)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := by.decode(raw); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
