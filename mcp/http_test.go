package mcp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/mcp"
	"github.com/runteam/runteam/tool"
)

// A webServer offers the tools of a raw server over HTTP, with sessions.
type webServer struct {
	*httptest.Server
	raw    *rawServer
	listen http.HandlerFunc // answers GET; nil means status 405
	// before may answer a request, and after one that has been handled, in place of its result.
	before, after func(w http.ResponseWriter, method, name string) bool

	mu       sync.Mutex // guards the fields below
	sessions int        // that began
	current  string     // the ID of the only one that is known; empty for none
	answers  map[string]chan string
	methods  []string
}

func newWeb(t *testing.T, mode string) *webServer {
	w := &webServer{answers: map[string]chan string{}}
	w.raw = newRaw(mode, func(line string) {
		var m rawRequest
		if json.Unmarshal([]byte(line), &m) != nil || m.ID == nil {
			return // a notification has no stream
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.answers[fmt.Sprintf(`"id":%s`, m.ID)] <- line
	})
	w.Server = httptest.NewServer(w)
	t.Cleanup(func() {
		w.CloseClientConnections()
		w.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return w
}

// forget ends the session.
func (s *webServer) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = ""
}

// count returns how often a method was requested.
func (s *webServer) count(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.methods {
		if m == method {
			n++
		}
	}
	return n
}

// ServeHTTP handles a request.
func (s *webServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && s.listen != nil:
		s.listen(w, r)
		return
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, _ := io.ReadAll(r.Body)
	var m rawRequest
	_ = json.Unmarshal(body, &m)
	s.mu.Lock()
	s.methods = append(s.methods, m.Method)
	if m.Method == "initialize" {
		s.sessions++
		s.current = fmt.Sprint("session-", s.sessions)
	}
	answer, own := make(chan string, 1), fmt.Sprintf(`"id":%s`, m.ID)
	unique := fmt.Sprintf(`"id":%d`, len(s.methods)) // sessions use the same IDs
	s.answers[unique] = answer
	s.mu.Unlock()
	if s.before != nil && s.before(w, m.Method, m.Params.Name) {
		return
	}
	s.mu.Lock()
	current := s.current
	s.mu.Unlock()
	if id := r.Header.Get("Mcp-Session-Id"); m.Method != "initialize" && id != current {
		http.Error(w, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`, http.StatusNotFound)
		return
	}
	w.Header().Set("Mcp-Session-Id", current)
	s.raw.receive(bytes.Replace(body, []byte(own), []byte(unique), 1))
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	line := <-answer
	if s.after != nil && s.after(w, m.Method, m.Params.Name) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, strings.Replace(line, unique, own, 1))
}

// task returns a task with the tools of the server.
func (s *webServer) task(t *testing.T, o tool.Options) *rawTask {
	return newTask(t, &mcp.Server{Name: "test", URL: s.URL, Options: o})
}

var (
	noEffect   = tool.Options{Effect: tool.None}
	repeatable = tool.Options{Repeatable: true}
)

// A call is made again in a new session only if that does no harm.
func TestCallInASessionThatIsGone(t *testing.T) {
	t.Parallel()
	answers := map[string]func(http.ResponseWriter){
		"404": func(w http.ResponseWriter) { http.NotFound(w, nil) },
		"404 with an error": func(w http.ResponseWriter) {
			http.Error(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Session not found"}}`, 404)
		},
		"400 about a session": func(w http.ResponseWriter) {
			http.Error(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`, 400)
		},
	}
	for name, answer := range answers {
		for effect, o := range map[string]tool.Options{"external": {}, "none": noEffect, "repeatable": repeatable} {
			t.Run(name+" "+effect, func(t *testing.T) {
				t.Parallel()
				web := newWeb(t, "plain")
				var once sync.Once
				web.after = func(w http.ResponseWriter, method, _ string) (done bool) {
					if method == "tools/call" {
						once.Do(func() { answer(w); done = true }) // a proxy, after the call was made
					}
					return done
				}
				task := web.task(t, o)
				began := web.sessions
				n, _, err := task.call("a")
				if effect == "external" {
					require.ErrorIs(t, err, tool.ErrUncertain)
					require.EqualError(t, err, `mcp server "test": the server no longer knows the session: the call may have taken effect`)
					require.Equal(t, 1, web.count("tools/call"))
					n, _, err = task.call("a")
				}
				require.NoError(t, err)
				require.Equal(t, 2, n)
				require.Equal(t, began+2, web.sessions, "one for the first call and one for the second")
			})
		}
	}
}

// Before an external call, a ping finds out that the session is gone, so the call can be made.
func TestPingBeforeAnExternalCall(t *testing.T) {
	t.Parallel()
	web := newWeb(t, "plain")
	task := web.task(t, tool.Options{})
	for range 3 {
		_, _, err := task.call("a")
		require.NoError(t, err)
		web.forget()
	}
	require.Equal(t, 3, web.count("tools/call"))
	require.Equal(t, 2, web.count("ping"))
}

// A server that answers 404 to everything, from the start or from the first call on, is an error.
func TestServerThatAnswersNotFound(t *testing.T) {
	t.Parallel()
	web := newWeb(t, "plain")
	var broken sync.Map
	web.before = func(w http.ResponseWriter, method, _ string) bool {
		_, all := broken.Load("all")
		_, calls := broken.Load("calls")
		if all || calls && method == "tools/call" {
			http.NotFound(w, nil)
			return true
		}
		return false
	}
	task := web.task(t, noEffect)
	broken.Store("calls", true)
	_, _, err := task.call("a")
	require.ErrorContains(t, err, "the server no longer knows the session")
	require.Equal(t, 2, web.count("tools/call"))
	broken.Store("all", true)
	_, _, err = task.call("a")
	require.ErrorContains(t, err, "it does not answer as an MCP server: HTTP status 404 Not Found")
}

// An error status is the error of its request alone, and the session goes on.
func TestErrorStatusOfOneCall(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 429, 500, 501, 502} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			web := newWeb(t, "plain")
			web.before = func(w http.ResponseWriter, method, name string) bool {
				if method == "tools/call" && name == "b" {
					http.Error(w, "no canary today", status)
					return true
				}
				return false
			}
			s := &mcp.Server{Name: "test", URL: web.URL, Headers: map[string]string{"Authorization": "Bearer canary"}}
			task := newTask(t, s)
			_, _, err := task.call("a")
			require.NoError(t, err)
			began := web.sessions
			waiting := make(chan error)
			go func() {
				_, _, err := task.call("wait")
				waiting <- err
			}()
			require.Eventually(t, func() bool { return web.count("tools/call") == 2 }, 5*time.Second, time.Millisecond)
			_, _, err = task.call("b")
			require.ErrorContains(t, err, fmt.Sprint("HTTP status ", status))
			require.ErrorContains(t, err, "no ${Authorization} today; the call may have taken effect")
			_, _, err = task.call("a")
			require.NoError(t, err)
			require.NoError(t, <-waiting)
			require.Equal(t, began, web.sessions)
		})
	}
}

// A response that is no message is the error of its call alone.
func TestResponseThatIsNoMessage(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter){
		"nothing": func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) },
		"a page":  func(w http.ResponseWriter) { io.WriteString(w, "<html>Log in") },
		"no object": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, "[]")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := newWeb(t, "plain")
			web.before = func(w http.ResponseWriter, method, name string) bool {
				if method == "tools/call" && name == "b" {
					answer(w)
					return true
				}
				return false
			}
			task := web.task(t, tool.Options{})
			began := web.sessions
			_, _, err := task.call("b")
			require.ErrorContains(t, err, "which is no JSON-RPC message; the call may have taken effect")
			_, _, err = task.call("a")
			require.NoError(t, err)
			require.Equal(t, began+1, web.sessions)
		})
	}
}

// A session does not depend on the stream of notifications.
func TestStreamsOfNotifications(t *testing.T) {
	t.Parallel()
	begin := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
	}
	for name, listen := range map[string]http.HandlerFunc{
		"refused":      func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusNotImplemented) },
		"not found":    func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) },
		"a page":       func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") },
		"ends":         func(w http.ResponseWriter, _ *http.Request) { begin(w) },
		"breaks":       func(w http.ResponseWriter, _ *http.Request) { begin(w); panic(http.ErrAbortHandler) },
		"never begins": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"stays":        func(w http.ResponseWriter, r *http.Request) { begin(w); <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := newWeb(t, "plain")
			web.listen = listen
			task := web.task(t, tool.Options{})
			began := web.sessions
			for i := 1; i <= 3; i++ {
				n, _, err := task.call("a")
				require.NoError(t, err)
				require.Equal(t, i, n)
			}
			require.Equal(t, began+1, web.sessions)
		})
	}
}

// What the stream of notifications says is heard, and once it has ended, the tools are listed again
// before an external call.
func TestNotificationsOverHTTP(t *testing.T) {
	t.Parallel()
	web := newWeb(t, "changes a")
	announce, end := make(chan bool), make(chan bool)
	web.listen = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		for {
			select {
			case <-announce:
				io.WriteString(w, "id: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
				w.(http.Flusher).Flush()
			case <-end:
				return
			case <-r.Context().Done():
				return
			}
		}
	}
	task := web.task(t, tool.Options{})
	_, _, err := task.call("a")
	require.NoError(t, err)
	announce <- true
	require.Eventually(t, func() bool {
		_, _, err = task.call("a")
		return err != nil
	}, 5*time.Second, time.Millisecond)
	require.ErrorContains(t, err, "changed")
	_, _, err = task.call("b")
	require.NoError(t, err)
	lists := web.count("tools/list")
	end <- true
	require.Eventually(t, func() bool {
		_, _, err = task.call("b")
		return err == nil && web.count("tools/list") > lists
	}, 5*time.Second, time.Millisecond)
}

// A stream that ends without the result of its call leaves open whether the call was made.
func TestStreamOfACallThatEnds(t *testing.T) {
	t.Parallel()
	web := newWeb(t, "plain")
	web.before = func(w http.ResponseWriter, method, name string) bool {
		if method == "tools/call" && name == "a" {
			w.Header().Set("Content-Type", "text/event-stream")
			return true
		}
		return false
	}
	task := web.task(t, tool.Options{})
	_, _, err := task.call("a")
	require.ErrorContains(t, err, "terminated without response; the call may have taken effect")
	_, _, err = task.call("b")
	require.NoError(t, err)
}
