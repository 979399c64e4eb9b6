package inspector_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/inspector"
)

// open opens a stream of events, and returns when it has begun.
func (s *site) open(ctx context.Context) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, "GET", "http://"+s.addr+"/api/v1/runs/r/events", nil)
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept", "text/event-stream")
	return s.client.Do(r)
}

// waits yields an empty batch and waits for the end of ctx.
func waits(ctx context.Context) func(func([]inspector.Event, error) bool) {
	return func(yield func([]inspector.Event, error) bool) {
		if yield(nil, nil) {
			<-ctx.Done()
		}
	}
}

// A token has so many streams at once, and no more; what ends makes room.
func TestStreamsOfOneToken(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	s := serve(t, &fake{events: waits(ctx)}, nil)
	opened := make([]*http.Response, 256)
	for i := range opened {
		got, err := s.open(t.Context())
		require.NoError(t, err)
		require.Equal(t, 200, got.StatusCode)
		opened[i] = got
		defer got.Body.Close()
	}
	for range 744 { // a thousand in all
		got, err := s.open(t.Context())
		require.NoError(t, err)
		require.Equal(t, 429, got.StatusCode)
		require.NoError(t, got.Body.Close())
	}
	require.Equal(t, 200, s.request("GET", "/api/v1/runs", "").status, "documents are not streams")
	stop()
	require.Eventually(t, func() bool {
		got, err := s.open(t.Context())
		require.NoError(t, err)
		require.NoError(t, got.Body.Close())
		return got.StatusCode == 200
	}, 5*time.Second, 5*time.Millisecond)
}

// A client that reads nothing makes its own stream wait, and holds no more than what the connection
// buffers.
func TestAClientThatReadsNothing(t *testing.T) {
	t.Parallel()
	made, over := 0, make(chan struct{})
	batch := []inspector.Event{{Position: 1, Type: "warning", Data: json.RawMessage(`"` + strings.Repeat("x", 64<<10) + `"`)}}
	s := serve(t, &fake{events: func(yield func([]inspector.Event, error) bool) {
		defer close(over)
		for yield(batch, nil) {
			made++
		}
	}}, nil)
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.addr)
	require.NoError(t, err)
	_, err = fmt.Fprintf(c, "GET /api/v1/runs/r/events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", s.addr, token)
	require.NoError(t, err)
	_, err = bufio.NewReaderSize(c, 16).ReadByte() // it has begun
	require.NoError(t, err)
	require.Equal(t, 200, s.request("GET", "/api/v1/runs", "").status, "others are served meanwhile")
	require.NoError(t, c.Close())
	<-over
	require.Less(t, made, 1000, "64 KiB each")
}

// dial opens a connection to the site.
func (s *site) dial() net.Conn {
	c, err := (&net.Dialer{}).DialContext(s.t.Context(), "tcp", s.addr)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask sends a request on a connection, and returns the status of the answer; 0 if the connection was closed.
func ask(t *testing.T, c net.Conn, addr, token string) (status int) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "GET /api/v1/viewer HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", addr, token); err != nil {
		return 0
	}
	got, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	_, err = io.Copy(io.Discard, got.Body)
	require.NoError(t, err)
	return got.StatusCode
}

// Connections without a token replace each other, and none with one.
func TestUnauthenticatedConnectionsShutNobodyOut(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{}, nil)
	authenticated := s.dial()
	require.Equal(t, 200, ask(t, authenticated, s.addr, token))
	unauthenticated := make([]net.Conn, 1300)
	for i := range unauthenticated {
		unauthenticated[i] = s.dial()
	}
	require.Equal(t, 200, ask(t, s.dial(), s.addr, token), "a later client with a token is answered")
	require.Equal(t, 200, ask(t, authenticated, s.addr, token))
	answered := 0
	for _, c := range unauthenticated {
		if status := ask(t, c, s.addr, "none"); status != 0 {
			require.Equal(t, 401, status)
			answered++
		}
	}
	require.LessOrEqual(t, answered, 256)
}

// Connections with a token are limited too.
func TestConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{}, nil)
	var first net.Conn
	for i := range 1024 {
		c := s.dial()
		require.Equal(t, 200, ask(t, c, s.addr, token), "%d", i)
		if i == 0 {
			first = c
		}
	}
	require.Equal(t, 429, ask(t, s.dial(), s.addr, token))
	require.NoError(t, first.Close())
	require.Eventually(t, func() bool { return ask(t, s.dial(), s.addr, token) == 200 }, 5*time.Second, 5*time.Millisecond)
}

// A connection without a token ends when it was idle for two seconds, and one with a token stays.
func TestUnauthenticatedConnectionsEndSoon(t *testing.T) {
	t.Parallel()
	const viewer = "GET /api/v1/viewer HTTP/1.1\r\nHost: localhost\r\n"
	for _, tt := range []struct {
		name, sends string
		after       time.Duration // since the last byte of the server
	}{
		{"silent", "", 2 * time.Second},
		{"half a request", viewer, 2 * time.Second},
		{"no token", viewer + "\r\n", 2 * time.Second},
		{"wrong token", viewer + "Authorization: Bearer none\r\n\r\n", 2 * time.Second},
		{"wrong token, and a body that does not come", "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n", 2 * time.Second},
		{"token", viewer + "Authorization: Bearer " + token + "\r\n\r\n", 2 * time.Minute},
		{"token, and a body that does not come", "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\nAuthorization: Bearer " + token + "\r\n\r\n", 30 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &pipeListener{make(chan net.Conn), make(chan time.Time, 1)}
				w := longWork{&fake{}}
				o := inspector.Options{Access: inspector.Access{Tokens: inspector.OneToken(token, ""), Hosts: inspector.HostsOf(l.Addr())}, Offer: inspector.Offer{Documents: inspector.Documents{Runs: w}, Starter: w}}
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- inspector.Serve(ctx, l, nil, inspector.New(o)) }()
				client, server := net.Pipe()
				l.conns <- server
				go io.Copy(io.Discard, client) //nolint:errcheck // until the server closes it
				began := time.Now()
				_, err := io.WriteString(client, tt.sends)
				require.NoError(t, err)
				require.Equal(t, tt.after, (<-l.closed).Sub(began).Truncate(time.Second))
				stop()
				require.NoError(t, <-done)
				_ = client.Close()
			})
		})
	}
}

// When the server ends, streams end, and nothing is left behind.
func TestTheEndOfTheServerEndsStreams(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	f := &fake{events: waits(ctx)}
	push, end := f.Begin("r")
	defer end()
	_ = push
	o := inspector.Options{Access: inspector.Access{Tokens: inspector.OneToken(token, ""), Hosts: inspector.HostsOf(l.Addr())}, Offer: inspector.Offer{Watcher: f, Streams: named{f}}}
	done := make(chan error, 1)
	go func() { done <- inspector.Serve(ctx, l, nil, inspector.New(o)) }()
	s := &site{t: t, addr: l.Addr().String(), client: &http.Client{Transport: &http.Transport{}}}
	var bodies []*http.Response
	for range 20 {
		got, err := s.open(t.Context())
		require.NoError(t, err)
		bodies = append(bodies, got)
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.addr+"/api/v1/runs/r/stream", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	got, err := s.client.Do(r)
	require.NoError(t, err)
	bodies = append(bodies, got)
	began := time.Now()
	stop()
	require.NoError(t, <-done)
	require.Less(t, time.Since(began), 3*time.Second)
	for _, got := range bodies {
		require.NoError(t, got.Body.Close())
	}
	s.client.CloseIdleConnections()
}

// A slowExporter counts the exports that are being made.
type slowExporter struct {
	now atomic.Int32
	end chan struct{}
}

func (e *slowExporter) Export(context.Context, string) (string, []byte, error) {
	e.now.Add(1)
	<-e.end
	return "run.html", []byte("<p>"), nil
}

// An export is a whole run in memory, so no more are made at once than documents.
func TestExportsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &slowExporter{end: make(chan struct{})}
		h := inspector.New(inspector.Options{Access: inspector.Access{Tokens: inspector.OneToken(token, ""), Hosts: inspector.Hosts{Names: []string{"localhost"}, Port: "80"}}, Offer: inspector.Offer{Documents: inspector.Documents{Exporter: e}}})
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				r, w := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/api/v1/runs/r/export", nil), httptest.NewRecorder()
				r.Header.Set("Authorization", "Bearer "+token)
				h.ServeHTTP(w, r)
				assert.Equal(t, 200, w.Code)
			})
		}
		synctest.Wait()
		require.EqualValues(t, 32, e.now.Load())
		close(e.end)
		all.Wait()
		require.EqualValues(t, 64, e.now.Load())
	})
}

// A pipeListener accepts one end of a pipe, and passes on when the server closes it.
type pipeListener struct {
	conns  chan net.Conn
	closed chan time.Time
}

func (l *pipeListener) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return &reportingConn{Conn: c, closed: l.closed}, nil
}

func (l *pipeListener) Close() error {
	close(l.conns)
	return nil
}

func (*pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// A reportingConn passes on when it was closed first.
type reportingConn struct {
	net.Conn
	closed chan time.Time
}

func (c *reportingConn) Close() error {
	select {
	case c.closed <- time.Now():
	default:
	}
	return c.Conn.Close()
}

// A largeRun is a document of 1 MiB.
type largeRun struct{ *fake }

func (largeRun) Run(context.Context, string) (any, error) { return strings.Repeat("x", 1<<20), nil }

func (largeRun) Export(context.Context, string) (string, []byte, error) {
	return "run.html", bytes.Repeat([]byte("x"), 1<<20), nil
}

// A longWork takes a minute for what it is asked.
type longWork struct{ *fake }

func (w longWork) Run(ctx context.Context, _ string) (any, error) { return "made", w.wait(ctx) }

func (w longWork) Export(ctx context.Context, _ string) (string, []byte, error) {
	return "run.html", []byte("made"), w.wait(ctx)
}

func (w longWork) Start(ctx context.Context, _ inspector.Start) (string, error) {
	return "made", w.wait(ctx)
}

func (w longWork) Submit(ctx context.Context, _ inspector.Start, _ inspector.Queue) (string, bool, error) {
	return "stored", true, w.wait(ctx)
}

func (w longWork) Say(ctx context.Context, _ inspector.Message) (any, error) {
	return "turn", w.wait(ctx)
}

func (w longWork) Estimate(ctx context.Context, _ inspector.Start) (any, error) {
	return "estimate", w.wait(ctx)
}

func (longWork) Specs(context.Context) (any, error) { return "specs", nil }

func (longWork) PolicyOfSpec(context.Context, string) (any, string, error) { return "policy", "", nil }

func (longWork) ReplacePolicyOfSpec(context.Context, string, string, inspector.Policy) (string, error) {
	return "", nil
}

func (longWork) wait(ctx context.Context) error {
	select {
	case <-time.After(time.Minute):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// What takes longer than a request may take to arrive is answered.
func TestLongWorkIsAnswered(t *testing.T) {
	t.Parallel()
	for _, request := range []string{"GET /api/v1/runs/r", "GET /api/v1/runs/r/export", "POST /api/v1/runs"} {
		t.Run(request, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &pipeListener{make(chan net.Conn), make(chan time.Time, 1)}
				w := longWork{&fake{}}
				o := inspector.Options{Access: inspector.Access{Tokens: inspector.OneToken(token, ""), Hosts: inspector.HostsOf(l.Addr())}, Offer: inspector.Offer{Documents: inspector.Documents{Runs: w, Exporter: w}, Starter: w}}
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- inspector.Serve(ctx, l, nil, inspector.New(o)) }()
				client, server := net.Pipe()
				l.conns <- server
				body := ""
				if strings.HasPrefix(request, "POST") {
					body = "{}"
				}
				_, err := fmt.Fprintf(client, "%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", request, token, len(body), body)
				require.NoError(t, err)
				got, err := io.ReadAll(client)
				require.NoError(t, err)
				require.Contains(t, string(got), "made")
				stop()
				require.NoError(t, <-done)
				_ = client.Close()
			})
		})
	}
}

// A client that begins to read a response and then stops is disconnected after 20 seconds, and one that
// continues within them is not.
func TestSlowReadersAreDisconnected(t *testing.T) {
	t.Parallel()
	batch := []inspector.Event{{Position: 1, Type: "warning", Data: json.RawMessage(`"` + strings.Repeat("x", 64<<10) + `"`)}}
	for _, tt := range []struct {
		name, path, accept string
		pauses             int // of 19 seconds, after each of which the client reads 100 KiB
	}{
		{"a stream", "/api/v1/runs/r/events", "text/event-stream", 0},
		{"a stream that is read slowly", "/api/v1/runs/r/events", "text/event-stream", 5},
		{"a document", "/api/v1/runs/r", "application/json", 0},
		{"a document that is read slowly", "/api/v1/runs/r", "application/json", 5},
		{"an export that is read slowly", "/api/v1/runs/r/export", "text/html", 5},
		{"events in one document", "/api/v1/runs/r/events", "application/json", 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &pipeListener{make(chan net.Conn), make(chan time.Time, 1)}
				f := &fake{events: func(yield func([]inspector.Event, error) bool) {
					for yield(batch, nil) { //nolint:revive // until the client is gone
					}
				}}
				o := inspector.Options{Access: inspector.Access{Tokens: inspector.OneToken(token, ""), Hosts: inspector.HostsOf(l.Addr())}, Offer: inspector.Offer{Watcher: f, Documents: inspector.Documents{Runs: largeRun{f}, Exporter: largeRun{f}}}}
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- inspector.Serve(ctx, l, nil, inspector.New(o)) }()
				client, server := net.Pipe()
				l.conns <- server
				_, err := fmt.Fprintf(client, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nAccept: %s\r\n\r\n", tt.path, token, tt.accept)
				require.NoError(t, err)
				_, err = io.ReadFull(client, make([]byte, 1))
				require.NoError(t, err)
				for range tt.pauses {
					time.Sleep(19 * time.Second)
					_, err = io.ReadFull(client, make([]byte, 100<<10))
					require.NoError(t, err)
				}
				began := time.Now()
				require.Equal(t, 20*time.Second, (<-l.closed).Sub(began))
				stop()
				require.NoError(t, <-done)
				_ = client.Close()
			})
		})
	}
}
