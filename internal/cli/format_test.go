package cli

import (
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// shownChanges is how many lines a diff shows.
const shownChanges = 12

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
			got, more := format.LineDiff(tt.before, tt.after)
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
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, shownChanges/2)
		a, b := lines.Draw(t, "before"), lines.Draw(t, "after")
		all, more := format.LineDiff(strings.Join(a, "\n"), strings.Join(b, "\n"))
		require.Zero(t, more)
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
	got, more := format.LineDiff("a\n"+same+"b", "c\n"+same+"d")
	require.Equal(t, []string{"- a", "+ c", "- b", "+ d"}, got)
	require.Zero(t, more)
	got, more = format.LineDiff(strings.Repeat("a\n", 6_000), strings.Repeat("b\n", 6_000))
	require.Len(t, got, shownChanges)
	require.Equal(t, 12_000-shownChanges, more)
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		require.Equal(t, want, format.Number(n))
	}
}

func TestTasksThatRun(t *testing.T) {
	t.Parallel()
	for want, n := range map[string][2]int{
		"1 task that runs at most 3 times":         {1, 3},
		"1 task":                                   {1, 1},
		"2 tasks that run at most 1,000 times":     {2, 1000},
		"1,000 tasks that run at most 1,001 times": {1000, 1001},
	} {
		require.Equal(t, want, format.TasksThatRun(n[0], n[1]))
	}
}

func TestTaskRuns(t *testing.T) {
	t.Parallel()
	require.Equal(t, "2 tasks", format.TaskRuns([]string{"Write", "Check"}))
	require.Equal(t, "1 task", format.TaskRuns([]string{"Write"}))
	require.Equal(t, "4 runs of 3 tasks", format.TaskRuns([]string{"Write#1", "Write#2", "Send[1]", "Plan"}))
}

func TestToolNamesAreThoseOfTheSpec(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"search/web_search", "bash", "__x", "x__"}, format.ToolNames([]string{"search__web_search", "bash", "__x", "x__"}))
	for give, want := range map[string]string{
		"tool:search__web_search":                  "tool:search/web_search",
		"from tool:a__b, tool:bash and tool:c__d.": "from tool:a/b, tool:bash and tool:c/d.",
		"results of a__b":                          "results of a__b",
	} {
		require.Equal(t, want, format.Readers(give))
	}
}
