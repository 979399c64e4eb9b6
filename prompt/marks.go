package prompt

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/redact"
)

// marks returns what a fence's first line says about the gate's work on its
// payload, each mark after a comma, or "". After a cut, left is the length of
// what is left of the text.
func marks(d *gate.Decision, left int) string {
	if len(d.Redacted) == 0 && len(d.Revealed) == 0 && d.CutFrom == 0 && d.Broken == 0 && !d.Parts().InPart && !d.AnswerTruncated {
		return ""
	}
	var b strings.Builder
	if d.AnswerTruncated && !d.Parts().InPart { // the parts of a structured answer are complete
		b.WriteString(", truncated")
	}
	if n := total(d.Redacted); n > 0 {
		b.WriteString(", redacted " + strconv.Itoa(n))
	}
	if len(d.Revealed) > 0 {
		b.WriteString(", revealed")
		for _, kind := range slices.Sorted(maps.Keys(d.Revealed)) {
			b.WriteString(" " + string(kind))
		}
	}
	if d.CutFrom > 0 {
		b.WriteString(", cut " + kib(left) + " of " + kib(d.CutFrom) + " KiB")
	}
	if d.Parts().InPart { // not d.Narrowed, which tells whether there was something that the reader must not get
		b.WriteString(", in parts")
	}
	if d.Broken > 0 {
		b.WriteString(", broken " + strconv.Itoa(d.Broken))
	}
	return b.String()
}

func total(counts redact.Counts) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

// kib writes bytes as KiB with at most one decimal.
func kib(n int) string {
	return strings.TrimSuffix(strconv.FormatFloat(float64(n)/1024, 'f', 1, 64), ".0")
}
