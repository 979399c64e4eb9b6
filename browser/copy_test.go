package browser

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// clipboard is held by the test that uses the clipboard, which all tabs share.
var clipboard sync.Mutex

// useClipboard waits until no other test uses the clipboard.
func (p *tab) useClipboard() {
	clipboard.Lock()
	p.t.Cleanup(clipboard.Unlock)
}

// requireCopied waits until what is pasted into a new field is a text.
func (p *tab) requireCopied(want string) {
	p.t.Helper()
	got := ""
	for began := time.Now(); got != want && time.Since(began) < patience; {
		p.do(`(() => {
			window.field = document.createElement("textarea");
			document.body.append(field);
			field.focus();
		})()`)
		p.pressWith("v", chromedp.ModifierCtrl)
		got = eval[string](p, `(() => { field.remove(); return field.value; })()`)
	}
	if got != want { // the texts may be long
		require.Failf(p.t, "another text is copied", "%.200q … (%d bytes), not %.200q … (%d bytes)", got, len(got), want, len(want))
	}
}

// clickWithShift clicks a point with the shift key held.
func (p *tab) clickWithShift(at point) {
	p.t.Helper()
	for _, kind := range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased} {
		require.NoError(p.t, chromedp.Do(p.ctx, chromedp.MouseEvent(kind, at.X, at.Y, chromedp.ButtonType(input.MouseButtonLeft), chromedp.ClickCount(1), chromedp.ButtonModifiers(chromedp.ModifierShift))))
	}
}

// long is an answer of many lines, of which some are empty, some are wrapped, and some have characters that are hidden.
func long() string {
	var text strings.Builder
	text.WriteString("{\"boxes\": [\n\n")
	for i := range 20_000 {
		fmt.Fprintf(&text, "  \"Box %d of March has %s apples.\",\n", i, strings.Repeat("many ", i%50))
	}
	text.WriteString("\n\"زن\u200cها \u202eback\u202c\"]}")
	return text.String()
}

// answering returns the view of the answer of a run whose answer is a text.
func answering(t *testing.T, text string) *tab {
	t.Helper()
	script, err := json.Marshal(map[string]any{"replies": []any{map[string]any{"text": text}}})
	require.NoError(t, err)
	f := newFolder(t, map[string]string{"team.yaml": spring, "script.json": string(script)})
	f.run(t, "run", "team.yaml", "--offline", "--script", "script.json", "--progress", "none")
	s := f.serve(t, nil)
	p := s.open(t, wide, "#/runs/"+s.newest(t).RunID+"/answer")
	p.until(`document.querySelector(".tv-row, .md li")`)
	p.useClipboard()
	return p
}

// A long text is drawn in part, with breaks of lines, and characters for hidden ones, that it does not have. What is
// copied is the text, however it is selected.
func TestTextIsCopiedAsItWasWritten(t *testing.T) {
	t.Parallel()
	text := long()
	p := answering(t, text)
	copyKey := func() { p.pressWith("c", chromedp.ModifierCtrl) }
	require.Less(t, eval[int](p, `document.querySelectorAll(".tv-row").length`), 100)

	p.click(".tv-box", "")
	p.pressWith("a", chromedp.ModifierCtrl)
	require.Zero(t, eval[int](p, `document.querySelector(".tv-box").scrollTop`), "the text stays where it is")
	copyKey()
	p.requireCopied(text)

	p.click(".tv-head button", "Copy")
	p.showsIn(".toast", "Copied")
	p.requireCopied(text)

	// The mouse selects from the second row, an empty one, to one that is drawn only after the text was scrolled.
	rows := `[...document.querySelectorAll(".tv-row")].sort((a, b) => a.rowStart - b.rowStart)`
	side := func(row, side string) point {
		return eval[point](p, `(() => { const r = (`+row+`).getBoundingClientRect(); return { X: Math.min(r.`+side+`, r.right - 30), Y: r.top + 10 }; })()`)
	}
	from := side(rows+`[1]`, "left")
	p.pressMouse(from)
	p.moveMouse(from, side(rows+`[9]`, "left"))
	p.do(`document.querySelector(".tv-box").scrollTop = 4000`)
	p.until(rows + `.at(-3).rowStart > 9000`)
	last := `document.elementsFromPoint(innerWidth / 2, 500).find((e) => e.matches(".tv-row"))`
	p.until(last)
	end := strings.Index(text, eval[string](p, last+`.textContent`)) + eval[int](p, last+`.textContent.length`)
	to := side(last, "right")
	p.moveMouse(from, to)
	p.releaseMouse(to)
	start := strings.Index(text, "\n\n") + 1
	copyKey()
	p.requireCopied(text[start:end])

	// Shift extends the selection.
	p.do(`document.querySelector(".tv-box").scrollTop = 9000`)
	p.until(rows + `.at(-1).rowStart > 20000`)
	far := eval[int](p, last+`.rowStart`)
	p.clickWithShift(side(last, "left"))
	copyKey()
	p.requireCopied(text[start:far])
	p.pressWith(kb.End, chromedp.ModifierShift)
	p.pressWith(kb.PageDown, chromedp.ModifierShift)
	copyKey()
	p.requireCopied(text[start:eval[int](p, `document.querySelector(".tv").view.cursor`)])
}

// Symbols take the place of controls in the clipboard: pasted into a terminal, controls could act there. Joiners and marks
// of direction are letters of a text.
func TestOnlyControlsAreCopiedAsSymbols(t *testing.T) {
	t.Parallel()
	p := answering(t, "{\"a\x1b[201~rm\x07\u009b31m\": \"\u202eزن\u200cها\u202c 👨\u200d👩 \u2066x\u2069\ttab\"}")
	want := "{\"a␛[201~rm␇‹U+009B›31m\": \"\u202eزن\u200cها\u202c 👨\u200d👩 \u2066x\u2069\ttab\"}"
	p.click(".tv-box", "")
	p.pressWith("a", chromedp.ModifierCtrl)
	p.pressWith("c", chromedp.ModifierCtrl)
	p.requireCopied(want)
	p.click(".tv-head button", "Copy")
	p.showsIn(".toast", "Copied, with control characters as symbols")
	p.requireCopied(want)
}

// Each text of a prompt is copied alone, without the numbers of its sources.
func TestPromptsAreCopied(t *testing.T) {
	t.Parallel()
	p := answering(t, "In March, 412 boxes.")
	p.visit(strings.Replace(eval[string](p, `location.hash`), "/answer", "/tasks/Read?tab=prompt", 1))
	p.until(`document.querySelectorAll(".panel .tv-row").length > 3`)
	p.click(".panel .tv-head button", "Copy: System prompt")
	p.requireCopied("You read reports.")
	p.click(".panel .tv-head button", "Copy: User message")
	p.requireCopied(eval[string](p, `document.querySelectorAll(".panel .tv")[1].view.pieces.map((x) => x.text).join("")`))
}
