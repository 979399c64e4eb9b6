package browser

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// contrast is a script with the contrast of a colour of an element with the background of the page.
const contrast = `
	const luminance = (colour) => colour.match(/[\d.]+/g).slice(0, 3).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const contrast = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
`

// WCAG 2.2 asks for a contrast of 3 of what is not text.
func TestEdgesOfTheGraphAreVisible(t *testing.T) {
	t.Parallel()
	c := theClaims(t)
	for _, dark := range []bool{false, true} {
		p := c.look(t, look{1280, 800, dark}, "")
		p.until(`document.querySelector(".edge .line")`)
		least := eval[float64](p, `(() => {`+contrast+`
			const back = getComputedStyle(document.querySelector(".graph")).backgroundColor;
			return Math.min(...[...document.querySelectorAll(".edge .line")].map((e) => getComputedStyle(e)).map((of) => contrast(of.stroke, back) * of.opacity), contrast(getComputedStyle(document.querySelector(".tip")).fill, back));
		})()`)
		require.Greater(t, least, 3.0, "dark: %v", dark)
	}
}

// longNames is a team with titles and agents that are wider than a node.
const longNames = `
name: long names
model: scripted
agents:
  - {name: customer-service-agent-of-the-second-line-of-support, systemPrompt: You help.}
tasks:
  - {title: Summarise the conversation with the customer and list every promise that was made to them, description: Summarise it.}
  - {title: WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW, description: Write it.}
`

func TestNamesInTheGraphAreWholeAndInTheirNodes(t *testing.T) {
	t.Parallel()
	browser(t)
	f := newFolder(t, map[string]string{"team.yaml": longNames})
	f.run(t, "run", "team.yaml", "--offline")
	s := f.serve(t, nil)
	p := s.open(t, wide, "#/runs/"+s.newest(t).RunID)
	p.until(`document.querySelectorAll(".node").length === 2`)
	names := eval[[]string](p, `[...document.querySelectorAll(".node .title")].map((e) => e.textContent).sort()`)
	require.Equal(t, []string{"Summarise the conversation with the customer and list every promise that was made to them", "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW"}, names)
	require.Empty(t, eval[[]string](p, `[...document.querySelectorAll(".node")].flatMap((node) => {
		const box = node.querySelector(".body").getBoundingClientRect();
		return [...node.querySelectorAll("tspan, .sub")].filter((e) => {
			const of = e.getBoundingClientRect();
			return of.left < box.left || of.right > box.right || of.top < box.top || of.bottom > box.bottom + 1;
		}).map((e) => e.textContent);
	})`), "texts that stick out of their nodes")
	p.showsIn(".node .sub title", "customer-service-agent-of-the-second-line-of-support · scripted")
}

// A telephone shows the graph in a size that can be read, without scrolling to the side.
func TestTheGraphIsReadableOnATelephone(t *testing.T) {
	t.Parallel()
	p := theClaims(t).look(t, look{390, 844, false}, "")
	p.until(`document.querySelectorAll(".node").length > 3`)
	type shown struct {
		Size  float64
		Right float64
	}
	got := eval[shown](p, `({
		Size: Math.min(...[...document.querySelectorAll(".node .title")].map((e) => e.getBoundingClientRect().height / e.querySelectorAll("tspan").length)),
		Right: Math.max(...[...document.querySelectorAll(".node .body")].map((e) => e.getBoundingClientRect().right)),
	})`)
	require.Greater(t, got.Size, 9.0, "the height of a line in pixels")
	require.LessOrEqual(t, got.Right, 390.0)
}

func TestTheTabThatIsShownIsInSight(t *testing.T) {
	t.Parallel()
	c := theClaims(t)
	for _, view := range []string{"", "/timeline", "/policy", "/events", "/compare"} {
		p := c.look(t, look{390, 844, false}, view)
		type sides struct{ Left, Right float64 }
		at := eval[sides](p, `(() => { const r = document.querySelector(".tabs a[aria-current]").getBoundingClientRect(); return { Left: r.left, Right: r.right }; })()`)
		require.GreaterOrEqual(t, at.Left, 0.0, view)
		require.LessOrEqual(t, at.Right, 350.0, "%s is under the shade at the right", view)
	}
}
