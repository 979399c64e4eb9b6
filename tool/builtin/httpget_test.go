package builtin_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/tool"
	"github.com/runteam/runteam/tool/builtin"
)

// get reads a page with http_get.
func get(t *testing.T, origins []string, url string) (string, error) {
	t.Helper()
	f, err := builtin.HTTPGet(origins, tool.Options{Effect: tool.None})
	require.NoError(t, err)
	require.Equal(t, tool.External, f.Effect)
	raw, err := json.Marshal(map[string]string{"url": url})
	require.NoError(t, err)
	r, err := f.Run(t.Context(), tool.Call{Arguments: raw})
	return r.Text, err
}

func TestHTTPGet(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("canary")) }))
	defer other.Close()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Write([]byte("<p>hello"))
		case "/moved":
			http.Redirect(w, r, "/page", http.StatusFound)
		case "/away":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/image":
			w.Header().Set("Content-Type", "image/png")
		case "/flood":
			w.Header().Set("Content-Type", "text/plain")
			for range 5 {
				w.Write([]byte(strings.Repeat("x", 1<<20)))
			}
		case "/latin1":
			w.Header().Set("Content-Type", "text/plain")
			w.Write([]byte("caf\xe9"))
		default:
			http.NotFound(w, r)
		}
	}))
	defer web.Close()
	for _, tt := range []struct{ path, want, err string }{
		{"/page", "<p>hello", ""},
		{"/moved", "<p>hello", ""},
		{"/away", "", "is not allowed"},
		{"/loop", "", "too many redirects"},
		{"/none", "", "the server answered 404 Not Found"},
		{"/image", "", "the page is image/png"},
		{"/flood", "", "larger than 4 MiB"},
		{"/latin1", "", "not in UTF-8"},
	} {
		got, err := get(t, []string{web.URL}, web.URL+tt.path)
		if tt.err != "" {
			require.ErrorContains(t, err, tt.err, tt.path)
			continue
		}
		require.NoError(t, err, tt.path)
		require.Equal(t, tt.want, got)
	}
	for _, url := range []string{other.URL, "http://user@" + strings.TrimPrefix(web.URL, "http://"), "https" + strings.TrimPrefix(web.URL, "http"), "file:///etc/passwd", "://"} {
		_, err := get(t, []string{web.URL}, url)
		require.Error(t, err, url)
	}
}

// A name that leads to this machine does not reach its services.
func TestHTTPGetRefusesPrivateAddresses(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("canary")) }))
	defer web.Close()
	named := strings.Replace(web.URL, "127.0.0.1", "localhost", 1)
	got, err := get(t, []string{named}, named)
	require.ErrorContains(t, err, "private address")
	require.Empty(t, got)
}

func TestHTTPGetOrigins(t *testing.T) {
	t.Parallel()
	for _, origin := range []string{"", "example.com", "ftp://example.com", "https://example.com/path", "https://user@example.com", "https://example.com?x=1"} {
		_, err := builtin.HTTPGet([]string{origin}, tool.Options{})
		require.ErrorContains(t, err, "is no origin", origin)
	}
}
