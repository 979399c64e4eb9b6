package openai_test

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

// sent returns the body that a request becomes.
func sent(t *testing.T, cfg openai.Config, req llm.Request) map[string]json.RawMessage {
	t.Helper()
	var body map[string]json.RawMessage
	cfg.BaseURL = serve(t, func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(&body)
		sayJSON(200, whole)(w, r)
	})
	_, err := modelOf(t, cfg).Call(t.Context(), req, nil)
	require.NoError(t, err)
	return body
}

func TestSettingsAreSentAsTheyAre(t *testing.T) {
	t.Parallel()
	tests := []struct {
		give *float64
		want string
	}{{nil, ""}, {new(0.0), "0"}, {new(0.7), "0.7"}, {new(1.0), "1"}, {new(2.0), "2"}}
	for _, tt := range tests {
		body := sent(t, openai.Config{Model: "m"}, llm.Request{Messages: hello.Messages, Settings: llm.Settings{Temperature: tt.give, TopP: tt.give}})
		require.Equal(t, tt.want, string(body["temperature"]), "the client would drop a zero and round the rest")
		require.Equal(t, tt.want, string(body["top_p"]))
		require.NotContains(t, body, "max_tokens")
		require.NotContains(t, body, "max_completion_tokens")
	}
}

func TestModelNameDoesNotAffectRequest(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"o1", "o1-mini", "o3-local", "o4-mini", "gpt-5-nano", "gpt-6-sol", "text-davinci-003", "code-cushman-001", "llama3"} {
		body := sent(t, openai.Config{Model: name}, llm.Request{Messages: hello.Messages, Settings: llm.Settings{MaxTokens: 50, Temperature: new(0.2), TopP: new(0.5)}})
		require.JSONEq(t, `"`+name+`"`, string(body["model"]))
		require.Equal(t, "50", string(body["max_tokens"]), name)
		require.Equal(t, "0.2", string(body["temperature"]), name)
		require.Equal(t, "0.5", string(body["top_p"]), name)
	}
}

func TestMaxTokensKey(t *testing.T) {
	t.Parallel()
	body := sent(t, openai.Config{Model: "o3", MaxTokensKey: "max_completion_tokens"}, llm.Request{Messages: hello.Messages, Settings: llm.Settings{MaxTokens: 50}})
	require.Equal(t, "50", string(body["max_completion_tokens"]))
	require.NotContains(t, body, "max_tokens")
}

// roundTrip is a transport that answers itself.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestOpenAIGetsMaxCompletionTokens(t *testing.T) {
	t.Parallel()
	var body map[string]json.RawMessage
	var to string
	m := modelOf(t, openai.Config{Model: "gpt-5", APIKey: openai.NewKey(fakeKey), HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		_ = json.NewDecoder(r.Body).Decode(&body)
		to = r.URL.String() + " " + r.Header.Get("Authorization")
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(whole)), Request: r}, nil
	})}})
	_, err := m.Call(t.Context(), llm.Request{Messages: hello.Messages, Settings: llm.Settings{MaxTokens: 9}}, nil)
	require.NoError(t, err)
	require.Equal(t, "https://api.openai.com/v1/chat/completions Bearer "+fakeKey, to)
	require.Equal(t, "9", string(body["max_completion_tokens"]))
	require.NotContains(t, body, "max_tokens", "its reasoning models refuse it")
}

func TestNumbersThatJSONCannotWrite(t *testing.T) {
	t.Parallel()
	m := model(t, answer)
	_, err := m.Call(t.Context(), llm.Request{Messages: hello.Messages, Settings: llm.Settings{Temperature: new(math.NaN())}}, nil)
	var e *llm.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, callfault.BadRequest, e.Kind)
}

func TestRefusedStreamOptions(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	m := model(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		raw, _ := io.ReadAll(r.Body)
		if strings.Contains(string(raw), "stream_options") {
			sayJSON(422, `{"detail":[{"msg":"extra fields not permitted"}],"message":"unknown field stream_options"}`)(w, r)
			return
		}
		events(chunkHi, chunkYou, chunkEnd, done)(w, r)
	})
	for _, want := range []int32{2, 3} {
		res, err := call(t, m, true)
		require.NoError(t, err)
		require.Equal(t, "hi there", res.Text)
		require.Zero(t, res.Usage)
		require.Equal(t, want, calls.Load(), "it asks once only")
	}
}

// Endpoints that read the arguments of earlier calls refuse all but JSON objects.
func TestArgumentsOfEarlierCallsAreObjects(t *testing.T) {
	t.Parallel()
	for give, want := range map[string]string{
		`{"q": 1}`:   `{"q": 1}`,
		" {}\n":      " {}\n",
		"":           "{}",
		" ":          "{}",
		`{"q": "x`:   `{"arguments":"{\"q\": \"x"}`,
		`"{\"q\": "`: `{"arguments":"\"{\\\"q\\\": \""}`,
		"[1]":        `{"arguments":"[1]"}`,
		"null":       `{"arguments":"null"}`,
		"{} {}":      `{"arguments":"{} {}"}`,
	} {
		body := sent(t, openai.Config{Model: "m"}, llm.Request{Messages: []llm.Message{
			{Role: llm.User, Text: "x"}, {Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "1", Name: "search", Arguments: give}}}, {Role: llm.ToolResult, ToolCallID: "1", Text: "no"},
		}})
		var messages []struct {
			ToolCalls []struct {
				Function struct{ Arguments string }
			} `json:"tool_calls"`
		}
		require.NoError(t, json.Unmarshal(body["messages"], &messages))
		require.Equal(t, want, messages[1].ToolCalls[0].Function.Arguments, give)
	}
}
