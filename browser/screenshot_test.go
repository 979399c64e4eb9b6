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

// shots are the views of which the documents have a screenshot.
var shots = []struct {
	name, task, view string
	looks            []look
}{
	{name: "run", looks: []look{{1440, 900, false}, {1440, 900, true}, {900, 700, false}, {360, 740, false}}},
	{name: "prompt", task: "Letter to the customer", looks: []look{{1440, 900, false}, {1440, 900, true}, {900, 700, true}, {360, 740, true}}},
	{name: "flow", view: "/flow", looks: []look{{1440, 900, false}}},
}

// TestViewsFitTheirWindows shows what the documents show, at three sizes in light and dark, and with
// -update writes the images.
func TestViewsFitTheirWindows(t *testing.T) {
	t.Parallel()
	c := theClaims(t)
	for _, of := range shots {
		for _, l := range of.looks {
			t.Run(of.name+"-"+l.String(), func(t *testing.T) {
				t.Parallel()
				view := of.view
				if of.task != "" {
					view = c.task(t, of.task)
				}
				p := c.look(t, l, view)
				p.do(`document.activeElement.blur()`)
				if of.task != "" {
					p.pointAt("Decide the claim")
				}
				p.do(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`)
				require.Equal(t, l.width, eval[int](p, `document.scrollingElement.scrollWidth`))
				shot, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
				require.NoError(t, err)
				if *update && l.width != 900 { // the documents show the largest and the smallest
					require.NoError(t, os.MkdirAll(images, 0o755))
					require.NoError(t, os.WriteFile(filepath.Join(images, of.name+"-"+l.String()+".png"), small(t, shot), 0o644))
				}
			})
		}
	}
}

func TestTheImagesAreSmall(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(images, "*.png"))
	require.NoError(t, err)
	sum := int64(0)
	for _, name := range files {
		info, err := os.Stat(name)
		require.NoError(t, err)
		sum += info.Size()
	}
	require.LessOrEqual(t, sum, int64(mostImages))
	require.NotEmpty(t, files)
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
