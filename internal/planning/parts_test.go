package planning_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/planning"
)

func TestParts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		sizes []int
		limit int
		want  [][2]int
	}{
		{"none", nil, 10, nil},
		{"all fit", []int{3, 3, 4}, 10, [][2]int{{0, 3}}},
		{"greedy", []int{3, 3, 5, 4, 1}, 10, [][2]int{{0, 2}, {2, 5}}},
		{"one too large", []int{1, 11, 0, 1}, 10, [][2]int{{0, 1}, {1, 2}, {2, 4}}},
		{"all too large", []int{11, 12}, 10, [][2]int{{0, 1}, {1, 2}}},
		{"no room", []int{0, 0, 1, 0}, 0, [][2]int{{0, 2}, {2, 3}, {3, 4}}},
		{"less than none", []int{0, 0}, math.MinInt, [][2]int{{0, 1}, {1, 2}}},
		{"beyond an int", []int{math.MaxInt, math.MaxInt, 1}, math.MaxInt, [][2]int{{0, 1}, {1, 2}, {2, 3}}},
		{"negative", []int{-5, 5, math.MinInt, 5}, 10, [][2]int{{0, 4}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, planning.Parts(tt.sizes, tt.limit))
		})
	}
}

func TestPartsCoverEverythingAndAreFull(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOf(rapid.IntRange(-2, 20)).Draw(t, "sizes")
		limit := rapid.IntRange(-2, 40).Draw(t, "limit")
		sum := func(start, end int) (n int) {
			for _, size := range sizes[start:end] {
				n += max(size, 0)
			}
			return n
		}
		at := 0
		for _, p := range planning.Parts(sizes, limit) {
			require.Equal(t, at, p[0], "no gap, no overlap, in order")
			require.Greater(t, p[1], p[0], "not empty")
			if p[1]-p[0] > 1 {
				require.LessOrEqual(t, sum(p[0], p[1]), limit)
			}
			if p[1] < len(sizes) {
				require.Greater(t, sum(p[0], p[1]+1), limit, "the next one would have fitted")
			}
			at = p[1]
		}
		require.Equal(t, len(sizes), at, "every item is in a part")
	})
}
