package browser

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALinkWorksOnce(t *testing.T) {
	t.Parallel()
	f := newFolder(t, map[string]string{"team.yaml": spring})
	s := f.serve(t, nil, "team.yaml")
	link := s.links[0]
	first := blankTab(t, wide)
	first.login(s)
	first.shows("No runs yet")
	require.NotContains(t, eval[string](first, `location.href`), "key=")
	require.Empty(t, eval[string](first, `document.cookie`), "no script can read the cookie")

	second := blankTab(t, wide)
	second.allow("status of 403", "status of 401")
	second.navigate(link)
	second.shows("press Enter where runteam serve runs")
	second.navigate(s.url + "/")
	require.NotContains(t, second.text("body"), "Runs")

	// The browser that is in stays in, also in a second tab.
	first.reload()
	first.shows("No runs yet")
	first.beside(wide, "#/runs").shows("No runs yet")
}

func TestALostConnectionIsFoundAgain(t *testing.T) {
	t.Parallel()
	read := make(gate)
	m := newModel(t, map[string]func(*modelCall){
		"Read":  func(c *modelCall) { c.await(read); c.write("412 boxes.") },
		"Write": says("412 boxes were sold."), "Check": says("They agree."),
	})
	f := newFolder(t, map[string]string{"team.yaml": spring})
	s := f.serve(t, m.env(), "team.yaml")
	// The run works in a process of its own; the server only watches.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	running := f.command(ctx, "run", "team.yaml")
	running.Env = append(running.Env, m.env()...)
	require.NoError(t, running.Start())
	p := s.open(t, wide, "#/runs")
	p.allow("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "status of 401", "status of 404", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE")
	p.click("td a", "spring")
	p.until(`document.querySelector(".node.n-in_progress")`)

	// A reload comes back to the same place.
	p.click(".node .title", "Read")
	p.showsIn(".panel h2", "Read")
	p.reload()
	p.until(`document.querySelector(".panel h2")?.textContent === "Read" && document.querySelector(".node.n-in_progress")`)

	// Another tab sees the same.
	q := p.beside(wide, "#/runs")
	q.allow("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "status of 401", "status of 404", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE")
	q.showsIn(".live-row", "spring")

	s.stop()
	p.showsIn(".summary .live", "reconnecting")
	require.True(t, eval[bool](p, `document.querySelector(".node.n-in_progress") !== null`), "what was known stays")
	close(read)
	require.NoError(t, running.Wait())

	// A server at the same address takes the session of the one before: both tabs come back by themselves.
	at, err := url.Parse(s.url)
	require.NoError(t, err)
	f.serve(t, nil, "--listen", at.Host)
	p.until(`document.querySelectorAll(".node.n-completed").length === 3`)
	q.showsIn("tr", "ok")
}

// After a sleep, a connection may be gone without an error. The page opens it again where it was.
func TestASilentConnectionIsOpenedAgain(t *testing.T) {
	t.Parallel()
	read := make(gate)
	m := newModel(t, map[string]func(*modelCall){
		"Read": func(c *modelCall) { c.await(read); c.write("412 boxes.") }, "Write": says("412 boxes were sold."), "Check": says("They agree."),
	})
	f := newFolder(t, map[string]string{"team.yaml": spring})
	s := f.serve(t, m.env(), "team.yaml")
	p := s.open(t, wide, "#/runs")
	startRun(p)
	p.until(`document.querySelector(".node.n-in_progress")`)
	p.until(`!document.querySelector(".stat-withheld").textContent.includes("…")`, "it has events; the node may be from the document")
	// Seconds are minutes until it is opened again. After a single jump of the clock, an event would be as new as before.
	p.do(`(() => {
		const { fetch } = window, now = Date.now, start = now();
		window.opened = [];
		window.fetch = (path, init) => {
			const from = path + " " + init.headers["Last-Event-ID"];
			opened.push(from);
			if (/\/events [1-9]/.test(from)) Date.now = now;
			return fetch(path, init);
		};
		Date.now = () => start + 60 * (now() - start);
	})()`)
	p.until(`opened.some((x) => /\/events [1-9]/.test(x))`, "after the last event that it has")
	p.showsIn(".summary .live", "live")
	close(read)
	p.showsIn(".summary .status", "ok")
	p.click(".tabs a", "Events")
	p.until(`[...document.querySelectorAll(".ev-row")].filter((e) => e.textContent.includes("run start")).length === 1`, "no event comes twice")
}

func TestAnExportOpensFromAFile(t *testing.T) {
	t.Parallel()
	c := theClaims(t)
	f := folder(filepath.Join(scratch, "claims"))
	path := filepath.Join(t.TempDir(), "run.html")
	f.run(t, "export", c.run.RunID, "--html", path)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(3<<20))

	p := blankTab(t, wide)
	p.navigate("file://" + path)
	p.until(`document.querySelectorAll(".node:not(.k-input)").length === 11`)
	p.showsIn(".stat-withheld", "marked at each task")
	p.click(".node .title", "Letter to the customer")
	p.until(`[...document.querySelectorAll(".panel .tv-row")].some((e) => e.textContent.includes("Letter to the customer"))`)
	p.until(`document.querySelectorAll(".panel .source").length > 3`)
	require.NotContains(t, p.text("body"), "IE29", "an account is redacted, although the user may see it")
	p.click(".panel .subtabs button", "Handoffs")
	p.showsIn(".handoff", "handler")
	p.click(".source-links button, .handoff summary", "handler")
	p.showsIn(".decision", "handler→letters")
	p.click(".tabs a", "Flow")
	p.until(`document.querySelector("table.matrix")`)
	p.shows("never reaches letters")
	for _, view := range []string{"Timeline", "Tasks", "Answer", "Policy", "Events", "Compare"} {
		p.click(".tabs a", view)
		p.settle()
		if view != "Policy" { // not in a file yet
			require.Empty(t, p.text(".failure"), view)
		}
	}
	require.Empty(t, eval[[]string](p, `performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith("data:") && !n.startsWith("blob:"))`), "it loads nothing")
}
