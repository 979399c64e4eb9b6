package jsonvalue_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/jsonvalue"
)

// TestCanonicalFormMatchesReference compares the encoder with the reference
// implementation of RFC 8785, for values without numbers that are kept as strings.
func TestCanonicalFormMatchesReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := anyValue(3).Draw(t, "value")
		raw, err := json.Marshal(value)
		require.NoError(t, err)
		want, err := jcs.Transform(raw)
		require.NoError(t, err)
		got, err := jsonvalue.Parse(string(raw))
		require.NoError(t, err)
		require.Equal(t, string(want), got.Canonical())
		again, err := jsonvalue.Encode(got.Value())
		require.NoError(t, err)
		require.Equal(t, got.Canonical(), again.Canonical())
	})
}

func anyValue(depth int) *rapid.Generator[any] {
	text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("\x00\x1f\"\\\b\t\n\f\r/é€😀\ue000\uffff\U00010000\u2028<>&")))).AsAny()
	scalars := []*rapid.Generator[any]{
		text, rapid.Bool().AsAny(), rapid.Just[any](nil), rapid.Int64Range(-1<<53, 1<<53).AsAny(),
		rapid.Float64Range(-1<<53, 1<<53).AsAny(), rapid.Float64Range(-1e-300, 1e-300).AsAny(), rapid.SampledFrom([]any{1e21, 1e300, -0.0, 5e-324, 1e-7}),
	}
	if depth == 0 {
		return rapid.OneOf(scalars...)
	}
	inner := anyValue(depth - 1)
	list := rapid.SliceOfN(inner, 0, 4).AsAny()
	object := rapid.MapOfN(rapid.StringOf(rapid.SampledFrom([]rune("abAB\ue000\U00010000\U0001F600é\""))), inner, 0, 5).AsAny()
	return rapid.OneOf(append(scalars, list, object)...)
}

func TestEncodeRefusesValuesWithoutText(t *testing.T) {
	t.Parallel()
	deep := any("x")
	for range jsonvalue.MaxDepth + 1 {
		deep = []any{deep}
	}
	for name, value := range map[string]any{
		"a float":          1.5,
		"half a rune":      "\xff",
		"a key of bytes":   map[string]any{"\xff": nil},
		"no number":        json.Number("one"),
		"no digits":        json.Number("Infinity"),
		"an empty number":  json.Number(""),
		"beyond a double":  json.Number("1e999"),
		"too deep":         deep,
		"too long":         strings.Repeat("x", jsonvalue.MaxBytes),
		"a struct":         struct{}{},
		"inside an object": map[string]any{"a": []any{struct{}{}}},
	} {
		_, err := jsonvalue.Encode(value)
		require.ErrorIs(t, err, jsonvalue.ErrInvalid, name)
	}
}

// BenchmarkEncode is what the canonical form of a structured value costs.
func BenchmarkEncode(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10} {
		raw := parts(size)
		value, err := jsonvalue.Decode(raw)
		require.NoError(b, err)
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := jsonvalue.Encode(value); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
