package browser

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

func TestAPromptShowsItsSources(t *testing.T) {
	t.Parallel()
	c := theClaims(t)
	p := c.look(t, wide, "")
	p.until(`document.querySelectorAll(".node:not(.k-input)").length === 11`)
	p.click(".node .title", "Letter to the customer")
	p.showsIn(".panel h2", "Letter to the customer")
	p.until(`document.querySelector(".panel .tv-row")`)

	// Every byte belongs to a numbered source, or to runteam.
	require.True(t, eval[bool](p, `[...document.querySelectorAll(".tv-row [data-p]")].every((e) => e.classList.contains("r-src") || e.classList.contains("r-frame"))`))

	// The mouse shows where a range comes from.
	p.pointAt("Decide the claim")
	probe := p.text(".probe")
	require.Contains(t, probe, "Decide the claim")
	require.Contains(t, probe, "confidential")
	require.Contains(t, probe, "handler→letters")
	require.Regexp(t, `team\.yaml:\d+`, probe)
	require.Contains(t, probe, "envelope")
	require.Contains(t, p.text(".source.on"), "handler→letters", "its card is marked")

	// The card says what was left out, and why.
	p.showsIn(".sources .source", "internal_notes")
	p.showsIn(".sources .source.withheld", "/internal_notes")

	// From the card to the handoff, and to the task whose result it is.
	p.click(`.source.on .source-links button`, "Open the handoff")
	p.showsIn(".edge-panel h2", "Decide the claim")
	p.showsIn(".edge-panel .decision", "handler→letters")
	p.click(`.edge-panel button`, "Open the result")
	p.showsIn(".panel h2", "Decide the claim")
	p.until(`document.querySelector(".panel .tv-row")`)
}

func TestASelectedTextIsFollowedToItsSource(t *testing.T) {
	t.Parallel()
	c := theClaims(t)
	p := c.look(t, wide, c.task(t, "Letter to the customer")+"?tab=result")
	p.until(`document.querySelector(".panel .tv-row")`)

	p.follow(`\d[\d,.]*\.\d\d`) // a sum of the letter
	found := p.text("dialog .trace")
	require.Regexp(t, `^[\d,]+\.\d\d\n`, found, "nothing but the sum was selected")
	require.Contains(t, found, "Check the estimate", "whose result has the sum")

	// The same with the keyboard.
	p.press(kb.Escape)
	p.until(`!document.querySelector("dialog")`)
	p.do(`document.querySelector(".panel .tv-box").focus()`)
	p.press(kb.ArrowDown, kb.ArrowRight, "w")
	p.until(`document.querySelector("dialog .trace") && !document.querySelector("dialog .loading")`)
}

// The key works wherever the cursor is, and says what it needs.
func TestTheKeyFollowsTheTextAtTheCursor(t *testing.T) {
	t.Parallel()
	c := theClaims(t)
	p := c.look(t, wide, c.task(t, "Letter to the customer")+"?tab=result")
	p.until(`document.querySelector(".panel .tv-row")`)
	p.do(`document.activeElement.blur()`)
	p.press("w")
	p.showsIn(".toast", "Click a word of a prompt or a result, or select some text, and press W")

	// Away from words, it is what the line has of the source.
	p.do(`(() => {
		const v = document.querySelector(".panel .tv").view;
		v.box.focus();
		v.cursor = v.anchor = /[^\p{L}\p{N}_.,@\n-] \S/u.exec(v.text).index + 1;
	})()`)
	p.press("w")
	p.until(`document.querySelector("dialog .trace") && !document.querySelector("dialog .loading")`)
	line := eval[string](p, `(() => { const v = document.querySelector(".panel .tv").view; return v.text.slice(...v.lines[v.rowOf(v.anchor)]).trim(); })()`)
	require.Equal(t, line, p.text("dialog .quoted"))
	p.press(kb.Escape)

	// The focus may be elsewhere, as after a click on a button.
	p.until(`!document.querySelector("dialog")`)
	p.do(`document.querySelector(".panel h2").focus()`)
	p.press("w")
	p.until(`document.querySelector("dialog .trace") && !document.querySelector("dialog .loading")`)
	require.Equal(t, line, p.text("dialog .quoted"))
}

func TestEachEventHasItsRow(t *testing.T) {
	t.Parallel()
	c := theClaims(t)
	p := c.look(t, wide, "/events")
	p.until(`document.querySelector(".ev-context_handoff")`) // decisions have no number of their own
	rows := eval[[]int](p, `[...document.querySelectorAll(".ev-row")].map((e) => Number(e.dataset.i)).sort((a, b) => a - b)`)
	require.Greater(t, len(rows), 20)
	for i := range rows {
		require.Equal(t, i, rows[i], "a row is missing")
	}
	p.click(".ev-context_handoff", "")
	p.until(`location.hash.includes("/edges/")`)
	p.showsIn(".edge-panel .decision", "Contract")
}
