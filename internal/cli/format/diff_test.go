package format

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestLineDiffShowsDifferentLines(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, before, after string
		want                []string
		more                int
	}{
		{"nothing", "a\nb", "a\nb", nil, 0},
		{"a line in the middle", "a\nb\nc", "a\nB\nc", []string{"- b", "+ B"}, 0},
		{"two places", "a\nb\nc\nd\ne", "A\nb\nc\nd\nE", []string{"- a", "+ A", "- e", "+ E"}, 0},
		{"more at the end", "a", "a\nb", []string{"+ b"}, 0},
		{"less at the beginning", "a\nb", "b", []string{"- a"}, 0},
		{"many", strings.Repeat("a\n", 20), strings.Repeat("b\n", 3), []string{"- a", "- a", "- a", "- a", "- a", "- a", "- a", "- a", "- a", "- a", "- a", "- a"}, 11},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, more := LineDiff(tt.before, tt.after)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.more, more)
		})
	}
}

// Without their own lines both texts have the same number of lines, and some if any
// line is in both.
func TestLineDiffKeepsCommonLines(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 12)
		a, b := lines.Draw(t, "before"), lines.Draw(t, "after")
		all := changes(strings.Join(a, "\n"), strings.Join(b, "\n"))
		rest := func(lines []string, mark string) []string {
			left := append([]string{}, lines...)
			from := 0
			for _, change := range all {
				line, ok := strings.CutPrefix(change, mark)
				if !ok {
					continue
				}
				for left[from] != line {
					from++
				}
				left = append(left[:from], left[from+1:]...)
			}
			return left
		}
		require.Len(t, rest(a, "- "), len(rest(b, "+ ")))
		shared := false
		for _, line := range a {
			shared = shared || strings.Contains(strings.Join(b, ""), line)
		}
		require.Equal(t, shared, len(all) < len(a)+len(b))
	})
}

func TestLineDiffOfLargeTexts(t *testing.T) {
	t.Parallel()
	same := strings.Repeat("x\n", 6_000)
	got, more := LineDiff("a\n"+same+"b", "c\n"+same+"d")
	require.Equal(t, []string{"- a", "+ c", "- b", "+ d"}, got)
	require.Zero(t, more)
	got, more = LineDiff(strings.Repeat("a\n", 6_000), strings.Repeat("b\n", 6_000))
	require.Len(t, got, maxDiffer)
	require.Equal(t, 12_000-maxDiffer, more)
}
