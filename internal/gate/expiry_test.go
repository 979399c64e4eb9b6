package gate_test

import (
	"testing"
	"time"

	"github.com/runteam/runteam/internal/gate"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Requirement: G16.
func TestEarliest(t *testing.T) {
	t.Parallel()
	early, late, never := noon, noon.Add(1), time.Time{}
	tests := []struct{ a, b, want time.Time }{
		{early, late, early}, {late, early, early}, {early, early, early},
		{never, late, late}, {late, never, late}, {never, never, never},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, gate.Earliest(tt.a, tt.b), "%v, %v", tt.a, tt.b)
	}
}

// Requirement: G16.
func TestEarliestLaws(t *testing.T) {
	t.Parallel()
	times := rapid.Custom(func(t *rapid.T) time.Time {
		n := rapid.IntRange(0, 4).Draw(t, "n")
		if n == 0 {
			return time.Time{}
		}
		return noon.Add(time.Duration(n))
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := times.Draw(t, "a"), times.Draw(t, "b"), times.Draw(t, "c")
		got := gate.Earliest(a, b)
		require.Equal(t, got, gate.Earliest(b, a), "the order does not matter")
		require.Equal(t, gate.Earliest(got, c), gate.Earliest(a, gate.Earliest(b, c)))
		for _, one := range []time.Time{a, b} { // never outlives a part
			if !one.IsZero() {
				require.False(t, got.IsZero() || got.After(one))
			}
		}
	})
}
