package browser

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// images is where the screenshots of the documents are.
const images = "../docs/images"

// mostImages is how large the screenshots of the documents may be together.
const mostImages = 600 << 10

// shots are views, and where to show them. The documents show one look of some of them.
var shots = []struct {
	name, task, view, tab string
	prepare               func(p *tab)
	looks                 []look
	shown                 look
}{
	{name: "run", prepare: func(p *tab) { p.showsIn(".stat-withheld", "redacted"); p.until(`document.querySelector(".e-held")`) }, looks: []look{{1440, 900, false}, {1440, 900, true}, {900, 700, false}, {360, 740, false}}, shown: look{1440, 900, true}},
	{name: "prompt", task: "Letter to the customer", prepare: func(p *tab) { p.pointAt("Decide the claim") }, looks: []look{{1440, 900, false}, {1440, 900, true}, {900, 700, true}, {360, 740, true}}, shown: look{1440, 900, false}},
	{name: "way", task: "Letter to the customer", tab: "?tab=result", prepare: func(p *tab) { p.follow(`Aoife Brennan`) }, looks: []look{{1440, 900, false}, {360, 740, false}}, shown: look{1440, 900, false}},
	{name: "flow", view: "/flow", looks: []look{{1440, 900, false}}},
}

// TestViewsFitTheirWindows shows views at three sizes in light and dark, and with -update writes the
// images of the documents.
func TestViewsFitTheirWindows(t *testing.T) {
	t.Parallel()
	c := theClaims(t)
	for _, of := range shots {
		for _, l := range of.looks {
			t.Run(of.name+"-"+l.String(), func(t *testing.T) {
				t.Parallel()
				view := of.view
				if of.task != "" {
					view = c.task(t, of.task) + of.tab
				}
				p := c.look(t, l, view)
				p.do(`document.activeElement.blur()`)
				if of.prepare != nil {
					of.prepare(p)
				}
				p.do(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`)
				require.Equal(t, l.width, eval[int](p, `document.scrollingElement.scrollWidth`))
				shot, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
				require.NoError(t, err)
				if *update && l == of.shown {
					require.NoError(t, os.MkdirAll(images, 0o755))
					require.NoError(t, os.WriteFile(filepath.Join(images, of.name+".png"), small(t, shot), 0o644))
				}
			})
		}
	}
}

// TestTheImagesAreSmall checks that the images are those of shots, and how large they are.
func TestTheImagesAreSmall(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(images, "*"))
	require.NoError(t, err)
	var names, want []string
	sum := int64(0)
	for _, name := range files {
		info, err := os.Stat(name)
		require.NoError(t, err)
		sum += info.Size()
		names = append(names, filepath.Base(name))
	}
	for _, of := range shots {
		if of.shown != (look{}) {
			want = append(want, of.name+".png")
		}
	}
	require.ElementsMatch(t, want, names)
	require.LessOrEqual(t, sum, int64(mostImages))
}

// pointAt shows what a task gave to a prompt, and where that came from.
func (p *tab) pointAt(task string) {
	p.t.Helper()
	p.until(`document.querySelectorAll(".prompt .source").length > 3`)
	source := eval[string](p, `[...document.querySelectorAll(".source[data-source]")].find((e) => e.querySelector("b").textContent.includes(`+quote(task)+`)).dataset.source`)
	p.click(`.source[data-source="`+source+`"] button.chip`, "")
	p.until(`document.querySelector(".r-mark")`)
	p.hover(".prompt-text .tv-row .r-src.r-mark", "")
	p.until(`document.querySelector(".probe .probe-from")`)
}

// follow selects the first text in the panel that matches, with the mouse, and asks how it got there.
func (p *tab) follow(pattern string) {
	p.t.Helper()
	p.until(`document.querySelector(".panel .tv-row")`)
	type line struct{ From, To point }
	found := eval[line](p, `(() => {
		for (const span of document.querySelectorAll(".panel .tv-row .r")) {
			const node = [...span.childNodes].find((n) => n.nodeType === 3), m = node && /`+pattern+`/.exec(node.data);
			if (!m) continue;
			span.scrollIntoView({ block: "center", behavior: "instant" });
			const r = document.createRange();
			r.setStart(node, m.index);
			r.setEnd(node, m.index + m[0].length);
			const b = r.getBoundingClientRect();
			return { From: { X: b.left + 1, Y: b.top + b.height / 2 }, To: { X: b.right - 1, Y: b.top + b.height / 2 } };
		}
	})()`)
	p.drag(found.From, found.To)
	p.click("button.float", "How did this text get here?")
	p.until(`document.querySelector("dialog .trace") && !document.querySelector("dialog .loading")`)
}

// small returns an image with its 256 most frequent colours, which is enough for a page.
func small(t testing.TB, shot []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(shot))
	require.NoError(t, err)
	counts := map[color.RGBA]int{}
	for y := range full.Bounds().Dy() {
		for x := range full.Bounds().Dx() {
			r, g, b, _ := full.At(x, y).RGBA()
			counts[color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 255}]++ //nolint:gosec // 16 bits each
		}
	}
	colours := make([]color.RGBA, 0, len(counts))
	for c := range counts {
		colours = append(colours, c)
	}
	slices.SortFunc(colours, func(a, b color.RGBA) int {
		if d := counts[b] - counts[a]; d != 0 {
			return d
		}
		return int(a.R)<<16 + int(a.G)<<8 + int(a.B) - int(b.R)<<16 - int(b.G)<<8 - int(b.B)
	})
	chosen := color.Palette{}
	for _, c := range colours {
		if len(chosen) == 256 {
			break
		}
		if isNew(chosen, c) {
			chosen = append(chosen, c)
		}
	}
	out := image.NewPaletted(full.Bounds(), chosen)
	draw.Draw(out, out.Bounds(), full, image.Point{}, draw.Src)
	var buf bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&buf, out))
	return buf.Bytes()
}

// isNew reports whether a colour is far enough from those that were chosen.
func isNew(chosen color.Palette, c color.RGBA) bool {
	for _, of := range chosen {
		o, _ := of.(color.RGBA)
		d := func(a, b uint8) int { return (int(a) - int(b)) * (int(a) - int(b)) }
		if d(o.R, c.R)+d(o.G, c.G)+d(o.B, c.B) < 40 {
			return false
		}
	}
	return true
}
