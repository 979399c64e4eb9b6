package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// A tab is a page that a test uses. It fails the test when it ends if the page wrote to the console, or
// did what its policy forbids.
type tab struct {
	t     testing.TB
	ctx   context.Context //nolint:containedctx // chromedp keeps the tab in it
	base  string
	shape look

	mu      sync.Mutex
	console []string
	allowed []*regexp.Regexp
}

// A look is the size of the window and the colours of the system.
type look struct {
	width, height int
	dark          bool
}

var wide = look{width: 1440, height: 900}

func (l look) String() string {
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	return fmt.Sprintf("%dx%d-%s", l.width, l.height, scheme)
}

// blankTab opens an empty tab with cookies of its own.
func blankTab(t testing.TB, l look) *tab {
	t.Helper()
	return tabIn(t, browser(t), l, chromedp.WithNewBrowserContext())
}

func tabIn(t testing.TB, parent context.Context, l look, options ...chromedp.ContextOption) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent, options...)
	p := &tab{t: t, ctx: ctx}
	t.Cleanup(func() {
		p.finish()
		cancel()
	})
	require.NoError(t, chromedp.Listen(ctx, p.hear))
	p.look(l)
	return p
}

// open lets a new browser in by the first link of a server, and shows a view of it.
func (s *server) open(t testing.TB, l look, view string) *tab {
	t.Helper()
	p := blankTab(t, l)
	p.login(s)
	p.visit(view)
	return p
}

// login takes a link of the server, with the key that the next browser gets.
func (p *tab) login(s *server) {
	p.t.Helper()
	p.base = s.url
	p.navigate(s.link(p.t))
	p.until(`document.querySelector("header.top") !== null`)
}

// beside opens another tab of the same browser.
func (p *tab) beside(l look, view string) *tab {
	p.t.Helper()
	q := tabIn(p.t, p.ctx, l)
	q.base = p.base
	q.navigate(p.base + "/" + view)
	q.settle()
	return q
}

func (p *tab) look(l look) {
	p.t.Helper()
	p.shape = l
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	require.NoError(p.t, err)
	require.NoError(p.t, chromedp.Do(p.ctx, chromedp.EmulateViewport(int64(l.width), int64(l.height))))
	_, err = chromedp.Call(p.ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	require.NoError(p.t, err)
}

// hear notes what a page writes to the console; chromedp calls it in its loop.
func (p *tab) hear(event any) {
	text := ""
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		for _, arg := range e.Args {
			text += fmt.Sprintf("console: %s %s ", arg.Description, arg.Value)
		}
	case *runtime.EventExceptionThrown:
		text = "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
	case *log.EventEntryAdded:
		text = fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
	case *page.EventJavascriptDialogOpening:
		text = "dialog: " + e.Message
	}
	if text != "" {
		p.mu.Lock()
		p.console = append(p.console, text)
		p.mu.Unlock()
	}
}

// allow lets the page write what matches, such as the failed requests of a test that stops the server.
func (p *tab) allow(patterns ...string) {
	for _, pattern := range patterns {
		p.allowed = append(p.allowed, regexp.MustCompile(pattern))
	}
}

// finish fails the test if the page wrote to the console.
func (p *tab) finish() {
	if p.ctx.Err() != nil {
		return
	}
	if p.t.Failed() {
		p.report()
	}
	_, _ = chromedp.Run(p.ctx, chromedp.Evaluate[int](`1`)) // what was written before it has been heard
	p.mu.Lock()
	defer p.mu.Unlock()
lines:
	for _, line := range p.console {
		for _, pattern := range p.allowed {
			if pattern.MatchString(line) {
				continue lines
			}
		}
		p.t.Errorf("the page wrote to the console: %s", line)
	}
}

// report says what the page of a failed test shows.
func (p *tab) report() {
	text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText.slice(0, 3000)`))
	p.t.Logf("the page shows: %s", text)
	if dir := os.Getenv("RUNTEAM_SHOTS"); dir != "" {
		p.shot(filepath.Join(dir, strings.ReplaceAll(p.t.Name(), "/", "_")+".png"))
	}
}

// shot writes what the window shows as a PNG.
func (p *tab) shot(path string) {
	p.t.Helper()
	image, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(path, image, 0o600)
	}
	if err != nil {
		p.t.Logf("screenshot: %v", err)
	}
}

func (p *tab) navigate(url string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	require.NoError(p.t, chromedp.Do(ctx, chromedp.Navigate(url)))
}

// reload loads the page again. It returns when the new page has loaded, so that nothing that follows can look at the
// old one.
func (p *tab) reload() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	require.NoError(p.t, chromedp.Do(ctx, chromedp.Reload()))
}

// visit shows a view of the page, such as #/runs.
func (p *tab) visit(view string) {
	p.t.Helper()
	p.do(`new Promise((shown) => {
		const before = location.hash;
		addEventListener("hashchange", shown, { once: true }); // after the page itself was told
		location.hash = ` + quote(view) + `;
		if (location.hash === before) shown();
	})`)
	p.settle()
}

// settle waits until nothing loads.
func (p *tab) settle() {
	p.t.Helper()
	p.until(`document.querySelector("main") && !document.querySelector(".loading")`)
	p.do(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`)
}

// quote returns a text as a JavaScript string.
func quote(text string) string {
	out, _ := json.Marshal(text)
	return string(out)
}

// eval returns the value of an expression in the page; a promise is awaited.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(p.t, err, expression)
	return value
}

// do evaluates an expression for its effect.
func (p *tab) do(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	require.NoError(p.t, chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void](expression, chromedp.EvalAwaitPromise)), expression)
}

// until waits until an expression is true, over reloads of the page, too.
func (p *tab) until(expression string, why ...any) {
	p.t.Helper()
	p.within(patience, expression, why...)
}

func (p *tab) within(limit time.Duration, expression string, why ...any) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	look := time.NewTicker(15 * time.Millisecond)
	defer look.Stop()
	var last error
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`Boolean(`+expression+`)`))
		if ok {
			return
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			p.t.Fatalf("not true within %v: %s %v (%v)", limit, expression, fmt.Sprint(why...), last)
		}
	}
}

// shows waits until the page shows a text.
func (p *tab) shows(text string) {
	p.t.Helper()
	p.until(`document.body.innerText.includes(` + quote(text) + `)`)
}

// showsIn waits until an element shows a text.
func (p *tab) showsIn(selector, text string) {
	p.t.Helper()
	p.until(`[...document.querySelectorAll(` + quote(selector) + `)].some((e) => e.textContent.includes(` + quote(text) + `))`)
}

// find is the expression of the first visible element with a selector and a text or name; the text may be empty.
func find(selector, text string) string {
	return fmt.Sprintf(`(() => {
		const all = [...document.querySelectorAll(%s)].filter((e) => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== "hidden");
		const text = %s, name = (e) => [(e.getAttribute("aria-label") ?? "").trim(), e.textContent.trim()];
		return text === "" ? all[0] : all.find((e) => name(e).includes(text)) ?? all.find((e) => name(e).some((n) => n.includes(text)));
	})()`, quote(selector), quote(text))
}

// A point is where something is in the window.
type point struct{ X, Y float64 }

// at waits until an element can be pointed at, and returns its middle.
func (p *tab) at(selector, text string) point {
	p.t.Helper()
	where := `(() => {
		const e = ` + find(selector, text) + `;
		if (!e) return null;
		e.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
		const r = e.getClientRects()[0], x = r.left + r.width / 2, y = r.top + r.height / 2, hit = document.elementFromPoint(x, y);
		return hit && (e === hit || e.contains(hit) || hit.contains(e)) ? { X: x, Y: y } : null;
	})()`
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	look := time.NewTicker(15 * time.Millisecond)
	defer look.Stop()
	last := point{X: -1}
	for {
		found, err := chromedp.Run(ctx, chromedp.Evaluate[*point](where))
		if err == nil && found != nil && *found == last { // it does not move
			return last
		}
		if err == nil && found != nil {
			last = *found
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			p.t.Fatalf("nothing to point at: %s %q (%v)", selector, text, err)
		}
	}
}

// click clicks an element with the mouse, again if it has moved away before the mouse was pressed, or released: then the
// browser takes what contains both places for clicked.
func (p *tab) click(selector, text string) {
	p.t.Helper()
	watch := `(() => {
		window.clicked = "no";
		document.addEventListener("click", (event) => {
			const e = ` + find(selector, text) + `, r = e?.getClientRects()[0];
			if (e?.contains(event.target) || r && event.target === document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2)) window.clicked = "yes";
		}, { once: true, capture: true });
	})()`
	for range 5 {
		at := p.at(selector, text)
		_, err := chromedp.Run(p.ctx, chromedp.Evaluate[any](watch))
		require.NoError(p.t, err)
		require.NoError(p.t, chromedp.Do(p.ctx, chromedp.MouseClickXY(at.X, at.Y)))
		missed, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](`window.clicked === "no"`))
		if err != nil || !missed { // another page may be loading
			return
		}
	}
	p.t.Fatalf("%s %q moves away from each click", selector, text)
}

// hover points at an element.
func (p *tab) hover(selector, text string) {
	p.t.Helper()
	at := p.at(selector, text)
	require.NoError(p.t, chromedp.Do(p.ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at.X, at.Y)))
}

func (p *tab) pressMouse(at point) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Do(p.ctx,
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at.X, at.Y),
		chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, at.X, at.Y, chromedp.ButtonType(input.MouseButtonLeft), chromedp.ClickCount(1))))
}

func (p *tab) releaseMouse(at point) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Do(p.ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, at.X, at.Y, chromedp.ButtonType(input.MouseButtonLeft), chromedp.ClickCount(1))))
}

// drag presses the mouse at a point, moves it and lets go.
func (p *tab) drag(from, to point) {
	p.t.Helper()
	p.pressMouse(from)
	p.moveMouse(from, to)
	p.releaseMouse(to)
}

// moveMouse moves the pressed mouse.
func (p *tab) moveMouse(from, to point) {
	p.t.Helper()
	var steps []chromedp.Action[chromedp.Void]
	for i := 1.0; i <= 6; i++ {
		steps = append(steps, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, from.X+(to.X-from.X)*i/6, from.Y+(to.Y-from.Y)*i/6, chromedp.ButtonType(input.MouseButtonLeft)))
	}
	require.NoError(p.t, chromedp.Do(p.ctx, steps...))
}

// write clicks a field, and enters a text instead of what it has.
func (p *tab) write(selector, text string) {
	p.t.Helper()
	p.click(selector, "")
	p.do(`document.activeElement.select?.()`)
	_, err := chromedp.Call(p.ctx, input.InsertText, input.InsertTextParams{Text: text})
	require.NoError(p.t, err)
}

// press presses keys, one after the other.
func (p *tab) press(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		require.NoError(p.t, chromedp.Do(p.ctx, chromedp.KeyEvent(key)))
	}
}

// pressWith presses a key with others held.
func (p *tab) pressWith(key string, held ...chromedp.Modifier) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Do(p.ctx, chromedp.KeyEvent(key, chromedp.KeyModifiers(held...))))
}

// text returns what an element shows.
func (p *tab) text(selector string) string {
	p.t.Helper()
	return eval[string](p, `document.querySelector(`+quote(selector)+`)?.innerText ?? ""`)
}
