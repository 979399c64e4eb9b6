package scripted_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/runteam/runteam/internal/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask sends one user message to a script and returns the status and the body.
func ask(t *testing.T, s *scripted.Script, system, user string) (int, string) {
	t.Helper()
	h, err := scripted.New(s, false)
	require.NoError(t, err)
	return post(t, h, system, user)
}

func post(t require.TestingT, h http.Handler, system, user string) (int, string) {
	body, err := json.Marshal(map[string]any{"model": "m", "messages": []map[string]any{
		{"role": "system", "content": system}, {"role": "user", "content": user},
	}})
	require.NoError(t, err)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", bytes.NewReader(body)))
	return w.Code, w.Body.String()
}

// answerOf returns the text of an answer.
func answerOf(t *testing.T, s *scripted.Script, system, user string) string {
	t.Helper()
	status, body := ask(t, s, system, user)
	require.Equal(t, 200, status, body)
	return textOf(t, body)
}

// said returns the text of an endpoint's answer.
func said(t require.TestingT, h http.Handler, system, user string) string {
	status, body := post(t, h, system, user)
	require.Equal(t, 200, status, body)
	return textOf(t, body)
}

func textOf(t require.TestingT, body string) string {
	var c struct {
		Choices []struct{ Message struct{ Content string } }
	}
	require.NoError(t, json.Unmarshal([]byte(body), &c))
	require.Len(t, c.Choices, 1)
	return c.Choices[0].Message.Content
}

func TestFirstMatchWins(t *testing.T) {
	t.Parallel()
	s := &scripted.Script{Replies: []scripted.Reply{
		{Task: " extract FACTS ", System: "Adjuster", Text: "both"},
		{Task: "Extract facts", Text: "task"},
		{System: "lawyer", Text: "system"},
		{Text: "any"},
	}}
	tests := []struct{ system, user, want string }{
		{"You are an adjuster.", "# Task: Extract facts\n\nDo it.", "both"},
		{"You are a clerk.", "# Task: Extract facts", "task"},
		{"You are a lawyer.", "# Task: Extract facts and more", "system"},
		{"", "# Task: Extract", "any"},
		{"", "Hello\n# Task: Extract facts", "any"}, // the first line only
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, answerOf(t, s, tt.system, tt.user))
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	h, err := scripted.New(&scripted.Script{Replies: []scripted.Reply{
		{Task: "a", Status: 503, Times: 2}, {Task: "a", Text: "ok"},
	}}, false)
	require.NoError(t, err)
	for _, want := range []int{503, 503, 200, 200} {
		status, _ := post(t, h, "", "# Task: a")
		require.Equal(t, want, status)
	}
	h, err = scripted.New(&scripted.Script{Replies: []scripted.Reply{{Text: "once", Times: 1}}}, false)
	require.NoError(t, err)
	_, body := post(t, h, "", "x")
	require.Equal(t, "once", textOf(t, body))
	_, body = post(t, h, "", "x")
	require.Contains(t, textOf(t, body), "OFFLINE", "after the last, as without a script")
}

func TestFailures(t *testing.T) {
	t.Parallel()
	h, err := scripted.New(&scripted.Script{Replies: []scripted.Reply{
		{Task: "limit", Status: 429, RetryAfter: 1500 * 1e6},
		{Task: "html", Status: 502, Body: "<html>"},
		{Task: "ok", Body: `{"error": "x"}`},
	}}, false)
	require.NoError(t, err)
	do := func(task string) *http.Response {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions",
			strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"# Task: `+task+`"}]}`)))
		return w.Result()
	}
	res := do("limit")
	require.Equal(t, 429, res.StatusCode)
	require.Equal(t, "2", res.Header.Get("Retry-After"), "whole seconds, not less")
	body, _ := io.ReadAll(res.Body)
	require.JSONEq(t, `{"error":{"message":"the script says 429","type":"invalid_request_error","param":null,"code":"scripted"}}`, string(body))
	res = do("html")
	body, _ = io.ReadAll(res.Body)
	require.Equal(t, "502 <html>", res.Status[:3]+" "+string(body))
	require.Contains(t, res.Header.Get("Content-Type"), "text/html")
	res = do("ok")
	require.Equal(t, 200, res.StatusCode)
	require.Equal(t, "application/json", res.Header.Get("Content-Type"))
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	h, err := scripted.New(nil, true)
	require.NoError(t, err)
	tests := []struct {
		name, method, path, body string
		status                   int
		want                     string
	}{
		{"not JSON", "POST", "/v1/chat/completions", "hi", 400, "not JSON"},
		{"no model", "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}]}`, 400, "model is missing"},
		{"no messages", "POST", "/v1/chat/completions", `{"model":"m"}`, 400, "messages is empty"},
		{"a strange role", "POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"king","content":"x"}]}`, 400, `unknown role`},
		{"a strange content", "POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":7}]}`, 400, "neither a text"},
		{"too large", "POST", "/v1/chat/completions", `{"model":"` + strings.Repeat("m", scripted.MaxRequest) + `"}`, 413, "too large"},
		{"another method", "GET", "/v1/chat/completions", "", 405, "does not take GET"},
		{"another method", "POST", "/v1/models", "", 405, "does not take POST"},
		{"no /v1", "POST", "/chat/completions", "{}", 404, "the base URL ends in /v1"},
	}
	for _, tt := range tests {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.body)))
		require.Equal(t, tt.status, w.Code, tt.name)
		var body struct {
			Error struct{ Message, Type string }
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body), tt.name)
		require.Contains(t, body.Error.Message, tt.want)
		require.Equal(t, "invalid_request_error", body.Error.Type)
	}
	require.Empty(t, h.Requests())
}

func TestRequestsOfPagesFromElsewhereAreRefused(t *testing.T) {
	t.Parallel()
	h, err := scripted.New(nil, true)
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"x"}]}`))
	r.Header.Set("Origin", "https://evil.example")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, 403, w.Code)
	require.Empty(t, h.Requests())
}

func TestContentInParts(t *testing.T) {
	t.Parallel()
	h, err := scripted.New(&scripted.Script{Replies: []scripted.Reply{{Text: "{{ .System }}|{{ .Prompt }}|{{ .Last }}|{{ .Turn }}"}}}, true)
	require.NoError(t, err)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[
		{"role":"developer","content":[{"type":"text","text":"s"}]},
		{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
		{"role":"assistant","content":null}, {"role":"user","content":"c"}]}`)))
	require.Equal(t, "s|ab\n\nc|c|2", textOf(t, w.Body.String()))
	require.Len(t, h.Requests()[0].Messages, 3)
}

func TestScriptsInGoAreChecked(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]scripted.Reply{
		"reply 1: status: want a number":      {Status: 42},
		"remove one of them":                  {Text: "x", Status: 500},
		"only a text can be cut":              {Body: "x", Cut: true},
		"only a text has one":                 {Body: "x", Usage: &scripted.Usage{}},
		"goes with a status from 400":         {Text: "x", RetryAfter: 1},
		"not below zero":                      {Text: "x", Delay: -1},
		`canceled or interrupted, not "late"`: {Ended: "late"},
		`interrupted, not "child 1 timeout"`:  {Ended: "child 1 timeout"},
		`interrupted, not "child 0 timeout"`:  {Ended: "child 0 timeout"},
		`interrupted, not "parent timeout"`:   {Ended: "parent timeout"},
		"ended: a call that ended without":    {Ended: "timeout", Text: "x"},
		"has no text, toolCalls, status":      {Ended: "canceled", Status: 500},
		"reply 1: text: ":                     {Text: "{{ nope }}"},
	} {
		_, err := scripted.New(&scripted.Script{Replies: []scripted.Reply{r}}, false)
		require.ErrorContains(t, err, want)
	}
}
