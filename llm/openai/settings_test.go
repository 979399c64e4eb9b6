package openai_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/connection"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

// everything is a request that sets all there is.
func everything() llm.Request {
	return llm.Request{
		System: "You are an adjuster.", Messages: []llm.Message{{Role: llm.User, Text: "Hello, model."}},
		Settings: llm.Settings{MaxTokens: 50, Temperature: new(0.2), TopP: new(0.5), FrequencyPenalty: new(-1.5), PresencePenalty: new(0.0), Seed: new(int64(7)), Stop: []string{"END", "\n\n"}, ReasoningEffort: "low"},
	}
}

// refusing returns a server that records each request and answers it, unless refused
// returns a status.
func refusing(sent *bodies, refused func(body string) (status int, refusal string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if status, refusal := refused(sent.record(r)); status != 0 {
			sayJSON(status, refusal)(w, r)
			return
		}
		sayJSON(200, whole)(w, r)
	}
}

// TestEverySettingIsSent checks the names and values of all settings.
func TestEverySettingIsSent(t *testing.T) {
	t.Parallel()
	body := sent(t, openai.Config{Model: "m", ExtraBody: json.RawMessage(` {"min_p": 0.1, "provider": {"order": ["a"]}} `)}, everything())
	for key, want := range map[string]string{
		"max_tokens": `50`, "temperature": `0.2`, "top_p": `0.5`, "frequency_penalty": `-1.5`, "presence_penalty": `0`,
		"seed": `7`, "stop": `["END","\n\n"]`, "reasoning_effort": `"low"`, "min_p": `0.1`, "provider": `{"order":["a"]}`, "model": `"m"`,
	} {
		require.JSONEq(t, want, string(body[key]), key)
	}
	body = sent(t, openai.Config{Model: "m"}, hello)
	require.Len(t, body, 3, "what is not set is not sent: model, messages and stream remain")
}

// TestRefusedSettings sends requests to servers that refuse a part of them, in the
// words of real providers. The user sees the answer, and a warning if something was
// left out. The second call knows what the first one learned.
func TestRefusedSettings(t *testing.T) {
	t.Parallel()
	openAI := func(message, param, code string) string {
		return `{"error":{"message":` + quoted(message) + `,"type":"invalid_request_error","param":` + quoted(param) + `,"code":` + quoted(code) + `}}`
	}
	plain := func(message string) string { return `{"error":{"message":` + quoted(message) + `}}` }
	extra := func(field string) string {
		return `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body",` + quoted(field) + `],"msg":"Extra inputs are not permitted","input":1}]},"type":"invalid_request_error","param":null,"code":null}`
	}
	tests := []struct {
		provider, member string // what the server refuses
		status           int
		refusal          string
		instead          string // what has to be sent in its place
		warning          string
	}{
		{"OpenAI o3", "max_tokens", 400, openAI("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "max_tokens", "unsupported_parameter"), "max_completion_tokens", ""},
		{"Azure o1", "max_tokens", 400, openAI("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "max_tokens", "unsupported_parameter"), "max_completion_tokens", ""},
		{"OpenAI o3", "temperature", 400, openAI("Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.", "temperature", "unsupported_value"), "", "temperature"},
		{"OpenAI o3", "top_p", 400, openAI("Unsupported parameter: 'top_p' is not supported with this model.", "top_p", "unsupported_parameter"), "", "top_p"},
		{"OpenAI o1", "presence_penalty", 400, openAI("Unsupported value: 'presence_penalty' does not support 0 with this model. Only the default (0) value is supported.", "presence_penalty", "unsupported_value"), "", "presence_penalty"},
		{"OpenAI gpt-4o", "reasoning_effort", 400, openAI("Unrecognized request argument supplied: reasoning_effort", "", ""), "", "reasoning_effort"},
		{"Mistral", "seed", 422, extra("seed"), "", "seed"},
		{"Mistral", "reasoning_effort", 422, extra("reasoning_effort"), "", "reasoning_effort"},
		{"FastAPI server", "frequency_penalty", 422, `{"detail":[{"type":"extra_forbidden","loc":["body","frequency_penalty"],"msg":"Extra inputs are not permitted","input":-1.5}]}`, "", "frequency_penalty"},
		{"Groq", "frequency_penalty", 400, plain("property 'frequency_penalty' is unsupported"), "", "frequency_penalty"},
		{"Groq", "reasoning_effort", 400, plain("reasoning_effort is not supported with this model"), "", "reasoning_effort"},
		{"Gemini", "seed", 400, `[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"seed\": Cannot find field.","status":"INVALID_ARGUMENT"}}]`, "", "seed"},
		{"Gemini", "presence_penalty", 400, `[{"error":{"code":400,"message":"Penalty is not enabled for models/gemini-2.5-flash","status":"INVALID_ARGUMENT"}}]`, "", "penalty"},
		{"xAI", "presence_penalty", 400, `{"code":"Client specified an invalid argument","error":"Argument not supported on this model: presencePenalty"}`, "", "presence_penalty"},
		{"Anthropic", "top_p", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"` + "`temperature` and `top_p`" + ` cannot both be specified for this model. Please use only one."}}`, "", "top_p"},
		{"Anthropic", "temperature", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"` + "`temperature`" + ` may only be set to 1 when thinking is enabled."}}`, "", "temperature"},
		{"Moonshot", "temperature", 400, plain("invalid temperature: only 1 is allowed for this model"), "", "temperature"},
		{"OpenRouter under status 200", "max_tokens", 200, `{"error":{"message":"Provider returned error","code":400,"metadata":{"provider_name":"OpenAI","raw":"{\"error\":{\"message\":\"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.\",\"param\":\"max_tokens\"}}"}}}`, "max_completion_tokens", ""},
		{"Fireworks", "seed", 400, `{"error":{"object":"error","type":"invalid_request_error","code":"invalid_request_error","message":"Extra inputs are not permitted, field: 'seed'"}}`, "", "seed"},
		{"DeepSeek", "reasoning_effort", 400, plain("Failed to deserialize the JSON body into the target type: reasoning_effort: unknown field `reasoning_effort` at line 1 column 80"), "", "reasoning_effort"},
		{"Ollama", "reasoning_effort", 400, plain(`"llama3.2" does not support thinking`), "", "reasoning_effort"},
		{"llama.cpp", `"role":"system"`, 500, `{"error":{"code":500,"message":"raise_exception: System role not supported","type":"server_error"}}`, "merge", "system prompt"},
		{"vLLM with Mistral 7B", `"role":"system"`, 400, `{"object":"error","message":"Conversation roles must alternate user/assistant/user/assistant/...","type":"BadRequestError","param":null,"code":400}`, "merge", "system prompt"},
		{"LM Studio", `"role":"system"`, 400, `{"error":"Error rendering prompt with jinja template: \"Only user and assistant roles are supported!\"."}`, "merge", "system prompt"},
		{"Gemini with Gemma 3", `"role":"system"`, 400, `[{"error":{"code":400,"message":"Developer instruction is not enabled for models/gemma-3-27b-it","status":"INVALID_ARGUMENT"}}]`, "merge", "system prompt"},
		{"OpenAI o1-mini", `"role":"system"`, 400, openAI("Unsupported value: 'messages[0].role' does not support 'system' with this model.", "messages[0].role", "unsupported_value"), "merge", "system prompt"},
	}
	for _, tt := range tests {
		t.Run(tt.provider+" "+strings.Trim(tt.member, `"`), func(t *testing.T) {
			t.Parallel()
			var sent bodies
			member := tt.member
			if !strings.Contains(member, ":") {
				member = `"` + member + `":`
			}
			m := model(t, refusing(&sent, func(body string) (int, string) {
				if strings.Contains(body, member) {
					return tt.status, tt.refusal
				}
				return 0, ""
			}))
			for n := range 2 {
				res, err := m.Call(t.Context(), everything(), nil)
				require.NoError(t, err)
				require.Equal(t, "hi there", res.Text)
				if tt.warning == "" {
					require.Empty(t, res.Warnings, "nothing was left out")
				} else {
					require.NotEmpty(t, res.Warnings)
					require.Contains(t, strings.Join(res.Warnings, "\n"), tt.warning)
				}
				bodies := sent.taken()
				if n == 0 {
					require.Greater(t, len(bodies), 1)
					require.Contains(t, bodies[0], member)
				} else {
					require.Len(t, bodies, 1, "the second call knows")
				}
				last := bodies[len(bodies)-1]
				require.NotContains(t, last, member)
				switch tt.instead {
				case "":
				case "merge":
					require.Contains(t, last, `"messages":[{"role":"user","content":"You are an adjuster.\n\nHello, model."}]`)
				default:
					require.Contains(t, last, `"`+tt.instead+`":50`)
				}
				kept := 0
				for _, key := range []string{"temperature", "top_p", "seed", "frequency_penalty", "presence_penalty", "reasoning_effort", "stop"} {
					if strings.Contains(last, `"`+key+`":`) {
						kept++
					}
				}
				require.Equal(t, 7-settingsIn(res.Warnings), kept, "the rest is sent")
			}
		})
	}
}

// settingsIn returns how many warnings are about settings that were left out.
func settingsIn(warnings []string) (n int) {
	for _, w := range warnings {
		if !strings.HasPrefix(w, "system prompt") {
			n++
		}
	}
	return n
}

func quoted(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

// TestRefusedValuesFail checks that a value that the user has to correct is not
// left out.
func TestRefusedValuesFail(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"error":{"message":"Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 7 instead.","param":"temperature","code":"decimal_above_max_value"}}`,
		`{"error":{"message":"Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. Supported values are: 'low', 'medium', and 'high'.","param":"reasoning_effort","code":"unsupported_value"}}`,
		`{"error":{"message":"Unsupported parameter: 'stop' is not supported with this model.","param":"stop","code":"unsupported_parameter"}}`,
		`{"error":{"message":"max_tokens is too large: 100000. This model supports at most 16384 completion tokens.","param":"max_tokens","code":"invalid_value"}}`,
		`{"error":{"message":"Unsupported parameter: 'logprobs' is not supported with temperature.","param":"logprobs"}}`,
	} {
		var sent bodies
		m := model(t, refusing(&sent, func(string) (int, string) { return 400, body }))
		_, err := m.Call(t.Context(), everything(), nil)
		require.ErrorContains(t, err, "the endpoint refused the request (400)", body)
		require.LessOrEqual(t, len(sent.taken()), 2, body)
	}
}

// TestSeveralSettingsAreRefusedInOneCall checks that one call overcomes a server that
// names what it refuses one after the other.
func TestSeveralSettingsAreRefusedInOneCall(t *testing.T) {
	t.Parallel()
	var sent bodies
	m := model(t, refusing(&sent, func(body string) (int, string) {
		for _, key := range []string{"max_tokens", "temperature", "top_p", "presence_penalty", "frequency_penalty", "seed", "reasoning_effort"} {
			if strings.Contains(body, `"`+key+`":`) {
				return 400, `{"error":{"message":"Unsupported parameter: '` + key + `' is not supported with this model."}}`
			}
		}
		if strings.Contains(body, `"role":"system"`) {
			return 400, `{"error":{"message":"System role not supported"}}`
		}
		return 0, ""
	}))
	res, err := m.Call(t.Context(), everything(), nil)
	require.NoError(t, err)
	require.Len(t, res.Warnings, 7)
	require.Len(t, sent.taken(), 9)
}

// TestSystemRoles checks each way to send a system prompt.
func TestSystemRoles(t *testing.T) {
	t.Parallel()
	user, answer := llm.Message{Role: llm.User, Text: "u"}, llm.Message{Role: llm.Assistant, Text: "a"}
	tests := []struct {
		role     string
		messages []llm.Message
		want     string
	}{
		{"", []llm.Message{user}, `[{"role":"system","content":"s"},{"role":"user","content":"u"}]`},
		{"system", []llm.Message{user}, `[{"role":"system","content":"s"},{"role":"user","content":"u"}]`},
		{"developer", []llm.Message{user}, `[{"role":"developer","content":"s"},{"role":"user","content":"u"}]`},
		{"merge", []llm.Message{user, answer, user}, `[{"role":"user","content":"s\n\nu"},{"role":"assistant","content":"a"},{"role":"user","content":"u"}]`},
		{"merge", []llm.Message{answer, user}, `[{"role":"user","content":"s"},{"role":"assistant","content":"a"},{"role":"user","content":"u"}]`},
	}
	for _, tt := range tests {
		body := sent(t, openai.Config{Model: "m", SystemRole: tt.role}, llm.Request{System: "s", Messages: tt.messages})
		require.JSONEq(t, tt.want, string(body["messages"]), tt.role)
		body = sent(t, openai.Config{Model: "m", SystemRole: tt.role}, llm.Request{Messages: tt.messages})
		require.NotContains(t, string(body["messages"]), `"s"`, tt.role)
	}
}

// TestRefusedDeveloperRole checks that a server that does not know the role developer
// gets a system prompt, and one that takes none a single message.
func TestRefusedDeveloperRole(t *testing.T) {
	t.Parallel()
	var sent bodies
	m := modelOf(t, openai.Config{Model: "m", SystemRole: "developer", BaseURL: serve(t, refusing(&sent, func(body string) (int, string) {
		switch {
		case strings.Contains(body, `"role":"developer"`):
			return 400, `{"error":{"message":"developer is not one of ['system', 'assistant', 'user'] - 'messages.0.role'"}}`
		case strings.Contains(body, `"role":"system"`):
			return 400, `{"error":{"message":"System role not supported"}}`
		}
		return 0, ""
	}))})
	res, err := m.Call(t.Context(), hello, nil)
	require.NoError(t, err)
	require.Len(t, res.Warnings, 1)
	require.Len(t, sent.taken(), 3)
}

// TestExtraBody checks that no member that is written anyway can be set.
func TestExtraBody(t *testing.T) {
	t.Parallel()
	req := everything()
	req.Schema = json.RawMessage(`{"type":"object"}`)
	var names []string
	for name := range sent(t, openai.Config{Model: "m"}, req) {
		names = append(names, name)
	}
	for name := range sent(t, openai.Config{Model: "m", MaxTokensKey: "max_completion_tokens"}, req) {
		names = append(names, name)
	}
	require.Greater(t, len(names), 10)
	names = append(names, "stream", "stream_options", "response_format", "tools", "Model", "MESSAGES", "me\u017f\u017fages", "models")
	for _, name := range names {
		_, err := openai.New(openai.Config{Model: "m", BaseURL: "http://h/v1", ExtraBody: json.RawMessage(`{` + quoted(name) + `:1}`)})
		require.Error(t, err, name)
	}
	for _, body := range []string{`[]`, `1`, `{`, `{}{}`, `{"a":1,"a":2}`, `{"a b":1}`, `{"a\"b":1}`, `{"":1}`, "{\"a\":\"\xff\"}", `{"a":"` + strings.Repeat("x", 64<<10) + `"}`} {
		_, err := openai.New(openai.Config{Model: "m", BaseURL: "http://h/v1", ExtraBody: json.RawMessage(body)})
		require.ErrorContains(t, err, "ExtraBody", body[:min(len(body), 40)])
	}
	_, err := openai.New(openai.Config{Model: "m", BaseURL: "http://h/v1", SystemRole: "tool"})
	require.ErrorContains(t, err, `SystemRole "tool": write system, developer or merge`)
}

// TestVersion checks that a version names what changes the answers, and
// nothing of the transport.
func TestVersion(t *testing.T) {
	t.Parallel()
	version := func(cfg openai.Config) string {
		cfg.Model, cfg.BaseURL = "m", "http://h/v1"
		return modelOf(t, cfg).Version()
	}
	for _, same := range []openai.Config{{}, {SystemRole: "system"}, {MaxTokensKey: "max_completion_tokens"}, {ExtraBody: json.RawMessage(`{}`)}, {StructuredOutput: "auto"}} {
		require.Empty(t, version(same))
	}
	seen := map[string]bool{"": true}
	for _, other := range []openai.Config{{SystemRole: "merge"}, {SystemRole: "developer"}, {ExtraBody: json.RawMessage(`{"a":1}`)}, {ExtraBody: json.RawMessage(`{"a":2}`)},
		{StructuredOutput: "schema"}, {StructuredOutput: "object"}, {StructuredOutput: "prompt"}} {
		require.False(t, seen[version(other)])
		seen[version(other)] = true
	}
	require.Equal(t, version(openai.Config{ExtraBody: json.RawMessage(`{"a":1,"b":2}`)}), version(openai.Config{ExtraBody: json.RawMessage("{\"b\":2,\"a\":1}\n")}))
}

// TestAzure checks where requests to Azure go, and that the key is sent as Azure wants it.
func TestAzure(t *testing.T) {
	t.Parallel()
	const deployment = "https://acme.openai.azure.com/openai/deployments/gpt"
	tests := []struct{ name, base, to, endpoint, header string }{
		{"deployment", deployment + "?api-version=2024-10-21", deployment + "/chat/completions?api-version=2024-10-21", deployment, "Api-Key"},
		{"as copied from the portal", deployment + "/chat/completions?api-version=2025-01-01-preview", deployment + "/chat/completions?api-version=2025-01-01-preview", deployment, "Api-Key"},
		{"v1", "https://acme.openai.azure.com/openai/v1/", "https://acme.openai.azure.com/openai/v1/chat/completions", "https://acme.openai.azure.com/openai/v1", "Api-Key"},
		{"v1 preview", "https://acme.openai.azure.com/openai/v1?api-version=preview", "https://acme.openai.azure.com/openai/v1/chat/completions?api-version=preview", "https://acme.openai.azure.com/openai/v1", "Api-Key"},
		{"AI Foundry", "https://acme.services.ai.azure.com/models?api-version=2024-05-01-preview", "https://acme.services.ai.azure.com/models/chat/completions?api-version=2024-05-01-preview", "https://acme.services.ai.azure.com/models", "Api-Key"},
		{"Cognitive Services", "https://eastus.cognitiveservices.azure.com/openai/v1", "https://eastus.cognitiveservices.azure.com/openai/v1/chat/completions", "https://eastus.cognitiveservices.azure.com/openai/v1", "Api-Key"},
		{"gateway in front of Azure", "https://apim.acme.example/openai/deployments/gpt?api-version=2024-10-21", "https://apim.acme.example/openai/deployments/gpt/chat/completions?api-version=2024-10-21", "https://apim.acme.example/openai/deployments/gpt", "Api-Key"},
		{"host that only ends alike", "https://openai.azure.com.acme.example/v1", "https://openai.azure.com.acme.example/v1/chat/completions", "https://openai.azure.com.acme.example/v1", "Authorization"},
		{"domain of another owner", "https://evilopenai.azure.com/v1", "https://evilopenai.azure.com/v1/chat/completions", "https://evilopenai.azure.com/v1", "Authorization"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base, key, err := connection.Resolve(tt.base, fakeKey, func(string) (string, bool) { return "", false })
			require.NoError(t, err)
			var to string
			var header http.Header
			m := modelOf(t, openai.Config{Model: "gpt", BaseURL: base, APIKey: openai.NewKey(key), HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				to, header = r.URL.String(), r.Header
				return nil, http.ErrAbortHandler
			})}})
			_, err = m.Call(t.Context(), hello, nil)
			require.Error(t, err)
			require.Equal(t, tt.to, to)
			require.Equal(t, tt.endpoint, m.Endpoint())
			want := map[string]string{"Api-Key": fakeKey, "Authorization": "Bearer " + fakeKey}
			for name, value := range want {
				if name == tt.header {
					require.Equal(t, value, header.Get(name))
				} else {
					require.Empty(t, header.Get(name))
				}
			}
		})
	}
	for _, bad := range []string{deployment + "?api-version=", deployment + "?api-version=1&api-key=hunter2", deployment + "?x=1", deployment + "?api-version=1%20", deployment + "?API-VERSION=1"} {
		_, err := openai.New(openai.Config{Model: "m", BaseURL: bad})
		require.ErrorContains(t, err, "only ?api-version=… of Azure is accepted", bad)
		require.NotContains(t, err.Error(), "hunter2")
	}
}
