package engine_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/engine"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		delay  time.Duration
		factor float64
		n      int
		random float64
		want   time.Duration
	}{
		{"first", time.Second, 2, 1, 0, 500 * time.Millisecond},
		{"first, upper end", time.Second, 2, 1, 1, time.Second},
		{"third", time.Second, 2, 3, 0.5, 3 * time.Second},
		{"capped", time.Second, 2, 10, 1, 30 * time.Second},
		{"capped, lower end", time.Minute, 1, 1, 0, 15 * time.Second},
		{"no delay", 0, 2, 5, 1, 0},
		{"negative delay", -1, 2, 5, 1, 0},
		{"factor below one", time.Second, 0.1, 5, 1, time.Second},
		{"factor NaN", time.Second, math.NaN(), 5, 1, time.Second},
		{"overflow", math.MaxInt64, math.MaxFloat64, math.MaxInt, 1, 30 * time.Second},
		{"n below one", time.Second, 2, -3, 1, time.Second},
		{"random out of range", time.Second, 2, 1, 7, time.Second},
		{"random NaN", time.Second, 2, 1, math.NaN(), 500 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, engine.Backoff(tt.delay, tt.factor, tt.n, tt.random))
		})
	}
}

func TestBackoffStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		delay := time.Duration(rapid.Int64().Draw(t, "delay"))
		got := engine.Backoff(delay, rapid.Float64().Draw(t, "factor"), rapid.Int().Draw(t, "n"), rapid.Float64Range(0, 1).Draw(t, "random"))
		require.GreaterOrEqual(t, got, min(max(delay, 0), 30*time.Second)/2)
		require.LessOrEqual(t, got, 30*time.Second)
	})
}
