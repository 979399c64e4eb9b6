package pick_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// FuzzApply reads any text as a value and any lines as paths, and holds that
// nothing is delivered but what was in the value, that static answers
// foresee it, and that a selection joined with itself is the same.
//
// Requirement: G5.
func FuzzApply(f *testing.F) {
	f.Add(`{"items":[{"id":1,"ssn":2}],"score":3}`, "/items/*/id\n/score", "ssn")
	f.Add(`[[],{},"x",null]`, "/**", "/0\n/**/a")
	f.Add(`"text"`, "/category", "")
	f.Add("{\"s\u200bsn\":1,\"caf\u0065\u0301\":{\"\":[{}]}}", "/caf\u00e9/**\n", "/S\u00ADSN")
	f.Fuzz(func(t *testing.T, raw, allow, block string) {
		dec := json.NewDecoder(strings.NewReader(raw))
		dec.UseNumber()
		var v any
		if dec.Decode(&v) != nil {
			return
		}
		s, err := pick.Everything().Only(lines(allow)...)
		if err != nil {
			require.ErrorIs(t, err, pick.ErrPath)
			return
		}
		if s, err = s.Except(lines(block)...); err != nil {
			require.ErrorIs(t, err, pick.ErrPath)
			return
		}
		before := text(t, v)
		got := s.Apply(v)
		require.Equal(t, before, text(t, v))
		require.Equal(t, got, s.And(s).Apply(v))
		if !got.Any {
			return
		}
		require.False(t, s.Empty())
		for _, way := range leaves(got.Value) {
			require.True(t, s.MayPass(tokensOf(way)), "%q", way)
		}
		requireWithin(t, v, got.Value)
	})
}

func lines(text string) (out []task.Path) {
	if text == "" {
		return nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		out = append(out, task.Path(line))
	}
	return out
}

// requireWithin holds that a value is what is left of another: members by
// name, elements as a subsequence (tried greedily from the front).
func requireWithin(t *testing.T, whole, left any) {
	require.True(t, within(whole, left), "%v is not within %v", left, whole)
}

func within(whole, left any) bool {
	switch left := left.(type) {
	case map[string]any:
		object, ok := whole.(map[string]any)
		for name, one := range left {
			from, known := object[name]
			ok = ok && known && within(from, one)
		}
		return ok
	case []any:
		array, ok := whole.([]any)
		for _, one := range left {
			i := slices.IndexFunc(array, func(from any) bool { return within(from, one) })
			if i < 0 {
				return false
			}
			array = array[i+1:]
		}
		return ok
	}
	return reflect.DeepEqual(whole, left)
}
