package inspector_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/inspector"
)

const public = "https://runs.example.org"

// behind returns an inspector behind a proxy that names people, one of whom is gone.
func behind(t *testing.T, f *fake, change func(*inspector.Proxy)) http.Handler {
	t.Helper()
	u, err := url.Parse(public)
	require.NoError(t, err)
	p := &inspector.Proxy{Peers: []netip.Prefix{netip.MustParsePrefix("10.0.0.7/32")}, UserHeader: "X-Forwarded-User", GroupsHeader: "X-Forwarded-Groups", Name: func(name string) (string, error) {
		if strings.Contains(name, " ") {
			return "", errors.New("a name has no spaces")
		}
		return strings.ToLower(name), nil
	}}
	if change != nil {
		change(p)
	}
	offer := inspector.Offer{Documents: inspector.Documents{Runs: f}, Steerer: f, Watcher: quiet{f}, Streams: quiet{f}}
	return inspector.New(inspector.Options{
		Access: inspector.Access{Tokens: func(token string) (inspector.Sender, bool) { return inspector.Sender{Person: "ci"}, token == "of-ci" }, Proxy: p, Public: u},
		Page:   fstest.MapFS{"index.html": {Data: []byte("<p>")}}, Offer: offer,
		For: func(s inspector.Sender) (*inspector.Offer, error) {
			if s.Person == "gone" {
				return nil, &inspector.Error{Code: inspector.Forbidden, Message: "gone has no role"}
			}
			own := offer
			own.Viewer.By = s.Person + strings.Join(s.Groups, "+")
			return &own, nil
		},
	})
}

// send sends a request to a handler from an address, with headers "Name: value".
func send(t *testing.T, h http.Handler, from, method, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	r.RemoteAddr, r.Host = from, "runs.example.org"
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			r.Host = value
		} else {
			r.Header.Add(name, value)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const (
	proxy   = "10.0.0.7:4711"
	viewer  = inspector.API + "/viewer"
	pause   = inspector.API + "/runs/r/pause"
	ann     = "X-Forwarded-User: Ann"
	origin  = "Origin: " + public
	fromApp = "X-Runteam: 1"
)

func TestAProxyNamesPeople(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, from, method, path string
		headers                  []string
		status                   int
		says                     string
	}{
		{"a person", proxy, "GET", viewer, []string{ann}, 200, `"by":"ann"`},
		{"whatever the proxy calls the server", proxy, "GET", viewer, []string{ann, "Host: runteam:7337"}, 200, `"by":"ann"`},
		{"with groups", proxy, "GET", viewer, []string{ann, "X-Forwarded-Groups: a, b,,a"}, 200, `"by":"anna+b"`},
		{"with groups of the browser, too", proxy, "GET", viewer, []string{ann, "X-Forwarded-Groups: admins", "X-Forwarded-Groups: a"}, 403, "2 headers X-Forwarded-Groups"},
		{"a name with white space of another kind", proxy, "GET", viewer, []string{ann + "\u00a0"}, 200, "\"by\":\"ann\u00a0\""},
		{"a group with white space of another kind", proxy, "GET", viewer, []string{ann, "X-Forwarded-Groups: \u2003a, b\u3000"}, 200, "\"by\":\"ann\u2003a+b\u3000\""},
		{"over IPv6 mapped", "[::ffff:10.0.0.7]:1", "GET", viewer, []string{ann}, 200, `"by":"ann"`},
		{"a forged header", "10.0.0.8:1", "GET", viewer, []string{ann}, 403, "its proxy alone, which does not have the address 10.0.0.8:1"},
		{"no address", "@", "GET", viewer, []string{ann}, 403, "its proxy alone"},
		{"a token from elsewhere", "10.0.0.8:1", "GET", viewer, []string{"Authorization: Bearer of-ci"}, 403, "its proxy alone"},
		{"nobody", proxy, "GET", viewer, nil, 401, "named nobody in the header X-Forwarded-User"},
		{"nobody, in a browser", proxy, "GET", "/", nil, 401, "Sign in first"},
		{"an empty name", proxy, "GET", viewer, []string{"X-Forwarded-User: "}, 401, "no valid token"},
		{"two names", proxy, "GET", viewer, []string{ann, "X-Forwarded-User: bob"}, 403, "2 headers X-Forwarded-User"},
		{"two names, one empty", proxy, "GET", viewer, []string{ann, "X-Forwarded-User: "}, 403, "have the proxy replace the X-Forwarded-User that it gets"},
		{"no name", proxy, "GET", viewer, []string{"X-Forwarded-User: a b"}, 403, "a name has no spaces"},
		{"a person without a role", proxy, "GET", viewer, []string{"X-Forwarded-User: gone"}, 403, "has no role"},
		{"a page for nobody", proxy, "GET", "/", []string{"X-Forwarded-User: gone"}, 403, "gone has no role."},
		{"a token", proxy, "GET", viewer, []string{"Authorization: Bearer of-ci"}, 200, `"by":"ci"`},
		{"the token of another system", proxy, "GET", viewer, []string{ann, "Authorization: Bearer id-token"}, 200, `"by":"ann"`},
		{"a cookie", proxy, "GET", viewer, []string{"Cookie: __Host-runteam=x.y"}, 401, "no valid token"},
		{"a link", proxy, "GET", "/login?key=x", []string{ann}, 404, "nothing at this path"},
		{"a command of the page", proxy, "POST", pause, []string{ann, origin, fromApp}, 200, `"by":"ann"`},
		{"without an origin", proxy, "POST", pause, []string{ann, fromApp}, 403, "send the header Origin: " + public},
		{"from another origin", proxy, "POST", pause, []string{ann, fromApp, "Origin: https://evil.example"}, 403, `its Origin is \"https://evil.example\", and the address of this server ` + public},
		{"from the address of the server", proxy, "POST", pause, []string{ann, fromApp, "Origin: https://runteam:7337", "Host: runteam:7337"}, 403, "another site"},
		{"from two origins", proxy, "POST", pause, []string{ann, fromApp, origin, "Origin: https://evil.example"}, 403, "another site"},
		{"from another site", proxy, "POST", pause, []string{ann, origin, fromApp, "Sec-Fetch-Site: cross-site"}, 403, "another site"},
		{"of a form", proxy, "POST", pause, []string{ann, origin}, 403, "X-Runteam: 1"},
		{"a read from another origin", proxy, "GET", viewer, []string{ann, "Origin: https://evil.example"}, 403, "another site"},
		{"a sign-out, which is for the proxy", proxy, "POST", inspector.API + "/sign-out", []string{ann, origin, fromApp}, 200, `"signedOut":false`},
		{"a command with a token", proxy, "POST", pause, []string{"Authorization: Bearer of-ci"}, 200, `"by":"ci"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := send(t, behind(t, &fake{}, nil), c.from, c.method, c.path, c.headers...)
			require.Equal(t, c.status, w.Code, w.Body)
			require.Contains(t, w.Body.String(), c.says)
		})
	}
}

func TestAProxyMayNeedASecret(t *testing.T) {
	t.Parallel()
	h := behind(t, &fake{}, func(p *inspector.Proxy) { p.Secret = "opensesame" })
	for _, c := range []struct {
		headers []string
		status  int
	}{
		{[]string{ann, inspector.SecretHeader + ": opensesame"}, 200},
		{[]string{ann}, 403},
		{[]string{ann, inspector.SecretHeader + ": "}, 403},
		{[]string{ann, inspector.SecretHeader + ": opensesam"}, 403},
		{[]string{ann, inspector.SecretHeader + ": opensesame", inspector.SecretHeader + ": x"}, 403},
	} {
		require.Equal(t, c.status, send(t, h, proxy, "GET", viewer, c.headers...).Code, c.headers)
	}
	require.Contains(t, send(t, h, proxy, "GET", viewer, ann).Body.String(), "have it send the secret in the header "+inspector.SecretHeader)
	require.Equal(t, 403, send(t, h, "10.0.0.8:1", "GET", viewer, ann, inspector.SecretHeader+": opensesame").Code, "the secret alone is not enough")
	socket := behind(t, &fake{}, func(p *inspector.Proxy) { p.Peers = nil })
	require.Equal(t, 200, send(t, socket, "@", "GET", viewer, ann).Code, "over a socket")
}

func TestHealthNeedsNoToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		drain, looks := make(chan struct{}), 0
		var away error
		h := inspector.New(inspector.Options{Ready: func(context.Context) error { looks++; return away }, Drain: drain})
		says := func(path string, status int, text string) {
			t.Helper()
			w := send(t, h, "192.0.2.1:1", "GET", path, "Host: 10.1.2.3:7337")
			require.Equal(t, status, w.Code)
			require.Equal(t, text, w.Body.String())
		}
		says("/healthz", 200, "ok\n")
		for range 10 {
			says("/readyz", 200, "ok\n")
		}
		require.Equal(t, 1, looks, "strangers cannot load the journal")
		away = errors.New("the password of the database is hunter2")
		time.Sleep(2 * time.Second)
		says("/readyz", 503, "not ready\n")
		says("/healthz", 200, "ok\n")
		away = nil
		time.Sleep(2 * time.Second)
		says("/readyz", 200, "ok\n")
		close(drain)
		says("/readyz", 503, "not ready\n")
		says("/healthz", 200, "ok\n")
		require.Equal(t, 403, send(t, h, "192.0.2.1:1", "GET", "/healthz/x").Code)
		require.Equal(t, 403, send(t, h, "192.0.2.1:1", "POST", "/healthz").Code)
	})
}

// A door is an inspector whose people sign in with tokens.
func door(t *testing.T, logins *inspector.Logins, now func() time.Time) http.Handler {
	t.Helper()
	u, err := url.Parse(public)
	require.NoError(t, err)
	logins.Now = now
	return inspector.New(inspector.Options{
		Access: inspector.Access{Logins: logins, Public: u, Hosts: inspector.Hosts{Names: []string{"127.0.0.1"}, Port: "7337"}, Tokens: func(token string) (inspector.Sender, bool) {
			return inspector.Sender{Person: "ann", Token: "t1", Until: now().Add(time.Hour)}, token == "of-ann"
		}},
		Page:  fstest.MapFS{"index.html": {Data: []byte("<p>the page")}},
		Offer: inspector.Offer{Watcher: quiet{}},
		For: func(s inspector.Sender) (*inspector.Offer, error) {
			return &inspector.Offer{Viewer: inspector.Viewer{By: s.Person + " by " + s.Token}, Watcher: quiet{}}, nil
		},
	})
}

// signIn posts the form with a token.
func signIn(t *testing.T, h http.Handler, token string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/login", strings.NewReader(url.Values{"token": {token}}.Encode()))
	r.Host = "runs.example.org"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestPeopleSignInWithTokens(t *testing.T) {
	t.Parallel()
	now := time.Now()
	clock := func() time.Time { return now }
	sign := func(said string) string { return "signed with a key " + said }
	h := door(t, &inspector.Logins{NoLinks: true, Sign: sign}, clock)
	form := send(t, h, "192.0.2.1:1", "GET", "/")
	require.Contains(t, form.Body.String(), `<form method="post" action="/login">`)
	require.Equal(t, "same-origin", form.Header().Get("Referrer-Policy"), "or browsers would not say that the form is of this server")
	require.Equal(t, 403, signIn(t, h, "of-ann", "Origin: null").Code)
	require.Equal(t, 403, signIn(t, h, "of-bob", origin).Code)
	require.Equal(t, 403, signIn(t, h, "of-ann", "Origin: https://evil.example").Code)
	w := signIn(t, h, " of-ann\n", origin)
	require.Equal(t, 200, w.Code, w.Body)
	cookie := w.Result().Cookies()[0]
	require.Equal(t, []any{"__Host-runteam", "/", true, true, http.SameSiteStrictMode}, []any{cookie.Name, cookie.Path, cookie.Secure, cookie.HttpOnly, cookie.SameSite})
	with := func(value string) string { return "Cookie: " + cookie.Name + "=" + value }
	require.Contains(t, send(t, h, "192.0.2.1:1", "GET", viewer, with(cookie.Value)).Body.String(), `"by":"ann by t1"`)
	require.Contains(t, send(t, h, "192.0.2.1:1", "GET", "/", with(cookie.Value)).Body.String(), "the page")
	again := door(t, &inspector.Logins{NoLinks: true, Sign: sign}, clock)
	require.Equal(t, 200, send(t, again, "192.0.2.1:1", "GET", viewer, with(cookie.Value)).Code, "after a restart")
	other := door(t, &inspector.Logins{NoLinks: true, Sign: func(said string) string { return "with another key " + said }}, clock)
	require.Equal(t, 401, send(t, other, "192.0.2.1:1", "GET", viewer, with(cookie.Value)).Code, "a cookie of another server")
	unkeyed := door(t, &inspector.Logins{NoLinks: true}, clock)
	require.Equal(t, 401, send(t, unkeyed, "192.0.2.1:1", "GET", viewer, with(cookie.Value)).Code)
	said, signature, _ := strings.Cut(cookie.Value, ".")
	for _, forged := range []string{said, said + ".", "." + signature, said + "x." + signature, said + "." + signature[1:], "x.y", signature + "." + said} {
		require.Equal(t, 401, send(t, h, "192.0.2.1:1", "GET", viewer, with(forged)).Code, forged)
	}
	require.Equal(t, 403, send(t, h, "192.0.2.1:1", "GET", viewer, with(cookie.Value), "Host: evil.example").Code)
	require.Equal(t, 401, send(t, h, "192.0.2.1:1", "GET", viewer, with(cookie.Value), "Host: 127.0.0.1:7337").Code, "the cookie is of the public address")
	now = now.Add(time.Hour + time.Second)
	require.Equal(t, 401, send(t, h, "192.0.2.1:1", "GET", viewer, with(cookie.Value)).Code, "the session ends with its token")
}

// A sign-out ends the session of one browser, for copies of its cookie and open streams too.
func TestASignOutEndsTheSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sign := func(said string) string { return "signed with a key " + said }
		h := door(t, &inspector.Logins{NoLinks: true, Sign: sign}, time.Now)
		session := func() string {
			return "Cookie: __Host-runteam=" + signIn(t, h, "of-ann", origin).Result().Cookies()[0].Value
		}
		mine, other := session(), session()
		answer := func(h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
			return send(t, h, "192.0.2.1:1", method, path, headers...)
		}
		out := inspector.API + "/sign-out"
		require.Contains(t, answer(h, "GET", viewer, mine).Body.String(), `"canSignOut":true`)
		require.Contains(t, answer(h, "GET", viewer, "Authorization: Bearer of-ann").Body.String(), `"canSignOut":false`)
		require.JSONEq(t, `{"signedOut":false}`, answer(h, "POST", out, "Authorization: Bearer of-ann").Body.String())
		require.Equal(t, 403, answer(h, "POST", out, mine, origin).Code, "of a form")
		require.Equal(t, 403, answer(h, "POST", out, mine, fromApp, "Origin: https://evil.example").Code, "of another site")
		require.Equal(t, 405, answer(h, "GET", out, mine).Code, "of a link")
		require.Equal(t, 200, answer(h, "GET", viewer, mine).Code)

		ended := make(chan struct{})
		go func() {
			defer close(ended)
			require.Equal(t, 200, answer(h, "GET", inspector.API+"/runs/r/events", mine, "Accept: text/event-stream").Code)
		}()
		synctest.Wait()
		w := answer(h, "POST", out, mine, fromApp, origin)
		require.JSONEq(t, `{"signedOut":true}`, w.Body.String())
		cookie := w.Result().Cookies()[0]
		require.Equal(t, []any{"__Host-runteam", "", "/", true, true, http.SameSiteStrictMode, -1}, []any{cookie.Name, cookie.Value, cookie.Path, cookie.Secure, cookie.HttpOnly, cookie.SameSite, cookie.MaxAge})
		require.Equal(t, 401, answer(h, "GET", viewer, mine).Code, "a copy of the cookie")
		require.Equal(t, 401, answer(h, "POST", out, mine, fromApp, origin).Code)
		require.Equal(t, 200, answer(h, "GET", viewer, other).Code, "another browser of the same person")
		since := time.Now()
		<-ended
		require.LessOrEqual(t, time.Since(since), 10*time.Second)

		again := door(t, &inspector.Logins{NoLinks: true, Sign: sign}, time.Now)
		require.Equal(t, 200, answer(again, "GET", viewer, mine).Code, "a process with the same key knows nothing of it, as the reference says")
	})
}

// A link of a server that ended still lets its browser in, for a day.
func TestASessionEndsAfterADay(t *testing.T) {
	t.Parallel()
	now := time.Now()
	logins := &inspector.Logins{Sign: func(said string) string { return "x" + said }}
	h := door(t, logins, func() time.Time { return now })
	link := "/login?key=" + logins.NewKey()
	require.Equal(t, 403, send(t, h, "192.0.2.1:1", "HEAD", link, "Host: 127.0.0.1:7337").Code, "it does not use up the link")
	w := send(t, h, "192.0.2.1:1", "GET", link, "Host: 127.0.0.1:7337")
	cookie := w.Result().Cookies()[0]
	require.Equal(t, "runteam", cookie.Name)
	require.False(t, cookie.Secure)
	read := func() int {
		return send(t, h, "192.0.2.1:1", "GET", viewer, "Host: 127.0.0.1:7337", "Cookie: runteam="+cookie.Value).Code
	}
	require.Equal(t, 200, read())
	now = now.Add(24*time.Hour - time.Second)
	require.Equal(t, 200, read())
	now = now.Add(2 * time.Second)
	require.Equal(t, 401, read())
	require.Equal(t, 403, signIn(t, h, "of-ann", origin).Code, "this server has links, and no form")
}

// quiet is a run in which nothing happens.
type quiet struct{ *fake }

func (quiet) Watch(ctx context.Context, _ string, _ int, _ bool) iter.Seq2[[]inspector.Event, error] {
	return func(yield func([]inspector.Event, error) bool) {
		yield(nil, nil)
		<-ctx.Done()
	}
}

func (quiet) Subscribe(context.Context, string) (inspector.Subscription, error) { return quiet{}, nil }
func (quiet) Close()                                                            {}
func (quiet) Next(ctx context.Context) ([]event.Delta, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// large is a run with one large event.
type large struct{ *fake }

func (large) Watch(context.Context, string, int, bool) iter.Seq2[[]inspector.Event, error] {
	return func(yield func([]inspector.Event, error) bool) {
		yield([]inspector.Event{{Position: 1, Type: event.RunStart, Data: []byte(`"` + strings.Repeat("x", 8<<20) + `"`)}}, nil)
	}
}

// A slow client takes ten seconds for each piece.
type slow struct{ *httptest.ResponseRecorder }

func (s slow) Write(text []byte) (int, error) {
	time.Sleep(10 * time.Second)
	return s.ResponseRecorder.Write(text)
}

// Who reads slowly does not read on for long after they have lost their role.
func TestSlowClientsLoseTheirRole(t *testing.T) {
	t.Parallel()
	for _, accept := range []string{"text/event-stream", "application/json"} {
		t.Run(accept, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				lost := time.Now().Add(15 * time.Second)
				h := inspector.New(inspector.Options{
					Access: inspector.Access{Hosts: inspector.Hosts{Names: []string{"localhost"}, Port: "80"}, Tokens: func(string) (inspector.Sender, bool) { return inspector.Sender{Person: "ann"}, true }},
					Offer:  inspector.Offer{Watcher: large{}},
					For: func(inspector.Sender) (*inspector.Offer, error) {
						if time.Now().After(lost) {
							return nil, errors.New("no role")
						}
						return &inspector.Offer{Watcher: large{}}, nil
					},
				})
				r := httptest.NewRequestWithContext(t.Context(), "GET", inspector.API+"/runs/r/events", nil)
				r.Host = "localhost"
				r.Header.Set("Authorization", "Bearer x")
				r.Header.Set("Accept", accept)
				w := slow{httptest.NewRecorder()}
				func() {
					defer func() {
						if accept == "application/json" {
							require.Equal(t, http.ErrAbortHandler, recover(), "the document is not complete")
						}
					}()
					h.ServeHTTP(w, r)
				}()
				require.NotZero(t, w.Body.Len())
				require.Less(t, time.Since(lost), time.Minute)
			})
		})
	}
}

func TestStreamsEndWithTheRole(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/runs/r/events", "/runs/r/stream"} {
		for name, change := range map[string]func(*inspector.Offer) error{
			"revoked": func(*inspector.Offer) error { return errors.New("no role") },
			"changed": func(o *inspector.Offer) error { o.Grants = "less"; return nil },
			"kept":    func(*inspector.Offer) error { return nil },
			"expired": nil,
		} {
			t.Run(name+path, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var mu sync.Mutex
					now, began := func(*inspector.Offer) error { return nil }, time.Now()
					h := inspector.New(inspector.Options{
						Access: inspector.Access{Hosts: inspector.Hosts{Names: []string{"localhost"}, Port: "80"}, Tokens: func(string) (inspector.Sender, bool) {
							s := inspector.Sender{Person: "ann"}
							if change == nil {
								s.Until = began.Add(25 * time.Second)
							}
							return s, true
						}},
						Offer: inspector.Offer{Watcher: quiet{}, Streams: quiet{}},
						For: func(inspector.Sender) (*inspector.Offer, error) {
							mu.Lock()
							defer mu.Unlock()
							o := &inspector.Offer{Watcher: quiet{}, Streams: quiet{}}
							return o, now(o)
						},
					})
					ctx, stop := context.WithCancel(t.Context())
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						r := httptest.NewRequestWithContext(ctx, "GET", inspector.API+path, nil)
						r.Host = "localhost"
						r.Header.Set("Authorization", "Bearer x")
						r.Header.Set("Accept", "text/event-stream")
						w := httptest.NewRecorder()
						h.ServeHTTP(w, r)
						require.Equal(t, 200, w.Code)
					}()
					time.Sleep(15 * time.Second)
					if change != nil {
						mu.Lock()
						now = change
						mu.Unlock()
					}
					since := time.Now()
					if name == "kept" {
						time.Sleep(10 * time.Minute)
						stop()
					}
					<-ended
					stop()
					if name != "kept" {
						require.LessOrEqual(t, time.Since(since), time.Minute)
					}
				})
			})
		}
	}
}

// Only the next request says in which groups a person still is, so a client has to open its stream again. The file of roles
// has the token of a program, whose stream goes on.
func TestStreamsBehindAProxyEndSoon(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/runs/r/events", "/runs/r/stream"} {
		for credential, isPerson := range map[string]bool{ann: true, "Authorization: Bearer of-ci": false} {
			t.Run(credential+path, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
					defer stop()
					r := httptest.NewRequestWithContext(ctx, "GET", inspector.API+path, nil)
					name, value, _ := strings.Cut(credential, ": ")
					r.RemoteAddr, r.Header = proxy, http.Header{name: {value}, "Accept": {"text/event-stream"}}
					w, began := httptest.NewRecorder(), time.Now()
					behind(t, &fake{}, nil).ServeHTTP(w, r)
					require.Equal(t, 200, w.Code)
					require.NotContains(t, w.Body.String(), "event:", "a client connects again after a stream without an end")
					require.Equal(t, isPerson, time.Since(began) < time.Minute)
					require.Equal(t, isPerson, ctx.Err() == nil)
				})
			})
		}
	}
}

// A server with a certificate is reached over TLS alone, and its limits of connections hold.
func TestServeOverTLS(t *testing.T) {
	t.Parallel()
	cert := httptest.NewUnstartedServer(nil)
	cert.StartTLS()
	defer cert.Close()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h := inspector.New(inspector.Options{Access: inspector.Access{Tokens: inspector.OneToken(token, ""), Hosts: inspector.HostsOf(l.Addr())}, Offer: inspector.Offer{Steerer: &fake{}}})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- inspector.Serve(ctx, l, &tls.Config{Certificates: cert.TLS.Certificates, MinVersion: tls.VersionTLS12}, h)
	}()
	roots := x509.NewCertPool()
	roots.AddCert(cert.Certificate())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	client := &http.Client{Transport: transport}
	get := func(method, path string, headers ...string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, "https://"+l.Addr().String()+path, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		for _, header := range headers {
			name, value, _ := strings.Cut(header, ": ")
			r.Header.Set(name, value)
		}
		res, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return res
	}
	res := get("GET", viewer)
	require.Equal(t, []any{200, 2}, []any{res.StatusCode, res.ProtoMajor})
	require.Equal(t, 200, get("POST", pause, "Origin: https://"+l.Addr().String()).StatusCode)
	require.Equal(t, 403, get("POST", pause, "Origin: http://"+l.Addr().String()).StatusCode)
	plain, err := http.Get("http://" + l.Addr().String() + viewer) //nolint:noctx // a test
	require.NoError(t, err)
	require.NoError(t, plain.Body.Close())
	require.Equal(t, 400, plain.StatusCode)
	transport.CloseIdleConnections()
	http.DefaultClient.CloseIdleConnections()
	stop()
	require.NoError(t, <-done)
}
