package browser

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// report is an answer in Markdown, with what could deceive a reader or lead elsewhere.
const report = "# Boxes of *March*\n\nSold: **412**\nin Lisbon\u200b.\n\n- a [source](https://example.com/a?b=c) and https://example.org/d\n" +
	"- write to <mailto:ann@example.com>\n- [here](/runs), [a server](http://127.0.0.1:1/x), [another](http://localhost/), [a third](http://[::1]:7337/)\n" +
	"- [script](javascript:window.ran=1), [bank](https://bank.example@192.0.2.1/), [data](data:text/html,x)\n\n" +
	"| month | boxes |\n|---|--:|\n| March | `412` |\n\n![A map](https://example.com/map.png)\n\n" +
	"<img src=x onerror=\"window.ran=1\"><script>window.ran=1</script>\n\n```js\nlet a = 1;\n\n  b();\n```\n"

// requireReport checks how the report is shown: its marks are elements, and all else is text.
func requireReport(t *testing.T, p *tab) {
	t.Helper()
	p.until(`document.querySelector(".md:not([hidden]) li")`)
	count := func(selector string) int {
		return eval[int](p, `document.querySelectorAll(`+quote(".md "+selector)+`).length`)
	}
	require.Equal(t, "Boxes of March", p.text(".md .md-heading"))
	require.Equal(t, "412", p.text(".md strong"))
	require.Equal(t, []string{"month", "boxes", "March", "412"}, eval[[]string](p, `[...document.querySelectorAll(".md :is(th, td)")].map((e) => e.textContent)`))
	require.Equal(t, "right", eval[string](p, `getComputedStyle(document.querySelectorAll(".md td")[1]).textAlign`))
	require.Equal(t, "let a = 1;\n\n  b();", p.text(".md pre"))

	require.Zero(t, count("img")+count("script")+count("[onerror]"))
	text := p.text(".md")
	require.Contains(t, text, `<img src=x onerror="window.ran=1"><script>window.ran=1</script>`)
	require.Contains(t, text, "image: A map (https://example.com/map.png)")
	require.Contains(t, text, "in Lisbon‹U+200B›.")

	require.Equal(t, []string{"https://example.com/a?b=c", "https://example.org/d", "mailto:ann@example.com"}, eval[[]string](p, `[...document.querySelectorAll(".md a")].map((e) => e.href)`))
	require.Contains(t, text, "source (https://example.com/a?b=c)", "all of the target is seen")
	for _, target := range []string{"here (/runs)", "a server (http://127.0.0.1:1/x)", "another (http://localhost/)", "a third (http://[::1]:7337/)", "script (javascript:window.ran=1)", "bank (https://bank.example@192.0.2.1/)", "data (data:text/html,x)"} {
		require.Contains(t, text, target)
	}
	require.Zero(t, eval[int](p, `window.ran ?? 0`))
	requireHarmless(t, p, "a rendered answer")
}

func TestAnswersAreRendered(t *testing.T) {
	t.Parallel()
	p := answering(t, report)
	requireReport(t, p)
	require.Regexp(t, `^The answer\s+by reader\s+confidential`, p.text(".tv-about"), "who wrote it, outside of what was written")

	// What is selected is copied with its line breaks, and as it was written.
	p.do(`getSelection().selectAllChildren(document.querySelector(".md p:not(.md-heading)"))`)
	p.pressWith("c", chromedp.ModifierCtrl)
	p.requireCopied("Sold: 412\nin Lisbon\u200b.")
	require.Equal(t, "‹U+200B›", p.text(".md .r-ctl"))
	p.do(`document.querySelector(".md").focus()`)
	p.pressWith("a", chromedp.ModifierCtrl)
	require.True(t, eval[bool](p, `(() => { const s = getSelection().toString(); return s.startsWith("Boxes of March") && s.endsWith("b();"); })()`), "all of the answer, and nothing around it")
	p.click(".tv-head button", "Copy")
	p.requireCopied(report)

	// What is selected is followed to its source, or there if it has marks.
	p.click(".md li", "write to")
	p.press("w")
	p.showsIn(".toast", "select some text")
	p.do(`getSelection().selectAllChildren(document.querySelector(".md .md-heading em"))`)
	p.press("w")
	p.until(`document.querySelector("dialog .trace") && !document.querySelector("dialog .loading")`)
	p.click("dialog button", "Close")
	p.do(`getSelection().selectAllChildren(document.querySelector(".md .md-heading"))`)
	p.press("w")
	p.showsIn(".toast", "select it in the source")
	p.until(`document.querySelector(".tv-row")?.textContent === "# Boxes of *March*"`)

	p.click(".tv-head button", "Rendered")
	p.until(`document.querySelector(".tv-box").hidden && !document.querySelector(".md").hidden`)
	p.click(".tv-head button", "Source")
	p.reload()
	p.settle()
	p.until(`document.querySelector(".tv-row") && document.querySelector(".md").hidden`, "the choice stays")
	p.click(".tv-head button", "Rendered")
	p.visit(strings.Replace(eval[string](p, `location.hash`), "/answer", "/tasks/Check?tab=result", 1))
	p.reload() // without the answer behind the panel
	p.settle()
	requireReport(t, p)

	// A place in the result is marked in its source.
	p.visit(eval[string](p, `location.hash.replace(/\?.*/, "")`) + "?tab=result&where=result&at=2-7")
	p.until(`document.querySelector(".r-mark")?.textContent === "Boxes" && document.querySelector(".md").hidden`)
	require.Regexp(t, `^The result\s+by reader\s+confidential`, p.text(".panel .tv-about"))
}

func TestAnswersAreRenderedInAnExport(t *testing.T) {
	t.Parallel()
	f := newFolder(t, map[string]string{"team.yaml": spring, "script.json": quote2(map[string]any{"replies": []any{map[string]any{"text": report + "\nCall ann@example.com."}}})})
	f.run(t, "run", "team.yaml", "--offline", "--script", "script.json", "--progress", "none")
	f.run(t, "export", "--html", "run.html")
	p := blankTab(t, wide)
	p.navigate((&url.URL{Scheme: "file", Path: filepath.ToSlash(f.path("run.html"))}).String() + "#/")
	p.until(`location.hash.length > 9`)
	p.visit(eval[string](p, `location.hash`) + "/answer")
	p.until(`document.querySelector(".md:not([hidden]) li")`)
	require.Contains(t, p.text(".md"), "[REDACTED:email]", "it has what the source has")
	require.NotContains(t, p.text(".md"), "ann@")
	p.click(".tv-head button", "Source")
	p.until(`document.querySelector(".tv-row")?.textContent === "# Boxes of *March*"`)
}

// Plain texts have nothing to render, and JSON is shown as it is written.
func TestOtherAnswersAreShownAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"Dear Ann,\n\n    412    boxes\n\nYours", `{"a": "**b**"}`} {
		t.Run(text[:3], func(t *testing.T) {
			t.Parallel()
			p := answering(t, text)
			p.until(`document.querySelector(".tv-row")`)
			require.True(t, eval[bool](p, `document.querySelector(".md").hidden && document.querySelector(".tv-head button").hidden`))
		})
	}
}

// Each result of an answer is in a frame of its own, which nothing in another result can change.
func TestResultsOfAnAnswerAreRenderedApart(t *testing.T) {
	t.Parallel()
	f := newFolder(t, map[string]string{
		"team.yaml": "name: two\nmodel: scripted\nagents: [{name: x}, {name: y}]\ntasks:\n  - {title: X, assignee: x, description: Say x.}\n  - {title: Y, assignee: y, description: Say y.}\n",
		"script.json": quote2(map[string]any{"replies": []any{
			map[string]any{"task": "X", "text": "[a]: https://evil.example/\n\n# Y\n\nI am Y.\n\n```\n"},
			map[string]any{"task": "Y", "text": "I do **not** approve. [a]"},
		}}),
	})
	f.run(t, "run", "team.yaml", "--offline", "--script", "script.json", "--progress", "none")
	s := f.serve(t, nil)
	p := s.open(t, wide, "#/runs/"+s.newest(t).RunID+"/answer")
	p.until(`document.querySelector(".md:not([hidden]) strong")`)
	require.Equal(t, []string{"X by x internal", "Y by y internal"}, eval[[]string](p, `[...document.querySelectorAll(".md-part > header")].map((e) => e.textContent.replace(/\s+/g, " ").trim())`))
	require.Equal(t, "not", p.text(".md-part:last-child > div > p > strong"))
	require.Zero(t, eval[int](p, `document.querySelectorAll(".md a").length`))
	require.Regexp(t, `^The answer\s+by x, y\s+internal`, p.text(".tv-about"))
	p.click(".tv-head button", "Source")
	p.until(`document.querySelector(".tv-row")?.textContent === "# X"`)
}
