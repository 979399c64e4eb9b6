package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeKey is not a real key.
const fakeKey = "sk-" + "fake-0123456789abcdef"

// serve returns the base URL of a server, which ends with the test.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// model returns a model behind h.
func model(t *testing.T, h http.HandlerFunc) *openai.Model {
	t.Helper()
	return modelOf(t, openai.Config{Model: "m", BaseURL: serve(t, h)})
}

func modelOf(t *testing.T, cfg openai.Config) *openai.Model {
	t.Helper()
	m, err := openai.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// hello is a request that says something worth hiding.
var hello = llm.Request{System: "You are an adjuster.", Messages: []llm.Message{{Role: llm.User, Text: "# Task: the canary-of-the-prompt sings"}}}

// call calls m, streamed or not. The response has no endpoint, which is checked.
func call(t *testing.T, m llm.Model, stream bool) (llm.Response, error) {
	t.Helper()
	var emit func(llm.Delta) error
	var text strings.Builder
	if stream {
		emit = func(d llm.Delta) error {
			require.Equal(t, 1, d.Attempt)
			text.WriteString(d.Text)
			return nil
		}
	}
	res, err := m.Call(t.Context(), hello, emit)
	if stream && err == nil {
		require.Equal(t, res.Text, text.String(), "the deltas are the text")
	}
	if base := endpoint.Of(m); err == nil && base != "" {
		require.Equal(t, base, res.Endpoint)
	}
	res.Endpoint, res.FirstTokenMs = "", 0
	return res, err
}

// failure returns the error of a call, which must be one.
func failure(t *testing.T, m llm.Model, stream bool) *llm.Error {
	t.Helper()
	_, err := call(t, m, stream)
	var e *llm.Error
	require.ErrorAs(t, err, &e)
	require.NotContains(t, err.Error(), "canary-of-the-prompt")
	require.NotContains(t, err.Error(), "\n")
	return e
}

// both runs a test with and without streaming.
func both(t *testing.T, test func(t *testing.T, stream bool)) {
	t.Helper()
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream=%t", stream), func(t *testing.T) {
			t.Parallel()
			test(t, stream)
		})
	}
}

// say writes a body of a type.
func say(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func sayJSON(status int, body string) http.HandlerFunc { return say(status, "application/json", body) }

// events writes lines as a stream of events.
func events(lines ...string) http.HandlerFunc {
	return say(200, "text/event-stream", strings.Join(lines, "\n")+"\n")
}

const (
	whole    = `{"model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"hi there"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2}}`
	chunkHi  = `data: {"model":"m-1","choices":[{"index":0,"delta":{"content":"hi "},"finish_reason":null}]}`
	chunkYou = `data: {"model":"m-1","choices":[{"index":0,"delta":{"content":"there"}}]}`
	chunkEnd = `data: {"model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	chunkUse = `data: {"model":"m-1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}`
	done     = `data: [DONE]`
)

var good = llm.Response{Text: "hi there", CallInfo: llm.CallInfo{FinishReason: "stop", Model: "m-1"}, Usage: llm.Usage{InputTokens: 7, OutputTokens: 2}}

// answer answers a valid request with a valid reply.
func answer(w http.ResponseWriter, r *http.Request) {
	var body struct{ Stream bool }
	_ = json.NewDecoder(r.Body).Decode(&body)
	if body.Stream {
		events(chunkHi, "", chunkYou, "", chunkEnd, "", chunkUse, "", done)(w, r)
		return
	}
	sayJSON(200, whole)(w, r)
}

func TestCall(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, stream bool) {
		var path string
		var body map[string]any
		m := model(t, func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			_ = json.Unmarshal(raw, &body)
			path = r.Method + " " + r.URL.Path
			r.Body = io.NopCloser(strings.NewReader(string(raw)))
			answer(w, r)
		})
		res, err := call(t, m, stream)
		require.NoError(t, err)
		require.Equal(t, good, res)
		require.Equal(t, "POST /v1/chat/completions", path)
		want := map[string]any{
			"model": "m", "stream": stream,
			"messages": []any{
				map[string]any{"role": "system", "content": hello.System},
				map[string]any{"role": "user", "content": hello.Messages[0].Text},
			},
		}
		if stream {
			want["stream_options"] = map[string]any{"include_usage": true}
		}
		require.Equal(t, want, body, "what is not set is not sent")
	})
}

func TestModelNameAndEndpoint(t *testing.T) {
	t.Parallel()
	m := modelOf(t, openai.Config{Model: "m", BaseURL: "http://LOCALHOST:11434/v1/", APIKey: openai.NewKey(fakeKey)})
	require.Equal(t, "m", m.Name())
	require.Equal(t, "http://localhost:11434/v1", m.Endpoint())
	require.Equal(t, "m at http://localhost:11434/v1", fmt.Sprint(m))
	require.NoError(t, m.Close(), "and again at the end of the test")
}

func TestToolCalls(t *testing.T) {
	t.Parallel()
	want := []llm.ToolCall{{ID: "c1", Name: "read", Arguments: `{"path":"a"}`}, {ID: "c2", Name: "list", Arguments: `{}`}}
	whole := `{"choices":[{"message":{"content":null,"tool_calls":[
		{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}},
		{"id":"c2","type":"function","function":{"name":"list","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`
	piece := func(s string) string { return `data: {"choices":[{"delta":{"tool_calls":[` + s + `]}}]}` }
	parts := events(
		piece(`{"index":0,"id":"c1","type":"function","function":{"name":"read","arguments":""}}`),
		piece(`{"index":0,"function":{"arguments":"{\"path\":"}}`),
		piece(`{"index":0,"function":{"arguments":"\"a\"}"}}`),
		piece(`{"index":1,"id":"c2","function":{"name":"list","arguments":"{}"}}`),
		`data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`, done)
	for stream, h := range map[bool]http.HandlerFunc{false: sayJSON(200, whole), true: parts} {
		res, err := call(t, model(t, h), stream)
		require.NoError(t, err)
		require.Empty(t, res.Text)
		require.Equal(t, "tool_calls", res.FinishReason)
		require.Equal(t, want, res.ToolCalls)
	}
	res, err := call(t, model(t, events(piece(`{"index":4000000000,"id":"x","function":{"name":"read"}}`), `data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`, done)), true)
	require.NoError(t, err)
	require.Len(t, res.ToolCalls, 1, "an index is no way to make memory grow")
}

// A prompt may name a tool, and the fence of its result does.
func TestOfferedToolsKeepTheirNames(t *testing.T) {
	t.Parallel()
	said := func(name string) string {
		res, err := model(t, sayJSON(200, `{"choices":[{"message":{"tool_calls":[{"id":"1","function":{"name":"`+name+`","arguments":"{}"}}]}}]}`)).Call(t.Context(), llm.Request{
			Messages: []llm.Message{{Role: llm.User, Text: "Call memory__open_nodes, not memory__delete_all."}}, Tools: []llm.Tool{{Name: "memory__open_nodes"}},
		}, nil)
		require.NoError(t, err)
		return res.ToolCalls[0].Name
	}
	require.Equal(t, "memory__open_nodes", said("memory__open_nodes"))
	require.Equal(t, "[prompt]", said("memory__delete_all"), "which is not offered")
}

func TestEmitEndsTheCall(t *testing.T) {
	t.Parallel()
	full := io.ErrShortWrite
	_, err := model(t, answer).Call(t.Context(), hello, func(llm.Delta) error { return full })
	require.ErrorIs(t, err, full)
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		give openai.Config
		want string
	}{
		{"no model", openai.Config{BaseURL: "http://h/v1"}, "no model is set"},
		{"no key", openai.Config{Model: "m"}, "set OPENAI_API_KEY"},
		{"a password", openai.Config{Model: "m", BaseURL: "http://u:hunter2@h/v1"}, "user or password"},
		{"no scheme", openai.Config{Model: "m", BaseURL: "localhost:11434/v1"}, "write scheme and host"},
		{"another scheme", openai.Config{Model: "m", BaseURL: "ftp://h/v1"}, "write scheme and host"},
		{"a query", openai.Config{Model: "m", BaseURL: "http://h/v1?key=hunter2"}, "leave out what follows the path"},
		{"plain text to OpenAI", openai.Config{Model: "m", BaseURL: "http://api.openai.com/v1"}, "write https"},
		{"a key of two lines", openai.Config{Model: "m", BaseURL: "http://h/v1", APIKey: openai.NewKey("hunter2\nx")}, "whitespace"},
		{"a header of ours", openai.Config{Model: "m", BaseURL: "http://h/v1", Headers: map[string]string{"host": "x"}}, `header "host" cannot be set`},
		{"a forged header", openai.Config{Model: "m", BaseURL: "http://h/v1", Headers: map[string]string{"X": "hunter2\r\nY: z"}}, "control character"},
		{"not a header", openai.Config{Model: "m", BaseURL: "http://h/v1", Headers: map[string]string{"X Y": "z"}}, "invalid name"},
		{"a name for the tokens", openai.Config{Model: "m", BaseURL: "http://h/v1", MaxTokensKey: "n"}, "write max_tokens or"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := openai.New(tt.give)
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
	_, err := openai.New(openai.Config{Model: "m"})
	require.ErrorIs(t, err, llm.ErrNoKey)
	_, err = openai.New(openai.Config{BaseURL: "http://h/v1"})
	require.ErrorIs(t, err, llm.ErrNoModel)
}
