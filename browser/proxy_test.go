package browser

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A gateway is a proxy in front of a server, which ends streams and signs people out.
type gateway struct {
	*httptest.Server

	mu        sync.Mutex // guards the rest
	to        *url.URL
	ends      []func() // end the streams that are open
	streams   int      // that were opened
	signedOut bool
}

// newGateway starts a gateway, whose server is not known yet.
func newGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{}
	g.Server = httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
			g.mu.Lock()
			defer g.mu.Unlock()
			r.SetURL(g.to)
			r.Out.Host = r.In.Host
		},
		ModifyResponse: g.watch,
	})
	t.Cleanup(g.Close)
	return g
}

// watch leads people who are signed out elsewhere, and makes it possible to end a stream.
func (g *gateway) watch(res *http.Response) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.signedOut && strings.HasPrefix(res.Request.URL.Path, "/api/") {
		res.StatusCode, res.Header = http.StatusFound, http.Header{"Location": {"https://login.example.org/"}}
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return nil
	}
	from := res.Body
	out, in := io.Pipe()
	go func() {
		_, err := io.Copy(in, from)
		_ = in.CloseWithError(err)
	}()
	res.Body = out
	g.streams++
	g.ends = append(g.ends, func() { _, _ = in.Close(), from.Close() })
	return nil
}

// endStreams ends all streams as a server does, without a broken connection.
func (g *gateway) endStreams() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, end := range g.ends {
		end()
	}
	g.ends = nil
}

func (g *gateway) opened() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.streams
}

// The streams of people whom a proxy names end from time to time. The page opens them again, and nobody sees that. When the
// proxy has signed a person out, the page says so.
func TestStreamsThatEndAreOpenedAgain(t *testing.T) {
	t.Parallel()
	read := make(gate)
	m := newModel(t, map[string]func(*modelCall){
		"Read": func(c *modelCall) { c.await(read); c.write("412 boxes.") }, "Write": says("412 boxes were sold."), "Check": says("They agree."),
	})
	g := newGateway(t)
	s := newFolder(t, map[string]string{"team.yaml": spring}).serve(t, m.env(), "--public-url", g.URL, "team.yaml")
	at := regexp.MustCompile(`listening at (\S+)`).FindStringSubmatch(s.output())
	require.NotNil(t, at, s.output())
	to, err := url.Parse("http://" + at[1])
	require.NoError(t, err)
	g.mu.Lock()
	g.to = to
	g.mu.Unlock()
	p := s.open(t, wide, "#/runs")
	startRun(p)
	p.until(`document.querySelector(".node.n-in_progress")`)
	p.showsIn(".summary .live", "live")
	require.Eventually(t, func() bool { return g.opened() == 2 }, patience, 10*time.Millisecond, "the events, and what models write")
	p.do(`(() => {
		window.words = [];
		new MutationObserver(() => words.push(document.querySelector(".summary .live")?.textContent)).observe(document.body, { subtree: true, childList: true, characterData: true });
	})()`)
	g.endStreams()
	require.Eventually(t, func() bool { return g.opened() == 4 }, patience, 10*time.Millisecond)
	p.showsIn(".summary .live", "live")
	require.Empty(t, eval[[]string](p, `words.filter((w) => w && w !== "live")`), "nobody sees that streams are opened again")
	close(read)
	p.showsIn(".summary .status", "ok")
	p.click(".tabs a", "Events")
	p.until(`[...document.querySelectorAll(".ev-row")].filter((e) => e.textContent.includes("run start")).length === 1`, "no event comes twice")

	g.mu.Lock()
	g.signedOut = true
	g.mu.Unlock()
	p.visit("#/runs")
	p.shows("you are signed out")
	p.shows("reload this page to sign in again")
}
