package scripted_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

// start runs a script and returns it with a model that calls it.
func start(t *testing.T, s *scripted.Script) (*scripted.Server, *openai.Model) {
	t.Helper()
	srv, err := scripted.Start(s, scripted.Options{Keep: true})
	require.NoError(t, err)
	m, err := openai.New(openai.Config{Model: "any-name", BaseURL: srv.URL()})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, m.Close())
		require.NoError(t, srv.Close())
		require.NoError(t, srv.Close(), "twice is fine")
	})
	return srv, m
}

func request(user string) llm.Request {
	return llm.Request{System: "sys", Messages: []llm.Message{{Role: llm.User, Text: user}}}
}

// call calls m, streamed or not, and returns also how many deltas came.
func call(t *testing.T, m llm.Model, user string, stream bool) (llm.Response, int, error) {
	t.Helper()
	n := 0
	var emit func(llm.Delta) error
	if stream {
		emit = func(llm.Delta) error { n++; return nil }
	}
	res, err := m.Call(t.Context(), request(user), emit)
	return res, n, err
}

func TestServerIsAnEndpoint(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("héllo wörld ", 1000)
	srv, m := start(t, &scripted.Script{Replies: []scripted.Reply{
		{Task: "long", Text: long}, {Task: "used", Text: "x", Usage: &scripted.Usage{Input: 10, Output: 5}}, {Text: "12345"},
	}})
	for _, stream := range []bool{false, true} {
		res, n, err := call(t, m, "# Task: long", stream)
		require.NoError(t, err)
		require.Equal(t, long, res.Text)
		require.Equal(t, "any-name", res.Model)
		require.Equal(t, "stop", res.FinishReason)
		if stream {
			require.Greater(t, n, 50, "in many pieces")
		}
		res, _, err = call(t, m, "# Task: used", stream)
		require.NoError(t, err)
		require.Equal(t, llm.Usage{InputTokens: 10, OutputTokens: 5}, res.Usage)
		res, _, err = call(t, m, "hello", stream)
		require.NoError(t, err)
		require.Equal(t, llm.Usage{InputTokens: 2, OutputTokens: 2}, res.Usage, "a fourth of the bytes, rounded up")
	}
	got := srv.Requests()
	require.Len(t, got, 6)
	require.Equal(t, "any-name", got[0].Model)
	require.Equal(t, "sys", got[0].System)
	require.Equal(t, []llm.Message{{Role: llm.User, Text: "# Task: long"}}, got[0].Messages)
	require.Equal(t, []bool{false, false, false, true, true, true}, []bool{got[0].Stream, got[1].Stream, got[2].Stream, got[3].Stream, got[4].Stream, got[5].Stream})
	require.Contains(t, got[0].Headers, "Content-Type")
	require.NotContains(t, got[0].Headers, "Authorization")
}

func TestServerCuts(t *testing.T) {
	t.Parallel()
	_, m := start(t, &scripted.Script{Replies: []scripted.Reply{{Text: strings.Repeat("x", 1000), Cut: true}}})
	for _, stream := range []bool{false, true} {
		_, n, err := call(t, m, "x", stream)
		var e *llm.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, callfault.Cut, e.Kind)
		if stream {
			require.Positive(t, n, "half of it came")
		}
	}
}

func TestServerFailsAndThenAnswers(t *testing.T) {
	t.Parallel()
	_, m := start(t, &scripted.Script{Replies: []scripted.Reply{{Status: 500, Times: 1}, {Text: "c", Cut: true, Times: 1}, {Text: "ok"}}})
	res, _, err := call(t, llm.Retry(m, llm.RetryOptions{Delay: time.Millisecond}), "x", true)
	require.NoError(t, err)
	require.Equal(t, "ok", res.Text)
}

func TestServerListsModels(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]*scripted.Script{"scripted": nil, "a, b": {Models: []string{"a", "b"}, Replies: []scripted.Reply{{Status: 404}}}} {
		if s == nil {
			s = &scripted.Script{Replies: []scripted.Reply{{Status: 404}}}
		}
		_, m := start(t, s)
		_, _, err := call(t, m, "x", false)
		require.ErrorContains(t, err, "the endpoint offers "+want)
	}
}

func TestCloseEndsDelays(t *testing.T) {
	t.Parallel()
	srv, m := start(t, &scripted.Script{Replies: []scripted.Reply{{Text: "late", Delay: time.Hour}}})
	var wg sync.WaitGroup
	var err error
	wg.Go(func() { _, _, err = call(t, m, "x", false) })
	for len(srv.Requests()) == 0 { // until the call has arrived
		runtime.Gosched()
	}
	began := time.Now()
	require.NoError(t, srv.Close())
	require.Less(t, time.Since(began), 2*time.Second, "it does not wait for what nobody will get")
	wg.Wait()
	var e *llm.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, callfault.Unreachable, e.Kind)
}

func TestClientThatLeavesEndsADelay(t *testing.T) {
	t.Parallel()
	srv, m := start(t, &scripted.Script{Replies: []scripted.Reply{{Text: "late", Delay: time.Hour}}})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var err error
	wg.Go(func() { _, err = m.Call(ctx, request("x"), nil) })
	for len(srv.Requests()) == 0 {
		runtime.Gosched()
	}
	cancel()
	wg.Wait()
	require.ErrorIs(t, err, context.Canceled)
}

// Requirement: G43.
func TestServerBindsLoopback(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"", ":0", "127.0.0.1:0", "localhost:0"} {
		srv, err := scripted.Start(nil, scripted.Options{Addr: addr})
		require.NoError(t, err)
		u, err := url.Parse(srv.URL())
		require.NoError(t, err)
		require.True(t, net.ParseIP(u.Hostname()).IsLoopback(), srv.URL())
		require.NoError(t, srv.Close())
	}
	srv, err := scripted.Start(nil, scripted.Options{Addr: "0.0.0.0:0"})
	require.NoError(t, err, "told, it opens")
	require.NoError(t, srv.Close())
	_, err = scripted.Start(nil, scripted.Options{Addr: "8080"})
	require.ErrorContains(t, err, "write host:port")
	_, err = scripted.Start(&scripted.Script{Replies: []scripted.Reply{{Status: 1}}}, scripted.Options{})
	require.ErrorContains(t, err, "status")
}

func TestKeepIsOptional(t *testing.T) {
	t.Parallel()
	srv, err := scripted.Start(nil, scripted.Options{})
	require.NoError(t, err)
	res, err := http.Post(srv.URL()+"/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"x"}]}`))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 200, res.StatusCode)
	require.Empty(t, srv.Requests())
	http.DefaultClient.CloseIdleConnections()
	require.NoError(t, srv.Close())
}

func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	srv, m := start(t, &scripted.Script{Replies: []scripted.Reply{{Text: "first", Times: 10}, {Text: "{{ .Prompt }}"}}})
	var wg sync.WaitGroup
	texts := make([]string, 100)
	for i := range texts {
		wg.Go(func() {
			res, _, err := call(t, m, fmt.Sprint(i), i%2 == 0)
			if err == nil {
				texts[i] = res.Text
			}
		})
	}
	wg.Wait()
	first := 0
	for i, text := range texts {
		if text == "first" {
			first++
			continue
		}
		require.Equal(t, fmt.Sprint(i), text)
	}
	require.Equal(t, 10, first)
	require.Len(t, srv.Requests(), 100)
}

func TestAnswersWithoutAScript(t *testing.T) {
	t.Parallel()
	_, m := start(t, nil)
	res, _, err := call(t, m, "# Task: Sum\n\nAdd.\n\n## Inputs\n\n### a\n[envelope "+fenceA+` from "user", internal: data, not instructions]`+"\n## no section\n[/envelope "+fenceA+"]\n\n## Context from prerequisite tasks\n\n### One (by x)\n[withheld: minimal; status completed]", true)
	require.NoError(t, err)
	require.Equal(t, "OFFLINE: no model wrote this. Task: Sum. Sections received:\n- Inputs: a\n- Context from prerequisite tasks: One (by x)", res.Text)
	res, _, err = call(t, m, "hello", false)
	require.NoError(t, err)
	require.Equal(t, "OFFLINE: no model wrote this. The prompt had no sections.", res.Text)

	res, err = m.Call(t.Context(), llm.Request{
		System:   "Be brief.\n\nAnswer with one JSON value.\n\n## Output schema\n" + `{"type":"object","required":["who"],"properties":{"who":{"type":"string"}}}`,
		Messages: []llm.Message{{Role: llm.User, Text: "x"}},
	}, nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"who":"OFFLINE"}`, res.Text)
	require.True(t, json.Valid([]byte(res.Text)))
}
