package browser

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// claims is a server of a finished run of examples/claims, which all tests that only look share.
type claims struct {
	*server
	run     shownRun
	session context.Context //nolint:containedctx // the browser that was let in
}

var (
	claimsOnce   sync.Once
	sharedClaims *claims
)

// theClaims returns the shared server.
func theClaims(t testing.TB) *claims {
	t.Helper()
	in := browser(t)
	claimsOnce.Do(func() {
		dir := filepath.Join(scratch, "claims")
		require.NoError(t, os.CopyFS(dir, os.DirFS("../examples/claims")))
		f := folder(dir)
		f.run(t, "run", "team.yaml", "--offline")
		s := f.start(t, nil)
		closing = append(closing, s.stop)
		session, cancel := chromedp.NewContext(in, chromedp.WithNewBrowserContext())
		closing = append(closing, cancel)
		require.NoError(t, chromedp.Do(session, chromedp.Navigate(s.link(t)), chromedp.WaitVisible(chromedp.CSS("header.top"))))
		sharedClaims = &claims{server: s, run: s.newest(t), session: session}
	})
	require.NotNil(t, sharedClaims, "the run of the example failed")
	return sharedClaims
}

// look opens a tab with a view of the run; an empty one is the graph.
func (c *claims) look(t testing.TB, l look, view string) *tab {
	t.Helper()
	p := tabIn(t, c.session, l)
	p.base = c.url
	p.navigate(c.url + "/#/runs/" + c.run.RunID + view)
	p.settle()
	return p
}

// task returns the view of a task.
func (c *claims) task(t testing.TB, title string) string {
	t.Helper()
	return "/tasks/" + c.run.taskID(t, title)
}
