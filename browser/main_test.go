package browser

import (
	"cmp"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the screenshots of the documents")

// runteam is the path of the command under test.
var runteam string

// scratch is a folder for what all tests share.
var scratch string

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "browser")
	if err != nil {
		panic(err)
	}
	scratch, runteam = dir, filepath.Join(dir, "runteam")
	build := exec.Command("go", "build", "-o", runteam, "./cmd/runteam")
	build.Dir, build.Stderr = "..", os.Stderr
	status := 1
	if err := build.Run(); err == nil {
		status = m.Run()
	}
	stopAll()
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// closing are the functions that end what all tests share.
var closing []func()

func stopAll() {
	for _, stop := range closing {
		stop()
	}
}

// must reports whether a missing program is a failure.
func must() bool { return os.Getenv("CI") == "true" || os.Getenv("RUNTEAM_BROWSER") == "1" }

// missing skips a test that needs a program, or fails it where the program must be there.
func missing(t testing.TB, what string) {
	t.Helper()
	if must() {
		t.Fatal(what)
	}
	t.Skip(what + " (RUNTEAM_BROWSER=1 makes this a failure)")
}

// chromium returns the path of the browser.
func chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	missing(t, "no Chromium on this computer: install it, with `apt-get install chromium` on Debian")
	return ""
}

// started starts the browser that all tests share.
var started = sync.OnceValues(func() (context.Context, error) {
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(cmp.Or(browserPath, "chromium")), chromedp.NoSandbox, chromedp.WindowSize(1440, 900),
		chromedp.Flag("disable-quic", true), chromedp.Flag("force-device-scale-factor", "1"), chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("font-render-hinting", "none"), chromedp.Flag("lang", "en-US"),
	}
	ctx, cancel := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(options...))
	closing = append(closing, cancel)
	return ctx, chromedp.Do(ctx)
})

var browserPath string

// browser returns the context of the browser, or skips the test if there is none.
func browser(t testing.TB) context.Context {
	t.Helper()
	path := chromium(t)
	pathOnce.Do(func() { browserPath = path })
	ctx, err := started()
	require.NoError(t, err)
	return ctx
}

var pathOnce sync.Once
