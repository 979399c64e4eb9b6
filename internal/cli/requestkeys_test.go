package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/llm/openai"
	"github.com/stretchr/testify/require"
)

// Every key of a spec that sets something in a request is sent, here to an endpoint with the
// api-version of Azure.
func TestKeysOfRequestsAreSent(t *testing.T) {
	t.Parallel()
	var body map[string]any
	var query string
	var header http.Header
	server := serveModel(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		raw, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(raw, &body)
		query, header = r.URL.RawQuery, r.Header
		reply(w, "fine")
	})
	const file = `
model: test-model
agents:
  - name: solo
    systemPrompt: You answer.
    maxTokens: 50
    maxTokensKey: max_completion_tokens
    temperature: 0.5
    topP: 0.9
    frequencyPenalty: -0.5
    presencePenalty: 0.25
    seed: 7
    stop: [END]
    reasoningEffort: low
    systemRole: developer
    extraBody: {min_p: 0.1, chat_template_kwargs: {enable_thinking: false}}
tasks:
  - {title: Answer, description: Answer., assignee: solo}
`
	env := map[string]string{"OPENAI_BASE_URL": server.URL + "/v1?api-version=2024-10-21", "OPENAI_API_KEY": "azure-not-a-real-key"}
	got := call{args: []string{"run", "-", "-o", "json"}, stdin: file, env: env}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	messages, _ := body["messages"].([]any)
	require.Len(t, messages, 2)
	require.Equal(t, "developer", messages[0].(map[string]any)["role"])
	delete(body, "messages")
	require.Equal(t, map[string]any{
		"model": "test-model", "stream": false, "max_completion_tokens": 50.0, "temperature": 0.5, "top_p": 0.9, "frequency_penalty": -0.5, "presence_penalty": 0.25,
		"seed": 7.0, "stop": []any{"END"}, "reasoning_effort": "low", "min_p": 0.1, "chat_template_kwargs": map[string]any{"enable_thinking": false},
	}, body)
	require.Equal(t, "api-version=2024-10-21", query)
	require.Equal(t, "azure-not-a-real-key", header.Get("Api-Key"))
	require.Empty(t, header.Get("Authorization"))
	require.NotContains(t, got.stdout+got.stderr, "azure-not-a-real-key")
}

// If an endpoint refuses a setting of one agent, the other agents with that model omit it too, and the
// run warns of omitted settings.
func TestAgentsShareRefusedSettings(t *testing.T) {
	t.Parallel()
	var refused atomic.Int32
	server := serveModel(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		raw, _ := io.ReadAll(r.Body)
		for _, key := range []string{"max_tokens", "temperature"} {
			if strings.Contains(string(raw), `"`+key+`":`) {
				refused.Add(1)
				refuseWith(w, 400, "unsupported_parameter", "Unsupported parameter: '"+key+"' is not supported with this model.")
				return
			}
		}
		reply(w, "fine")
	})
	const file = `
model: test-model
agentDefaults: {maxTokens: 50, temperature: 0}
agents: [{name: a}, {name: b}, {name: c}]
tasks:
  - {title: First, description: Answer., assignee: a}
  - {title: Second, description: Answer., assignee: b, dependsOn: [First]}
  - {title: Third, description: Answer., assignee: c, dependsOn: [Second]}
`
	got := call{args: []string{"run", "-"}, stdin: file, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, int32(2), refused.Load())
	require.Contains(t, got.stderr, `agent "a": temperature: the endpoint does not take it for this model; requests are sent without it`)
}

// A member that the client does not accept in extraBody is an error of the file, with its position.
// The client accepts all other members.
func TestExtraBodyIsRefusedEarly(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"model", "models", "messages", "prompt", "stream", "stream_options", "max_tokens", "max_completion_tokens", "temperature", "top_p", "frequency_penalty",
		"presence_penalty", "seed", "stop", "reasoning_effort", "response_format", "n", "best_of", "tools", "tool_choice", "parallel_tool_calls", "functions",
		"function_call", "user", "min_p", "provider", "MODEL", "logit_bias", "a b",
	} {
		_, err := openai.New(openai.Config{Model: "m", BaseURL: "http://localhost/v1", ExtraBody: json.RawMessage(`{"` + name + `":1}`)})
		_, bad := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(`agents: [{name: a, extraBody: {"` + name + `": 1}}]`)})
		require.Equal(t, err == nil, bad == nil, "%s: %v, %v", name, err, bad)
	}
}

// Each value of structuredOutput decides how an outputSchema is sent, here to an endpoint that refuses
// every schema.
func TestStructuredOutputIsSent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		value string
		sent  []any // the type of response_format in each request
		fails string
	}{
		{"auto", []any{"json_schema", "json_schema", "json_object"}, ""},
		{"schema", []any{"json_schema", "json_schema"}, "structuredOutput is schema: set it to auto or prompt"},
		{"object", []any{"json_object"}, ""},
		{"prompt", []any{nil}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.value, func(t *testing.T) {
			t.Parallel()
			var sent []any
			server := serveModel(t, func(w http.ResponseWriter, r *http.Request, _ int) {
				var body struct {
					Format struct {
						Type any `json:"type"`
					} `json:"response_format"`
				}
				_ = json.NewDecoder(r.Body).Decode(&body)
				if sent = append(sent, body.Format.Type); body.Format.Type == "json_schema" {
					w.WriteHeader(http.StatusBadRequest)
					_, _ = io.WriteString(w, `{"error":{"message":"This response_format type is unavailable now"}}`)
					return
				}
				reply(w, `{"ok": true}`)
			})
			file := `
model: test-model
structuredOutput: ` + tt.value + `
agents: [{name: solo}]
tasks:
  - title: Answer
    assignee: solo
    description: Answer.
    outputSchema: {type: object, properties: {ok: {type: boolean}}, required: [ok], additionalProperties: false}
`
			got := call{args: []string{"run", "-", "-o", "json"}, stdin: file, env: map[string]string{"OPENAI_BASE_URL": server.URL + "/v1"}}.run(t)
			require.Equal(t, tt.sent, sent)
			if tt.fails != "" {
				require.NotEqual(t, exit.StatusOK, got.status)
				require.Contains(t, got.stdout+got.stderr, tt.fails)
				return
			}
			require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			require.Contains(t, got.stdout, `{\"ok\": true}`)
		})
	}
}
