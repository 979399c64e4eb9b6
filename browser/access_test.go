package browser

import (
	"os"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// axe returns the script that finds what keeps people from using a page.
func axe(t testing.TB) string {
	t.Helper()
	script, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		missing(t, "axe-core is not installed: run make browser in the folder above")
	}
	return string(script)
}

// requireAccessible checks a view with axe, by the rules of WCAG 2.2 AA and its own.
func requireAccessible(t *testing.T, p *tab, view string) {
	t.Helper()
	found := eval[[]string](p, `axe.run(document, { resultTypes: ["violations"] }).then((r) => (r.passes.length < 10 ? ["axe checked nothing"] : []).concat(
		r.violations.flatMap((v) => v.nodes.slice(0, 3).map((n) => v.id + ": " + n.target.join(" ") + " " + (n.any[0] ?? n.all[0] ?? n.none[0])?.message))))`)
	require.Empty(t, found, "%s at %s", view, p.shape)
}

func TestEveryoneCanUseThePage(t *testing.T) {
	t.Parallel()
	c := theClaims(t)
	script := axe(t)
	run := c.run
	run.Tasks = nil
	for _, task := range c.run.Tasks {
		if task.Title == "Letter to the customer" {
			run.Tasks = append(run.Tasks, task)
		}
	}
	for _, l := range []look{wide, {width: 1440, height: 900, dark: true}, {width: 360, height: 740}} {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			p := c.look(t, l, "")
			p.do(script)
			walk(t, p, &run, func(view string) { requireAccessible(t, p, view) })
			p.visit("#/runs/" + run.RunID)
			p.press("?")
			p.until(`document.querySelector("dialog[open]")`)
			requireAccessible(t, p, "the shortcuts")
		})
	}
}

func TestEveryoneCanSteer(t *testing.T) {
	t.Parallel()
	script := axe(t)
	m := newModel(t, map[string]func(*modelCall){"Write the letter": says("Dear customer, we are sorry.")})
	f := newFolder(t, map[string]string{"team.yaml": asks})
	s := f.serve(t, m.env(), "team.yaml")
	p := s.open(t, wide, "#/runs")
	p.do(script)
	requireAccessible(t, p, "no runs")
	p.click("button", "Start a run")
	p.until(`document.querySelector("#start-spec")`)
	requireAccessible(t, p, "the form that starts a run")
	p.click("dialog button[type=submit]", "Start")
	p.showsIn(".question[open] summary", "Question: Decide")
	p.settle()
	for _, dark := range []bool{false, true} {
		p.look(look{width: 1440, height: 900, dark: dark})
		requireAccessible(t, p, "a question")
		for _, command := range []string{"Message", "Cancel", "Pause"} {
			p.click(".summary button", command)
			p.until(`document.activeElement.matches("dialog .field *")`, "the first field has the focus")
			requireAccessible(t, p, command)
			p.press(kb.Escape)
			p.until(`!document.querySelector("dialog")`)
		}
	}
}

// tabTo presses Tab until an element has the focus, which must be seen.
func (p *tab) tabTo(selector string) {
	p.t.Helper()
	for range 80 {
		p.press(kb.Tab)
		if eval[bool](p, `document.activeElement.matches(`+quote(selector)+`)`) {
			seen := eval[bool](p, `(() => {
				const e = document.activeElement, r = e.getBoundingClientRect(), css = getComputedStyle(e), body = e.querySelector?.(".body");
				const ring = css.outlineStyle !== "none" || css.boxShadow !== "none" || body && getComputedStyle(body).strokeWidth !== "1px";
				return ring && r.width > 0 && r.bottom > 0 && r.top < innerHeight;
			})()`)
			require.True(p.t, seen, "%s has the focus, and it cannot be seen", selector)
			return
		}
	}
	p.t.Fatalf("Tab does not reach %s", selector)
}

func TestTheKeyboardIsEnough(t *testing.T) {
	t.Parallel()
	c := theClaims(t)
	p := c.look(t, wide, "")
	p.visit("#/runs")
	p.tabTo("td.c-name a")
	p.press(kb.Enter)
	p.until(`document.querySelectorAll(".node").length > 5`)
	p.settle()

	p.tabTo("g.node")
	p.until(`document.activeElement.matches("g.node")`) // it may be drawn again
	first := eval[string](p, `document.activeElement.textContent`)
	p.press(kb.ArrowDown, kb.ArrowRight)
	p.until(`document.activeElement.matches("g.node")`)
	require.NotEqual(t, first, eval[string](p, `document.activeElement.textContent`))
	for eval[bool](p, `document.activeElement.matches(".k-input")`) {
		p.press(kb.ArrowDown)
	}
	p.press(kb.Enter)
	p.until(`document.querySelector(".panel h2")`)
	p.settle()
	require.True(t, eval[bool](p, `document.activeElement.matches(".panel h2")`), "the focus goes along")
	p.tabTo(`.subtabs [role=tab]`)
	p.press(kb.ArrowRight)
	p.until(`document.activeElement.textContent === "Result"`)
	p.press(kb.ArrowLeft)
	p.until(`document.activeElement.textContent === "Prompt" && document.querySelector(".panel .tv-row")`)
	p.tabTo(".panel .tv-box")
	p.press(kb.ArrowDown, kb.ArrowRight)
	p.until(`document.querySelector(".probe .probe-from")`)
	p.pressWith(kb.ArrowRight, chromedp.ModifierShift)
	p.press("w")
	p.until(`document.querySelector("dialog .trace") && !document.querySelector("dialog .loading")`)
	p.press(kb.Escape)
	p.until(`!document.querySelector("dialog")`)
	p.until(`document.activeElement.matches(".tv-box")`, "the focus comes back")
	p.press(kb.Tab, kb.Escape)
	p.until(`document.querySelector(".panel").hidden`)
	for key, view := range map[string]string{"2": "Timeline", "3": "Tasks", "5": "Flow", "7": "Events", "1": "Graph"} {
		p.press(key)
		p.until(`document.querySelector(".tabs [aria-current]").textContent === ` + quote(view))
		p.settle()
	}
	p.press("/")
	p.until(`document.activeElement.matches("input[type=search]")`)
	p.press("f", "r", "a", "u", "d")
	p.showsIn("[role=status]", "of 11")
	p.press("g") // a letter in a field is no shortcut
	require.Contains(t, eval[string](p, `location.hash`), "/list")
}

func TestNothingIsWiderThanATelephone(t *testing.T) {
	t.Parallel()
	c := theClaims(t)
	p := c.look(t, look{width: 360, height: 740}, "")
	run := c.run
	run.Tasks = run.Tasks[:2]
	walk(t, p, &run, func(view string) {
		wider := eval[[]string](p, `(() => {
			const out = [];
			if (document.scrollingElement.scrollWidth > innerWidth) out.push("the page has " + document.scrollingElement.scrollWidth);
			if (document.scrollingElement.scrollHeight > innerHeight) out.push("the page scrolls around what scrolls in it, for " + document.scrollingElement.scrollHeight);
			for (const e of document.querySelectorAll(".node :is(.body, tspan, .sub), .legend span")) {
				const r = e.getBoundingClientRect();
				if (r.width > 0 && (r.left < 0 || r.right > innerWidth)) out.push(e.textContent + " is from " + r.left + " to " + r.right);
			}
			for (const e of document.querySelectorAll("header, main, nav, .panel, .scroll, .page, .view")) {
				if (e.getClientRects().length === 0) continue;
				const r = e.getBoundingClientRect();
				if (r.right > innerWidth + 1) out.push(e.tagName + "." + e.className + " ends at " + r.right);
			}
			return out;
		})()`)
		require.Empty(t, wider, view)
	})
}
