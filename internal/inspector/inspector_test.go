package inspector_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/steer"
)

const token = "token-of-a-program"

// A fake has one run, r, and says what is asked of it.
type fake struct {
	inspector.Fanout
	steered []steer.Command
	fail    error
	events  func(yield func([]inspector.Event, error) bool)
}

func (f *fake) Session(context.Context, string) (any, error)          { return "session", f.fail }
func (f *fake) Filters() []string                                     { return []string{"search"} }
func (f *fake) List(_ context.Context, p inspector.Page) (any, error) { return p, f.fail }
func (f *fake) Run(_ context.Context, run string) (any, error) {
	return map[string]string{"run": run}, f.fail
}
func (f *fake) Task(_ context.Context, run, task string) (any, error) {
	return map[string]string{"run": run, "task": task}, f.fail
}
func (f *fake) Usage(context.Context, string) (any, error) { return "usage", f.fail }
func (f *fake) Blocks(_ context.Context, _, task string) (any, error) {
	return "blocks " + task, f.fail
}
func (f *fake) Artifacts(context.Context, string) (any, error) { return "artifacts", f.fail }

func (f *fake) Steer(_ context.Context, _ string, c steer.Command) (inspector.Taken, error) {
	f.steered = append(f.steered, c)
	return inspector.Taken{Command: c.Kind, By: c.By}, f.fail
}

func (f *fake) Answer(_ context.Context, _, _ string, a inspector.Answer) (bool, error) {
	return a.Text == "taken", f.fail
}

func (f *fake) Watch(context.Context, string, int, bool) iter.Seq2[[]inspector.Event, error] {
	return f.events
}

func (f *fake) Rules(_ context.Context, _, policy string) (any, string, error) {
	return "rules" + policy, "d1", f.fail
}
func (f *fake) Pair(_ context.Context, run, from, to string) (any, error) {
	return run + from + to, f.fail
}
func (f *fake) Replace(_ context.Context, _, digest string, p inspector.Policy) (string, error) {
	return digest + string(p.Policy) + p.By, f.fail
}

// A site is an inspector that serves, with its address.
type site struct {
	t      *testing.T
	addr   string
	logins *inspector.Logins
	client *http.Client
}

// serve serves an inspector of a fake until the test ends.
func serve(t *testing.T, f *fake, change func(*inspector.Options)) *site {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &site{t: t, addr: l.Addr().String(), logins: &inspector.Logins{}}
	o := inspector.Options{
		Access: inspector.Access{Tokens: inspector.OneToken(token, ""), Logins: s.logins, Hosts: inspector.HostsOf(l.Addr())},
		Page:   fstest.MapFS{"index.html": {Data: []byte("<p>")}, "app.js": {Data: []byte("1")}},
		Offer:  inspector.Offer{Viewer: inspector.Viewer{By: "ann"}, Documents: inspector.Documents{Runs: f}, Watcher: f, Steerer: f, Answerer: f, Governor: f},
	}
	if change != nil {
		change(&o)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- inspector.Serve(ctx, l, nil, inspector.New(o)) }()
	transport := &http.Transport{}
	s.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
		transport.CloseIdleConnections()
	})
	return s
}

// An answer is what a request got.
type answer struct {
	status int
	body   string
	header http.Header
}

// code returns the code of an error.
func (a answer) code(t *testing.T) string {
	var e struct{ Error struct{ Code string } }
	require.NoError(t, json.Unmarshal([]byte(a.body), &e), a.body)
	return e.Error.Code
}

// request sends a request as a program, changed by headers "Name: value"; an empty value removes one.
func (s *site) request(method, path, body string, headers ...string) answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.addr+path, strings.NewReader(body))
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		switch {
		case name == "Host":
			r.Host = value
		case value == "":
			r.Header.Del(name)
		default:
			r.Header.Set(name, value)
		}
	}
	got, err := s.client.Do(r)
	require.NoError(s.t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	require.NoError(s.t, err)
	return answer{got.StatusCode, string(text), got.Header}
}

func TestWhoMayAsk(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{}, nil)
	_, port, _ := net.SplitHostPort(s.addr)
	tests := []struct {
		name    string
		path    string
		headers []string
		want    int
	}{
		{"a program", "/api/v1/runs", nil, 200},
		{"localhost", "/api/v1/runs", []string{"Host: localhost:" + port}, 200},
		{"nobody", "/api/v1/runs", []string{"Authorization: "}, 401},
		{"another token", "/api/v1/runs", []string{"Authorization: Bearer x"}, 401},
		{"an empty token", "/api/v1/runs", []string{"Authorization: Bearer "}, 401},
		{"another scheme", "/api/v1/runs", []string{"Authorization: Basic " + token}, 401},
		{"a token in the path", "/api/v1/runs?token=" + token, []string{"Authorization: "}, 401},
		{"a rebound name", "/api/v1/runs", []string{"Host: evil.example:" + port}, 403},
		{"another port", "/api/v1/runs", []string{"Host: 127.0.0.1:1"}, 403},
		{"another address", "/api/v1/runs", []string{"Host: 192.0.2.1:" + port}, 403},
		{"no port", "/api/v1/runs", []string{"Host: localhost"}, 403},
		{"the same origin", "/api/v1/runs", []string{"Origin: http://" + s.addr, "Sec-Fetch-Site: same-origin"}, 200},
		{"a foreign origin", "/api/v1/runs", []string{"Origin: http://evil.example"}, 403},
		{"another port as origin", "/api/v1/runs", []string{"Origin: http://127.0.0.1:1"}, 403},
		{"no origin", "/api/v1/runs", []string{"Origin: null"}, 403},
		{"another site", "/api/v1/runs", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"the same site", "/api/v1/runs", []string{"Sec-Fetch-Site: same-site"}, 403},
		{"the page without a cookie", "/", []string{"Authorization: "}, 401},
		{"the page with a wrong cookie", "/", []string{"Authorization: ", "Cookie: runteam=x; runteam_" + port + "=x"}, 401},
		{"a link that is none", "/login?key=x", []string{"Authorization: "}, 403},
		{"an empty link", "/login", []string{"Authorization: "}, 403},
		{"a link at a rebound name", "/login?key=x", []string{"Host: evil.example:" + port}, 403},
	}
	for _, tt := range tests {
		got := s.request("GET", tt.path, "", tt.headers...)
		require.Equal(t, tt.want, got.status, "%s: %s", tt.name, got.body)
		require.Contains(t, got.header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'", tt.name)
		require.Contains(t, got.header.Get("Content-Security-Policy"), "frame-ancestors 'none'", tt.name)
		require.Equal(t, "nosniff", got.header.Get("X-Content-Type-Options"), tt.name)
		require.Equal(t, "no-store", got.header.Get("Cache-Control"), tt.name)
		require.Empty(t, got.header.Get("Access-Control-Allow-Origin"), tt.name)
	}
}

// A link lets one browser in, once, and its cookie is no use to a page of another site.
func TestALinkIsGoodOnce(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := &fake{}
	s := serve(t, f, nil)
	s.logins.Now = func() time.Time { return now }
	link := "/login?key=" + s.logins.NewKey()
	got := s.request("GET", link, "", "Authorization: ", "Sec-Purpose: prefetch")
	require.Equal(t, 403, got.status, "a link that is looked at ahead is not used up")
	got = s.request("GET", link, "", "Authorization: ", "Sec-Fetch-Site: cross-site")
	require.Equal(t, 200, got.status, got.body)
	require.Contains(t, got.body, `content="0;url=/"`)
	cookie := got.header.Get("Set-Cookie")
	require.Regexp(t, `^runteam_\d+=[\w.-]{40,}; Path=/; HttpOnly; SameSite=Strict$`, cookie)
	again := s.request("GET", link, "", "Authorization: ")
	require.Equal(t, 403, again.status)
	require.Contains(t, again.body, "press Enter where runteam serve runs")
	require.Empty(t, again.header.Get("Set-Cookie"))

	browser := []string{"Authorization: ", "Cookie: " + strings.Split(cookie, ";")[0]}
	got = s.request("GET", "/", "", browser...)
	require.Equal(t, answer{200, "<p>", got.header}, got)
	require.Equal(t, "text/html; charset=utf-8", got.header.Get("Content-Type"))
	got = s.request("GET", "/assets/app.js", "", browser...)
	require.Equal(t, "text/javascript; charset=utf-8", got.header.Get("Content-Type"))
	require.Equal(t, 404, s.request("GET", "/assets/none.js", "", browser...).status)
	require.Equal(t, 404, s.request("GET", "/assets/..%2fapp.js", "", browser...).status)

	got = s.request("POST", "/api/v1/runs/r/pause", "{}", browser...)
	require.Equal(t, 403, got.status, "a form of another page cannot send the header")
	require.Empty(t, f.steered)
	got = s.request("POST", "/api/v1/runs/r/pause", "{}", append(browser, "X-Runteam: 1")...)
	require.Equal(t, 200, got.status, got.body)
	got = s.request("POST", "/api/v1/runs/r/pause", "{}", append(browser, "X-Runteam: 1", "Sec-Fetch-Site: none")...)
	require.Equal(t, 403, got.status)

	link = "/login?key=" + s.logins.NewKey()
	now = now.Add(time.Hour)
	require.Equal(t, 403, s.request("GET", link, "", "Authorization: ").status, "it was not used in time")
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := serve(t, f, nil)
	tests := []struct {
		method, path, body string
		headers            []string
		status             int
		want               string // the body, or the code of the error
	}{
		{"GET", "/api/v1/viewer", "", nil, 200, `{"accepts":"internal","by":"ann","canStart":false,"canSteer":false,"canAnswer":false,"version":"","canStopUnseen":false,"canSignOut":false}`},
		{"GET", "/api/v1/runs", "", nil, 200, `{"Limit":100,"Before":"","Filter":{"search":""}}`},
		{"GET", "/api/v1/runs?limit=7&before=x&search=y", "", nil, 200, `{"Limit":7,"Before":"x","Filter":{"search":"y"}}`},
		{"GET", "/api/v1/runs?limit=0", "", nil, 400, "bad_request"},
		{"GET", "/api/v1/runs?limit=x", "", nil, 400, "bad_request"},
		{"GET", "/api/v1/runs?after=1", "", nil, 400, "bad_request"},
		{"GET", "/api/v1/runs?a=%zz", "", nil, 400, "bad_request"},
		{"GET", "/api/v1/runs/r/tasks/a%2Fb%20%3F", "", nil, 200, `{"run":"r","task":"a/b ?"}`},
		{"GET", "/api/v1/runs/r/graph", "", nil, 404, "not_found"}, // nobody offers it
		{"GET", "/api/v1/nothing", "", nil, 404, "not_found"},
		{"GET", "/nothing", "", nil, 404, "not_found"},
		{"POST", "/api/v1/viewer", "{}", nil, 405, "method_not_allowed"},
		{"DELETE", "/api/v1/runs/r", "", nil, 405, "method_not_allowed"},
		{"POST", "/api/v1/runs/r/pause", "", nil, 200, `{"command":"pause","by":"ann","time":"0001-01-01T00:00:00Z"}`},
		{"POST", "/api/v1/runs/r/pause", "{}", []string{"Content-Type: text/plain"}, 400, "bad_request"},
		{"POST", "/api/v1/runs/r/pause", `{"why":1}`, nil, 400, "bad_request"},
		{"POST", "/api/v1/runs/r/pause", `{} {}`, nil, 400, "bad_request"},
		{"POST", "/api/v1/runs/r/pause", `[`, nil, 400, "bad_request"},
		{"POST", "/api/v1/runs/r/pause", `{"reason":"a","reason":"b"}`, nil, 400, "bad_request"}, // of which one would be lost
		{"POST", "/api/v1/runs/r/pause", `{"reason":"a","rea\u017Fon":"b"}`, nil, 400, "bad_request"},
		{"POST", "/api/v1/runs/r/questions/q/answer", `{"fields":{"a":[{"b":1,"b":2}]}}`, nil, 400, "bad_request"},
		{"POST", "/api/v1/runs/r/questions/q/answer", `{"fields":{"a":1,"A":2,"b":{"a":3}}}`, nil, 200, `{"taken":false}`},
		{"PUT", "/api/v1/governance/handoff-rules", `{"policy":{},"Policy":{"rules":[]}}`, []string{`If-Match: "d1"`}, 400, "bad_request"},
		{"PUT", "/api/v1/governance/handoff-rules", `{"policy":{"a":1,"a":2}}`, []string{`If-Match: "d1"`}, 200, `{"digest":"d1{\"a\":1,\"a\":2}ann"}`}, // who reads it refuses it
		{"POST", "/api/v1/runs/r/pause", `{"reason":7}`, nil, 400, "bad_request"},
		{"POST", "/api/v1/runs/r/messages", `{"agent":"a","text":"t","classification":"top"}`, nil, 422, "invalid"},
		{"POST", "/api/v1/runs/r/messages", `{"agent":"a","text":"` + strings.Repeat("x", 64<<10+1) + `"}`, nil, 413, "too_large"},
		{"POST", "/api/v1/runs/r/messages", `{"text":"` + strings.Repeat("x", 10<<20) + `"}`, nil, 413, "too_large"},
		{"POST", "/api/v1/runs/r/questions/q/answer", `{"text":"taken"}`, nil, 200, `{"taken":true}`},
		{"POST", "/api/v1/runs/r/questions/q/answer", `{"fields":{}}`, nil, 200, `{"taken":false}`},
		{"POST", "/api/v1/runs/r/questions/q/answer", `{"fields":{},"text":"x"}`, nil, 422, "invalid"},
		{"POST", "/api/v1/runs/r/questions/q/answer", `{}`, nil, 422, "invalid"},
		{"GET", "/api/v1/runs/r/governance/handoff-rules", "", nil, 200, `"rules"`},
		{"GET", "/api/v1/runs/r/governance/handoff-rules?policy=d0", "", nil, 200, `"rulesd0"`},
		{"GET", "/api/v1/runs/r/governance/handoff-rules?digest=d0", "", nil, 400, "bad_request"},
		{"GET", "/api/v1/runs/r/governance/handoff-rules/a/b", "", nil, 200, `"rab"`},
		{"GET", "/api/v1/governance/handoff-rules/a/b", "", nil, 200, `"ab"`},
		{"PUT", "/api/v1/governance/handoff-rules", `{"policy":{}}`, nil, 428, "precondition_required"},
		{"PUT", "/api/v1/governance/handoff-rules", `{"policy":{}}`, []string{`If-Match: d1`}, 400, "bad_request"},
		{"PUT", "/api/v1/governance/handoff-rules", `{}`, []string{`If-Match: "d1"`}, 422, "invalid"},
		{"PUT", "/api/v1/governance/handoff-rules", `{"policy":{}}`, []string{`If-Match: "d1"`}, 200, `{"digest":"d1{}ann"}`},
	}
	for _, tt := range tests {
		got := s.request(tt.method, tt.path, tt.body, tt.headers...)
		about := tt.method + " " + tt.path
		require.Equal(t, tt.status, got.status, "%s: %s", about, got.body)
		require.Equal(t, "application/json; charset=utf-8", got.header.Get("Content-Type"), about)
		if tt.status >= 400 {
			require.Equal(t, tt.want, got.code(t), about)
			continue
		}
		require.Equal(t, tt.want+"\n", got.body, about)
	}
	require.Equal(t, `"d1"`, s.request("GET", "/api/v1/governance/handoff-rules", "").header.Get("ETag"))
	require.Equal(t, "GET", s.request("POST", "/api/v1/viewer", "{}").header.Get("Allow"))
}

// Each command has the kind and the task of its path, and the name of the user.
func TestCommandsOfRoutes(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := serve(t, f, nil)
	want := []steer.Command{
		{Kind: steer.Pause, Reason: "why", By: "ann"}, {Kind: steer.Resume, By: "ann"}, {Kind: steer.Cancel, By: "ann"},
		{Kind: steer.Interrupt, Task: "t/1", Text: "stop", Classification: 1, By: "ann"}, {Kind: steer.Cancel, Task: "t", By: "ann"},
		{Kind: steer.Rerun, Task: "t", By: "ann"}, {Kind: steer.Message, Agent: "a", Text: "hi", By: "ann"},
	}
	for _, r := range [][2]string{
		{"pause", `{"reason":"why"}`}, {"resume", ""}, {"cancel", ""}, {"nodes/t%2F1/interrupt", `{"text":"stop","classification":"confidential"}`},
		{"nodes/t/cancel", ""}, {"nodes/t/rerun", "{}"}, {"messages", `{"agent":"a","text":"hi"}`},
	} {
		require.Equal(t, 200, s.request("POST", "/api/v1/runs/r/"+r[0], r[1]).status, r[0])
	}
	require.Equal(t, want, f.steered)
}

// A server that is read-only refuses every request that would change something, and still lets its viewers sign out.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := serve(t, f, func(o *inspector.Options) { o.ReadOnly = true })
	for _, r := range inspector.Routes() {
		if r.Method == http.MethodGet {
			continue
		}
		got, want := s.request(r.Method, strings.NewReplacer("{", "", "}", "").Replace(r.Path), "{}", `If-Match: "d1"`), 403
		if strings.HasSuffix(r.Path, "/sign-out") {
			want = 200
		}
		require.Equal(t, want, got.status, "%v: %s", r, got.body)
	}
	require.Empty(t, f.steered)
	require.Equal(t, 200, s.request("GET", "/api/v1/runs", "").status)
}

func TestErrorsOfWhatIsCalled(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := serve(t, f, nil)
	for code, status := range map[inspector.Code]int{
		inspector.NotFound: 404, inspector.Conflict: 409, inspector.Widening: 409, inspector.Stale: 412, inspector.Invalid: 422, inspector.Unavailable: 503,
	} {
		f.fail = fmt.Errorf("read: %w", &inspector.Error{Code: code, Message: "m", Problems: []inspector.Problem{{Pointer: "/a", Message: "p", Hint: "h"}}})
		got := s.request("GET", "/api/v1/runs/r", "")
		require.Equal(t, status, got.status)
		require.JSONEq(t, `{"error":{"code":"`+string(code)+`","message":"m","problems":[{"pointer":"/a","message":"p","hint":"h"}]}}`, got.body)
	}
	f.fail = io.ErrUnexpectedEOF
	require.Equal(t, "unavailable", s.request("GET", "/api/v1/runs/r", "").code(t))
}

// batches yields batches of events, and an error at the end.
func batches(err error, list ...[]inspector.Event) func(yield func([]inspector.Event, error) bool) {
	return func(yield func([]inspector.Event, error) bool) {
		for _, b := range list {
			if !yield(b, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

func TestEventsOfARun(t *testing.T) {
	t.Parallel()
	one := inspector.Event{Position: 4, Type: "task_start", Data: json.RawMessage(`{"seq":3}`)}
	two := inspector.Event{Position: 5, Type: "task_complete", Data: json.RawMessage(`{"seq":4}`)}
	f := &fake{}
	s := serve(t, f, nil)
	events := func(headers ...string) answer { return s.request("GET", "/api/v1/runs/r/events", "", headers...) }
	const stream = "Accept: text/event-stream"

	f.events = batches(nil, nil, []inspector.Event{one, two})
	got := events(stream)
	require.Equal(t, 200, got.status)
	require.Equal(t, "text/event-stream; charset=utf-8", got.header.Get("Content-Type"))
	require.Equal(t, ": \n\nid: 4\nevent: task_start\ndata: {\"seq\":3}\n\nid: 5\nevent: task_complete\ndata: {\"seq\":4}\n\nevent: end\ndata: {}\n\n", got.body)
	got = events()
	require.Equal(t, "{\"events\":[{\"seq\":3},{\"seq\":4}]}\n", got.body)
	f.events = batches(nil)
	require.Equal(t, "{\"events\":[]}\n", events().body)

	gone := &inspector.Error{Code: inspector.NotFound, Message: "it was removed"}
	f.events = batches(gone)
	require.Equal(t, 404, events(stream).status, "before the first event, the error is the answer")
	f.events = batches(gone, []inspector.Event{one})
	got = events(stream)
	require.True(t, strings.HasSuffix(got.body, "event: failed\ndata: {\"error\":{\"code\":\"not_found\",\"message\":\"it was removed\"}}\n\n"), got.body)
	for _, wrong := range []string{"x", "-1"} {
		require.Equal(t, 400, events(stream, "Last-Event-ID: "+wrong).status)
	}
}

// What models write reaches a subscriber whole, and first what was written before it came.
func TestStreamOfARun(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := serve(t, f, func(o *inspector.Options) { o.Streams = named{f} })
	over := s.request("GET", "/api/v1/runs/r/stream", "")
	require.Equal(t, []any{200, ": \n\nevent: end\ndata: {}\n\n"}, []any{over.status, over.body}, "no process works on it")
	push, end := f.Begin("r")
	push(event.Delta{Task: "t", Title: "T", Agent: "a", Attempt: 1, Text: "Hel"})
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.addr+"/api/v1/runs/r/stream", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	got, err := s.client.Do(r)
	require.NoError(t, err)
	defer got.Body.Close()
	lines := bufio.NewScanner(got.Body)
	next := func() (text string) {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		return ""
	}
	require.JSONEq(t, `{"task":"t","title":"T","agent":"a","attempt":1,"reset":true,"text":"Hel","done":false}`, next())
	push(event.Delta{Task: "t", Title: "T", Agent: "a", Attempt: 1, Text: "lo\u202e", Done: true})
	require.JSONEq(t, `{"task":"t","title":"T","agent":"a","attempt":1,"reset":false,"text":"lo\u202e","done":true}`, next())
	end()
	require.Equal(t, "{}", next())
}

// A request for the head of a stream gets it, and the connection serves the next request.
func TestHeadOfAStream(t *testing.T) {
	t.Parallel()
	f := &fake{events: func(yield func([]inspector.Event, error) bool) {
		for yield(nil, nil) { // as long as somebody reads
			time.Sleep(time.Millisecond)
		}
	}}
	s := serve(t, f, func(o *inspector.Options) { o.Streams = named{f} })
	_, end := f.Begin("r")
	defer end()
	for _, path := range []string{"events", "stream"} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.addr)
		require.NoError(t, err)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(20*time.Second)))
		in := bufio.NewReader(c)
		ask := func(method, path string) *http.Response {
			r, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.addr+"/api/v1/runs"+path, nil)
			require.NoError(t, err)
			r.Header = http.Header{"Authorization": {"Bearer " + token}, "Accept": {"text/event-stream"}}
			require.NoError(t, r.Write(c))
			got, err := http.ReadResponse(in, r)
			require.NoError(t, err, "%s %s", method, path)
			require.NoError(t, got.Body.Close())
			return got
		}
		got := ask("HEAD", "/r/"+path)
		require.Equal(t, 200, got.StatusCode)
		require.Equal(t, "text/event-stream; charset=utf-8", got.Header.Get("Content-Type"))
		require.Equal(t, 200, ask("GET", "").StatusCode)
		require.NoError(t, c.Close())
	}
}

// named has the fanout of a fake as streams.
type named struct{ f *fake }

func (n named) Subscribe(_ context.Context, run string) (inspector.Subscription, error) {
	return n.f.Fanout.Subscribe(run), nil
}
