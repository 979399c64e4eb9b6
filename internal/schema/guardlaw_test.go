package schema_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/schema"
)

// TestGuardFailsWithAnotherValue draws schemas with a guard and values. With another value than the guard
// demands, a value that would match fails the guard, and one that would not match is to
// be corrected, in words that leave the guard out. What fails a guard matches the schema that the
// endpoint is sent. Every problem is one line of bounded length.
func TestGuardFailsWithAnotherValue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		defs := object{"a": object{"const": "red"}, "b": aSchema(0).Draw(rt, "def b")}
		props := object{"g": rapid.SampledFrom([]any{object{"const": "AB"}, object{"type": "string", "const": "AB"}, object{"allOf": []any{object{"const": "AB"}}}}).Draw(rt, "guard")}
		value := object{}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 3, rapid.ID).Draw(rt, "properties") {
			props[name] = rapid.OneOf(rapid.SampledFrom([]any{object{"const": "AB"}, object{"$ref": "#/$defs/a"}, object{"anyOf": []any{object{"const": "AB"}, object{"const": 1}}}}), aSchema(1)).Draw(rt, "property")
			value[name] = rapid.SampledFrom([]any{"AB", "red", 1, nil, []any{}, object{"a": 1}}).Draw(rt, "value")
		}
		raw, err := json.Marshal(object{"$defs": defs, "properties": props, "required": []string{"g"}})
		require.NoError(rt, err)
		s, err := schema.Parse(string(raw))
		if err != nil {
			rt.Skip("it refers to itself")
		}
		with := func(g string) (jsonvalue.Value, error) {
			value["g"] = g
			text, err := json.Marshal(value)
			require.NoError(rt, err)
			v, err := jsonvalue.Parse(string(text))
			require.NoError(rt, err)
			return v, s.Validate(v)
		}
		_, passed := with("AB")
		v, failed := with("CD")
		require.Error(rt, failed)
		guarded := passed == nil || errors.Is(passed, schema.ErrGuard)
		require.Equal(rt, guarded, errors.Is(failed, schema.ErrGuard), "%v, and %v", passed, failed)
		problem := schema.Problem(failed)
		require.NotContains(rt, problem, "\n")
		require.Less(rt, len(problem), 2000)
		if !guarded {
			require.NotContains(rt, problem, "/g:", "the guard does not count")
			return
		}
		require.Contains(rt, problem, "; expected const ")
		relaxed, err := schema.Parse(s.Unguarded())
		require.NoError(rt, err)
		require.NoError(rt, relaxed.Validate(v), relaxed.String())
	})
}
