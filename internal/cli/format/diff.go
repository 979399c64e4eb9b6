package format

import (
	"strings"

	"github.com/runteam/runteam/internal/cli/terminal"
)

// Limits of a diff.
const (
	maxCompared = 2_000 // lines of a text that is compared line by line
	maxDiffer   = 12    // lines in the result
)

// MaxLine is the width at which a line of an excerpt is cut, in cells.
const MaxLine = 400

// LineDiff returns the lines that only one of two texts has, in order: those of the first with a minus,
// those of the second with a plus. It cuts long results and says how many lines it omits.
func LineDiff(before, after string) (lines []string, more int) {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	all := changes(a, b)
	if len(all) > maxDiffer {
		all, more = all[:maxDiffer], len(all)-maxDiffer
	}
	for i, line := range all {
		all[i] = terminal.Clip(line, MaxLine)
	}
	return all, more
}

// changes returns the lines that are only in a or only in b.
func changes(a, b []string) (out []string) {
	if len(a) > maxCompared || len(b) > maxCompared {
		return append(marked("- ", a), marked("+ ", b)...)
	}
	common := commonLines(a, b)
	i, k := 0, 0
	for i < len(a) || k < len(b) {
		switch {
		case i < len(a) && k < len(b) && a[i] == b[k]:
			i, k = i+1, k+1
		case k == len(b) || i < len(a) && common[i+1][k] >= common[i][k+1]:
			out = append(out, "- "+a[i])
			i++
		default:
			out = append(out, "+ "+b[k])
			k++
		}
	}
	return out
}

// commonLines returns the length of the longest common subsequence of a[i:] and b[k:] for all i and k.
func commonLines(a, b []string) [][]uint16 {
	cells := make([]uint16, (len(a)+1)*(len(b)+1))
	common := make([][]uint16, len(a)+1)
	for i := range common {
		common[i] = cells[i*(len(b)+1) : (i+1)*(len(b)+1)]
	}
	for i := len(a) - 1; i >= 0; i-- {
		for k := len(b) - 1; k >= 0; k-- {
			if a[i] == b[k] {
				common[i][k] = common[i+1][k+1] + 1
			} else {
				common[i][k] = max(common[i+1][k], common[i][k+1])
			}
		}
	}
	return common
}

func marked(mark string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = mark + line
	}
	return out
}
