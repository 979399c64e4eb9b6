package inspect_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/inspect"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/steer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server answers requests in memory, each with the next function.
type server struct {
	t       *testing.T
	answers []func(*http.Request) (*http.Response, error)
	asked   []*http.Request
	bodies  []string
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	n := len(s.asked)
	require.Less(s.t, n, len(s.answers), "%s %s was not expected", r.Method, r.URL)
	s.asked = append(s.asked, r)
	body := ""
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		require.NoError(s.t, err)
		body = string(text)
	}
	s.bodies = append(s.bodies, body)
	return s.answers[n](r)
}

// answer answers with a status and a text.
func answer(status int, kind, body string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func document(body string) func(*http.Request) (*http.Response, error) {
	return answer(200, "application/json", body)
}

func stream(body string) func(*http.Request) (*http.Response, error) {
	return answer(200, "text/event-stream; charset=utf-8", body)
}

func broken(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }

// client returns a client of a server with these answers.
func client(t *testing.T, answers ...func(*http.Request) (*http.Response, error)) (*inspect.Client, *server) {
	t.Helper()
	c, err := inspect.New("http://127.0.0.1:7337/", " secret-token\n")
	require.NoError(t, err)
	s := &server{t: t, answers: answers}
	c.SetTransport(s)
	return c, s
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ url, token, want string }{
		{"127.0.0.1:7337", "t", "base URL"},
		{"ftp://h", "t", "write http://HOST:PORT"},
		{"http://user:pass@h", "t", "write http://HOST:PORT"},
		{"http://h?x=1", "t", "write http://HOST:PORT"},
		{"http://h", " ", "the token is empty"},
		{"http://h", "a\r\nX: b", "more than one line"},
	} {
		_, err := inspect.New(tt.url, tt.token)
		require.ErrorContains(t, err, tt.want)
		require.NotContains(t, err.Error(), "pass")
	}
}

// TestRequests: each method sends what the API describes.
func TestRequests(t *testing.T) {
	t.Parallel()
	tests := []struct {
		call         func(context.Context, *inspect.Client) (any, error)
		answer       string
		method, path string
		body         string
		want         any
	}{
		{
			func(ctx context.Context, c *inspect.Client) (any, error) {
				return c.Runs(ctx, inspect.RunsOptions{Limit: 2, Before: "r1"})
			},
			`{"runs":[{"runId":"r2","live":true,"tasks":{"completed":2}}],"more":true}`, "GET", "/runs?before=r1&limit=2", "",
			inspect.RunList{Runs: []inspect.RunItem{{Run: "r2", Live: true, Tasks: map[string]int{"completed": 2}}}, More: true},
		},
		{func(ctx context.Context, c *inspect.Client) (any, error) { return c.Run(ctx, "r/1") }, `{"a":1}`, "GET", "/runs/r%2F1", "", json.RawMessage(`{"a":1}`)},
		{func(ctx context.Context, c *inspect.Client) (any, error) { return c.Get(ctx, "/runs/r1/usage") }, `{}`, "GET", "/runs/r1/usage", "", json.RawMessage(`{}`)},
		{
			func(ctx context.Context, c *inspect.Client) (any, error) {
				return c.Start(ctx, inspect.Start{Spec: "s", Inputs: map[string]string{"a": "x"}})
			},
			`{"runId":"r9"}`, "POST", "/runs", `{"spec":"s","inputs":{"a":"x"}}`, "r9",
		},
		{func(ctx context.Context, c *inspect.Client) (any, error) { return c.Questions(ctx, "") }, `[{"id":"q"}]`, "GET", "/questions", "", []inspect.Question{{ID: "q"}}},
		{func(ctx context.Context, c *inspect.Client) (any, error) { return c.Questions(ctx, "r1") }, `[]`, "GET", "/runs/r1/questions", "", []inspect.Question{}},
		{
			func(ctx context.Context, c *inspect.Client) (any, error) {
				return c.Answer(ctx, "r1", "q1", inspect.Answer{Fields: map[string]any{"ok": true}})
			},
			`{"taken":true}`, "POST", "/runs/r1/questions/q1/answer", `{"fields":{"ok":true}}`, true,
		},
		{
			func(ctx context.Context, c *inspect.Client) (any, error) {
				return c.Answer(ctx, "r1", "q1", inspect.Answer{Fields: map[string]any{}}) // a form whose fields are optional
			},
			`{"taken":true}`, "POST", "/runs/r1/questions/q1/answer", `{"fields":{}}`, true,
		},
		{
			func(ctx context.Context, c *inspect.Client) (any, error) {
				return c.Steer(ctx, "r1", steer.Command{Kind: steer.Pause, Reason: "wait"})
			},
			`{"by":"ann"}`, "POST", "/runs/r1/pause", `{"reason":"wait"}`, inspect.Taken{By: "ann"},
		},
		{
			func(ctx context.Context, c *inspect.Client) (any, error) {
				return c.Steer(ctx, "r1", steer.Command{Kind: steer.Cancel, Task: "Mail[3]"})
			},
			`{}`, "POST", "/runs/r1/nodes/Mail%5B3%5D/cancel", `{}`, inspect.Taken{},
		},
		{
			func(ctx context.Context, c *inspect.Client) (any, error) {
				return c.Steer(ctx, "r1", steer.Command{Kind: steer.Message, Agent: "a", Text: "Hi", Classification: label.Confidential})
			},
			`{}`, "POST", "/runs/r1/messages", `{"agent":"a","text":"Hi","classification":"confidential"}`, inspect.Taken{},
		},
		{
			func(ctx context.Context, c *inspect.Client) (any, error) { return c.Policy(ctx, "") },
			`{"digest":"d","policy":{},"earlier":["c"]}`, "GET", "/governance/handoff-rules", "", inspect.Policy{Digest: "d", Policy: json.RawMessage(`{}`), Earlier: []string{"c"}},
		},
		{
			func(ctx context.Context, c *inspect.Client) (any, error) { return c.EarlierPolicy(ctx, "r1", "a&b") },
			`{"digest":"a"}`, "GET", "/runs/r1/governance/handoff-rules?policy=a%26b", "", inspect.Policy{Digest: "a"},
		},
		{
			func(ctx context.Context, c *inspect.Client) (any, error) {
				return c.ReplacePolicy(ctx, "r1", "d", json.RawMessage(`{"default":"scoped"}`), "")
			},
			`{"digest":"e"}`, "PUT", "/runs/r1/governance/handoff-rules", `{"policy":{"default":"scoped"}}`, "e",
		},
		{
			func(ctx context.Context, c *inspect.Client) (any, error) { return c.PolicyOfSpec(ctx, "a/b") },
			`{"digest":"d","policy":{}}`, "GET", "/specs/a%2Fb/governance/handoff-rules", "", inspect.Policy{Digest: "d", Policy: json.RawMessage(`{}`)},
		},
		{
			func(ctx context.Context, c *inspect.Client) (any, error) {
				return c.ReplacePolicyOfSpec(ctx, "open", "d", json.RawMessage(`{"default":"scoped"}`), "why")
			},
			`{"digest":"e"}`, "PUT", "/specs/open/governance/handoff-rules", `{"policy":{"default":"scoped"},"reason":"why"}`, "e",
		},
	}
	for _, tt := range tests {
		c, s := client(t, document(tt.answer))
		got, err := tt.call(t.Context(), c)
		require.NoError(t, err, tt.path)
		require.Equal(t, tt.want, got)
		r := s.asked[0]
		require.Equal(t, tt.method+" http://127.0.0.1:7337/api/v1"+tt.path, r.Method+" "+r.URL.String())
		require.Equal(t, "Bearer secret-token", r.Header.Get("Authorization"))
		require.Equal(t, tt.body, s.bodies[0])
		if tt.body != "" {
			require.Equal(t, "application/json", r.Header.Get("Content-Type"))
		}
		if tt.method == "PUT" {
			require.Equal(t, `"d"`, r.Header.Get("If-Match"))
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	c, _ := client(t,
		answer(422, "application/json", `{"error":{"code":"invalid","message":"2 problems","hint":"fix them","problems":[{"pointer":"/a","message":"bad","hint":"write 1"},{"pointer":"","message":"worse"}]}}`),
		answer(502, "text/html", "<p>gateway"), answer(302, "", ""), document("no JSON"), broken)
	_, err := c.Start(t.Context(), inspect.Start{Spec: "s"})
	refused, ok := errors.AsType[*inspect.Error](err)
	require.True(t, ok)
	require.Equal(t, &inspect.Error{Status: 422, Code: "invalid", Message: "2 problems", Hint: "fix them", Problems: []inspect.Problem{{Pointer: "/a", Message: "bad", Hint: "write 1"}, {Message: "worse"}}}, refused)
	require.EqualError(t, err, "inspect: 2 problems; fix them\n/a bad; write 1\nworse")
	for _, want := range []string{"the server answered 502 Bad Gateway", "the server answered 302 Found", "unexpected response", "connection refused"} {
		_, err = c.Run(t.Context(), "r1")
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret-token")
	}
	_, err = c.Steer(t.Context(), "r1", steer.Command{Kind: steer.Message, Agent: "a"})
	require.ErrorIs(t, err, steer.ErrInvalid, "it is checked before it is sent")
	_, err = c.Steer(t.Context(), "r1", steer.Command{Kind: steer.ReplacePolicy, Policy: &handoff.Policy{}, Replaces: "d"})
	require.ErrorContains(t, err, "call ReplacePolicy")
}

// collect returns the positions and types of events, and the error at their end.
func collect(t *testing.T, c *inspect.Client, after int) (all []string, err error) {
	t.Helper()
	for e, failed := range c.Events(t.Context(), "r1", after) {
		if failed != nil {
			return all, failed
		}
		all = append(all, fmt.Sprint(e.Position, " ", e.Type, " ", string(e.Data)))
	}
	return all, nil
}

// TestEventsContinue where they broke, however they broke.
func TestEventsContinue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := client(t,
			stream("id: 3\nevent: a\ndata: {\"n\":3}\n\n: \n\nid: 4\nevent: b\nda"),
			broken,
			answer(503, "application/json", `{"error":{"code":"unavailable","message":"later"}}`),
			stream("id: 4\nevent: b\ndata: {}\n\nid: 5\r\nevent: c\r\ndata: {}\r\n\r\nevent: end\ndata: {}\n\n"),
		)
		got, err := collect(t, c, 2)
		require.NoError(t, err)
		require.Equal(t, []string{`3 a {"n":3}`, "4 b {}", "5 c {}"}, got)
		var from []string
		for _, r := range s.asked {
			require.Equal(t, "text/event-stream", r.Header.Get("Accept"))
			from = append(from, r.Header.Get("Last-Event-ID"))
		}
		require.Equal(t, []string{"2", "3", "3", "3"}, from)
	})
}

// TestEventsWaitLong for a run in which nothing happens, at a server that ends each stream after a while.
func TestEventsWaitLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		quiet := slices.Repeat([]func(*http.Request) (*http.Response, error){stream(": \n\n")}, 20)
		c, _ := client(t, append(quiet, stream("id: 1\nevent: a\ndata: {}\n\nevent: end\ndata: {}\n\n"))...)
		got, err := collect(t, c, 0)
		require.NoError(t, err)
		require.Equal(t, []string{"1 a {}"}, got)
	})
}

func TestEventsGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		eight := []func(*http.Request) (*http.Response, error){broken, broken, broken, broken, broken, broken, broken, broken}
		c, _ := client(t, eight...)
		start := time.Now()
		_, err := collect(t, c, 0)
		require.ErrorContains(t, err, "connection refused")
		require.Equal(t, 17*time.Second+750*time.Millisecond, time.Since(start))
	})
	for _, refused := range []func(*http.Request) (*http.Response, error){
		answer(404, "application/json", `{"error":{"code":"not_found","message":"unknown run"}}`),
		stream("event: failed\ndata: {\"error\":{\"code\":\"unavailable\",\"message\":\"unknown run\"}}\n\n"),
	} {
		c, _ := client(t, refused)
		_, err := collect(t, c, 0)
		require.ErrorContains(t, err, "unknown run", "it is not asked again")
	}
	c, _ := client(t, document("{}"))
	_, err := collect(t, c, 0)
	require.ErrorContains(t, err, "not an event stream")
}

// silentBody never ends, until the request does.
type silentBody struct{ ctx context.Context }

func (b silentBody) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

func (silentBody) Close() error { return nil }

func silent(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: silentBody{r.Context()}}, nil
}

// TestASilentConnectionIsBroken, and a context ends it at once.
func TestASilentConnectionIsBroken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := client(t, silent, stream("event: end\ndata: {}\n\n"))
		start := time.Now()
		got, err := collect(t, c, 0)
		require.NoError(t, err)
		require.Empty(t, got)
		require.Equal(t, time.Minute+250*time.Millisecond, time.Since(start))

		c, _ = client(t, silent)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errors.New("enough")) })
		for _, err := range c.Events(ctx, "r1", 0) {
			require.ErrorContains(t, err, "enough")
		}
	})
}

func TestACallerMayStop(t *testing.T) {
	t.Parallel()
	c, _ := client(t, stream("id: 1\nevent: a\ndata: {}\n\nid: 2\nevent: b\ndata: {}\n\n"))
	n := 0
	for _, err := range c.Events(t.Context(), "r1", 0) {
		require.NoError(t, err)
		n++
		break
	}
	require.Equal(t, 1, n)
}

func TestStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := client(t,
			stream(": \n\nevent: delta\ndata: {\"task\":\"t\",\"title\":\"Draft\",\"agent\":\"w\",\"attempt\":1,\"reset\":true,\"text\":\"De\",\"done\":false}\n\nevent: news\ndata: {}\n\n"),
			stream("event: end\ndata: {}\n\n"), // the run has ended meanwhile
		)
		var got []inspect.Delta
		for d, err := range c.Stream(t.Context(), "r1") {
			require.NoError(t, err)
			got = append(got, d)
		}
		require.Equal(t, []inspect.Delta{{Task: "t", Title: "Draft", Agent: "w", Attempt: 1, Reset: true, Text: "De"}}, got)
	})
	c, _ := client(t, answer(404, "application/json", `{"error":{"code":"not_found","message":"not of this process"}}`))
	for _, err := range c.Stream(t.Context(), "r1") {
		require.ErrorContains(t, err, "not of this process")
	}
}
