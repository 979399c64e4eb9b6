package format

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/runteam/runteam/internal/cli/terminal"
)

// maxDiffer is how many lines a diff shows.
const maxDiffer = 12

// MaxLine is the width at which a line of an excerpt is cut, in cells.
const MaxLine = 400

// LineDiff returns the lines that only one of two texts has, in order: those of the first with a minus,
// those of the second with a plus. It cuts long results and says how many lines it omits.
func LineDiff(before, after string) (lines []string, more int) {
	all := changes(before, after)
	if len(all) > maxDiffer {
		all, more = all[:maxDiffer], len(all)-maxDiffer
	}
	for i, line := range all {
		all[i] = terminal.Clip(line, MaxLine)
	}
	return all, more
}

// changes returns the lines that are only in one of two texts.
func changes(before, after string) (out []string) {
	before, after = before+"\n", after+"\n" // or a last line would differ from one that is followed by others
	for _, e := range udiff.Lines(before, after) {
		for line := range strings.Lines(before[e.Start:e.End]) {
			out = append(out, "- "+strings.TrimSuffix(line, "\n"))
		}
		for line := range strings.Lines(e.New) {
			out = append(out, "+ "+strings.TrimSuffix(line, "\n"))
		}
	}
	return out
}
