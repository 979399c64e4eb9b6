package browser

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The graph marks the edges along which a part was withheld, and the head of the run counts them.
func TestTheGraphShowsWhatWasWithheld(t *testing.T) {
	t.Parallel()
	c := theClaims(t)
	p := c.look(t, wide, "")
	p.showsIn(".stat-withheld", "25 · 33 redacted")
	p.until(`document.querySelectorAll(".edge.e-held").length === 7`)
	require.Contains(t, eval[[]string](p, `[...document.querySelectorAll(".e-held")].map((e) => e.textContent)`), "Score the fraud risk → Line for the statistics: withheld in part◐")
	require.Contains(t, p.text(".legend"), "▒ withheld")
}

// A comparison says with which run, also by the beginning of its ID.
func TestAComparisonNamesTheOtherRun(t *testing.T) {
	t.Parallel()
	c := theClaims(t)
	short := c.run.RunID[:8]
	p := c.look(t, wide, "/compare/"+short)
	p.showsIn(".verdict-line", "With run "+short)
	p.until(`document.querySelector("#compare-with")?.selectedOptions[0]?.textContent.includes(` + quote(short) + `)`)
}
