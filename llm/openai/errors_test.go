package openai_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

// TestProviderErrors reads refusals in the forms in which providers write
// them. The user sees a readable text, and what is worth a retry is retried.
func TestProviderErrors(t *testing.T) {
	t.Parallel()
	const model35 = "gpt-3.5"
	tests := []struct {
		provider string
		status   int
		body     string
		kind     string
		retry    bool
		want     string // the whole message
	}{
		{"Gemini: list of one error", 400, `[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}]`, callfault.BadRequest, false, "API key not valid."},
		{"Gemini: list with an empty item first", 503, `[{},{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]`, callfault.ServerError, true, "The model is overloaded."},
		{"Gemini: code within a list", 429, `[{"error":{"code":"insufficient_quota","message":"spent"}}]`, callfault.NoCredit, false, "spent"},
		{"Mistral: message as an object", 422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","foo"],"msg":"Extra inputs are not permitted","input":1}]},"type":"invalid_request_error","param":null,"code":null}`,
			callfault.BadRequest, false, "body.foo: Extra inputs are not permitted"},
		{"Mistral: detail as a string", 401, `{"detail":"Unauthorized"}`, callfault.Unauthorized, false, "Unauthorized"},
		{"FastAPI: detail as a list", 422, `{"detail":[{"type":"missing","loc":["body","messages",0,"role"],"msg":"Field required","input":{"content":"x"}},{"loc":["body","n"],"msg":"Input should be 1"}]}`,
			callfault.BadRequest, false, "body.messages.0.role: Field required; body.n: Input should be 1"},
		{"FastAPI: type last, loc missing", 422, `{"detail":[{"msg":"Field required","type":"missing"}]}`, callfault.BadRequest, false, "Field required"},
		{"FastAPI: input of a megabyte", 422, `{"detail":[{"type":"missing","loc":["body","n"],"msg":"Field required","input":"` + strings.Repeat("x", 1<<20) + `"}]}`,
			callfault.BadRequest, false, "body.n: Field required"},
		{"FastAPI: detail as an object", 400, `{"detail":{"error":{"message":"no such adapter"}}}`, callfault.BadRequest, false, "no such adapter"},
		{"message as an object", 400, `{"error":{"message":{"text":"temperature is too high","limit":2}}}`, callfault.BadRequest, false, "text: temperature is too high; limit: 2"},
		{"message as lists by field", 400, `{"error":{"message":{"temperature":["is too high","is no number"]}}}`, callfault.BadRequest, false, "temperature: is too high; is no number"},
		{"message as a list", 500, `{"error":{"message":["two","messages"]}}`, callfault.ServerError, true, "two; messages"},
		{"error as a list", 400, `{"error":[{"message":"too long","code":1}]}`, callfault.BadRequest, false, "too long"},
		{"Cloudflare: errors", 400, `{"success":false,"errors":[{"code":5007,"message":"No such task"}]}`, callfault.BadRequest, false, "No such task"},
		{"OpenRouter: the error of a provider as JSON", 429, `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"{\"error\":{\"message\":\"Quota exceeded for gemini\",\"code\":429}}","provider_name":"Google"}},"user_id":"u"}`, callfault.RateLimited, true, "Provider returned error: Google: Quota exceeded for gemini"},
		{"OpenRouter: the error of a provider as text", 502, `{"error":{"metadata":{"provider_name":"Acme","raw":"upstream connect error"},"message":"Provider returned error","code":502}}`, callfault.ServerError, true, "Provider returned error: Acme: upstream connect error"},
		{"OpenRouter: the error of a provider as an object", 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":{"object":"error","message":"stop is too long"}}}}`, callfault.BadRequest, false, "Provider returned error: stop is too long"},
		{"OpenRouter: metadata without words", 400, `{"error":{"message":"too long","code":400,"metadata":{"reasons":["x"],"raw":null,"headers":{"a":{}}}}}`, callfault.BadRequest, false, "too long"},
		{"OpenRouter: a moderated prompt", 403, `{"error":{"message":"Input was flagged","code":403,"metadata":{"reasons":["violence"],"flagged_input":"...","provider_name":"OpenAI"}}}`, callfault.Moderated, false, "Input was flagged"},
		{"a forbidden key", 403, `{"error":{"message":"No access","metadata":{}}}`, callfault.Unauthorized, false, "No access"},
		{"Azure: a filtered prompt", 400, `{"error":{"message":"The response was filtered due to the prompt triggering a content management policy.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, callfault.Moderated, false, "The response was filtered due to the prompt triggering a content management policy."},
		{"DeepSeek: a filtered prompt", 400, `{"error":{"message":"Content Exists Risk","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`, callfault.Moderated, false, "Content Exists Risk"},
		{"byte order mark", 400, "\ufeff" + `{"error":{"message":"too long"}}`, callfault.BadRequest, false, "too long"},
		{"code as a string of digits", 400, `{"error":{"message":"too long","code":"400"}}`, callfault.BadRequest, false, "too long"},
		{"details of another form", 400, `{"error":{"details":"x","message":"too long"}}`, callfault.BadRequest, false, "too long"},
		{"details that are no objects", 400, `{"error":{"details":[1,[2]],"message":"too long"}}`, callfault.BadRequest, false, "too long"},
		{"Groq: request too large", 413, `{"error":{"message":"Request too large: Limit 6000, Requested 9000","type":"tokens","code":"rate_limit_exceeded"}}`, callfault.PromptTooLong, false, "Request too large: Limit 6000, Requested 9000"},
		{"nginx: request too large", 413, `<html>413 Request Entity Too Large</html>`, callfault.PromptTooLong, false, "HTML instead of JSON"},
		{"Groq: the model wrote no JSON", 400, `{"error":{"message":"Failed to generate JSON. Please adjust your prompt.","code":"json_validate_failed","failed_generation":"hi"}}`, callfault.BadResponse, true, "Failed to generate JSON. Please adjust your prompt."},
		{"Groq: flex tier is full", 498, `{"error":{"message":"capacity exceeded","code":"capacity_exceeded"}}`, callfault.ServerError, true, "capacity exceeded"},
		{"Anthropic: overloaded", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, callfault.ServerError, true, "Overloaded"},
		{"Anthropic: unknown model", 404, `{"type":"error","error":{"type":"not_found_error","message":"model: ` + model35 + `"}}`, callfault.UnknownModel, false, "model: " + model35},
		{"Gemini: unknown model", 404, `[{"error":{"code":404,"message":"models/` + model35 + ` is not found for API version v1main","status":"NOT_FOUND"}}]`, callfault.UnknownModel, false, "models/" + model35 + " is not found for API version v1main"},
		{"Azure: unknown deployment", 404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, callfault.UnknownModel, false, "The API deployment for this resource does not exist."},
		{"name within another name", 404, `{"error":{"message":"no route ` + model35 + `-turbo"}}`, callfault.NotFound, false, "no route " + model35 + "-turbo"},
		{"FastAPI: no such path", 404, `{"detail":"Not Found"}`, callfault.NotFound, false, "Not Found"},
	}
	for _, tt := range tests {
		t.Run(tt.provider, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, stream bool) {
				e := failure(t, modelOf(t, openai.Config{Model: model35, BaseURL: serve(t, sayJSON(tt.status, tt.body))}), stream)
				require.Equal(t, tt.want, e.Message)
				require.Equal(t, tt.kind, e.Kind)
				require.Equal(t, tt.retry, e.Retryable())
				require.Equal(t, !tt.retry, callfault.IsTerminal(e.Kind))
			})
		})
	}
}

// TestPromptTooLong reads how providers say that the prompt exceeds the
// context window of the model. No retry helps.
func TestPromptTooLong(t *testing.T) {
	t.Parallel()
	coded := func(message, code string) string {
		return `{"error":{"message":` + strconv.Quote(message) + `,"type":"invalid_request_error","param":"messages","code":"` + code + `"}}`
	}
	plain := func(message string) string { return coded(message, "400") }
	tests := []struct {
		provider string
		status   int
		body     string
		want     string
	}{
		{"OpenAI", 400, coded("This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.", "context_length_exceeded"), callfault.PromptTooLong},
		{"OpenAI: one message", 400, coded("Invalid 'messages[0].content': string too long. Expected a string with maximum length 1048576", "string_above_max_length"), callfault.PromptTooLong},
		{"Azure", 400, coded("Your input exceeds the context window of this model. Please adjust your input and try again.", "context_length_exceeded"), callfault.PromptTooLong},
		{"Anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 199999 maximum"}}`, callfault.PromptTooLong},
		{"Anthropic: with max_tokens", 400, plain("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"), callfault.PromptTooLong},
		{"Gemini", 400, `[{"error":{"code":400,"message":"The input token count (1234567) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, callfault.PromptTooLong},
		{"Mistral", 400, `{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","code":"3051"}`, callfault.PromptTooLong},
		{"Groq", 400, coded("Please reduce the length of the messages or completion.", "context_length_exceeded"), callfault.PromptTooLong},
		{"DeepSeek", 400, plain("This model's maximum context length is 65536 tokens. However, you requested 70000 tokens"), callfault.PromptTooLong},
		{"xAI", 400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`, callfault.PromptTooLong},
		{"Ollama", 400, plain("prompt too long; exceeded max context length by 512 tokens"), callfault.PromptTooLong},
		{"Ollama: embedded runner", 500, `{"error":"the input length exceeds the context length"}`, callfault.PromptTooLong},
		{"llama.cpp", 400, `{"error":{"code":400,"message":"request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`, callfault.PromptTooLong},
		{"llama.cpp: older", 500, `{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"server_error"}}`, callfault.PromptTooLong},
		{"LM Studio", 400, `{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`, callfault.PromptTooLong},
		{"vLLM", 400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens in the messages.","type":"BadRequestError","param":null,"code":400}`, callfault.PromptTooLong},
		{"vLLM: newer", 400, plain("The decoder prompt (length 9000) is longer than the maximum model length of 4096."), callfault.PromptTooLong},
		{"SGLang", 400, plain("The input (9000 tokens) is longer than the model's context length (4096 tokens)."), callfault.PromptTooLong},
		{"Hugging Face", 422, "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 9000\",\"error_type\":\"validation\"}", callfault.PromptTooLong},
		{"Cohere", 400, `{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 9000."}`, callfault.PromptTooLong},
		{"Amazon Bedrock", 400, `{"message":"Input is too long for requested model."}`, callfault.PromptTooLong},
		{"Moonshot", 400, plain("Invalid request: Your request exceeded model token limit: 8192"), callfault.PromptTooLong},
		{"Zhipu", 400, plain("Prompt exceeds max length"), callfault.PromptTooLong},
		{"Qwen", 400, plain("Range of input length should be [1, 30720]"), callfault.PromptTooLong},
		{"OpenRouter", 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"provider_name":"Acme","raw":"{\"error\":{\"message\":\"maximum context length is 4096 tokens\"}}"}}}`, callfault.PromptTooLong},
		{"under status 200", 200, plain("This model's maximum context length is 4096 tokens."), callfault.PromptTooLong},
		{"OpenAI: more than the tokens for a minute", 429, coded("Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 33451. The input or output tokens must be reduced in order to run successfully.", "rate_limit_exceeded"), callfault.PromptTooLong},
		{"OpenAI: rate limit", 429, coded("Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 3000. Please try again in 4s.", "rate_limit_exceeded"), callfault.RateLimited},
		{"a rate limit", 429, plain("Too many tokens: reduce your prompt"), callfault.RateLimited},
		{"a limit on the reply", 400, plain("max_tokens is too large: 100000. This model supports at most 16384 completion tokens"), callfault.BadRequest},
		{"no room for the context of a request", 503, plain("exceeds the available context size"), callfault.ServerError},
	}
	for _, tt := range tests {
		t.Run(tt.provider, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, failure(t, model(t, sayJSON(tt.status, tt.body)), false).Kind)
		})
	}
	about := llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "Explain to me why the maximum context length matters."}}}
	_, err := model(t, sayJSON(500, plain("cannot parse: why the maximum context length matters"))).Call(t.Context(), about, nil)
	require.ErrorContains(t, err, "server error (500)", "a passage of the prompt says nothing about it")
}

// TestErrorListWithStatus200 reads the errors of Gemini where an answer is expected.
func TestErrorListWithStatus200(t *testing.T) {
	t.Parallel()
	const body = `[{"error":{"code":429,"message":"slow down","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3s"}]}}]`
	for name, h := range map[string]http.HandlerFunc{
		"in one piece": sayJSON(200, body),
		"as data":      events(chunkHi, "", "data: "+body),
		"by event":     events(chunkHi, "", "event: error", "data: "+body),
	} {
		e := failure(t, model(t, h), true)
		require.Equal(t, callfault.RateLimited, e.Kind, name)
		require.Equal(t, "an error under status 200: slow down", e.Message, name)
		require.Equal(t, 3*time.Second, e.RetryAfter, name)
	}
}

// TestProviderRateLimitHeaders reads how long a refused call should wait.
func TestProviderRateLimitHeaders(t *testing.T) {
	t.Parallel()
	info := func(delay string) string {
		return `[{"error":{"code":429,"message":"Quota exceeded","details":[{"@type":"type.googleapis.com/google.rpc.Help","links":[]},` +
			`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":` + delay + `}]}}]`
	}
	const slow = `{"error":{"message":"slow down"}}`
	const date = "Fri, 02 Jan 2026 03:04:05 GMT" // 1767323045
	tests := []struct {
		provider string
		status   int
		headers  map[string]string
		body     string
		want     time.Duration
	}{
		{"Azure: milliseconds", 429, map[string]string{"retry-after-ms": "250", "retry-after": "1"}, slow, 250 * time.Millisecond},
		{"OpenAI: no requests left", 429, map[string]string{"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20ms", "x-ratelimit-remaining-tokens": "100", "x-ratelimit-reset-tokens": "6s"}, slow, 20 * time.Millisecond},
		{"OpenAI: too few tokens left", 429, map[string]string{"x-ratelimit-remaining-requests": "59", "x-ratelimit-reset-requests": "1s", "x-ratelimit-remaining-tokens": "100", "x-ratelimit-reset-tokens": "7.66s"}, slow, 7660 * time.Millisecond},
		{"OpenAI: nothing said to be left", 429, map[string]string{"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6s"}, slow, 6 * time.Second},
		{"both are spent", 429, map[string]string{"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "9s", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6s"}, slow, 9 * time.Second},
		{"seconds", 429, map[string]string{"x-ratelimit-reset-requests": "1.5"}, slow, 1500 * time.Millisecond},
		{"a full window is more than the wait", 429, map[string]string{"x-ratelimit-reset-tokens": "6m0s"}, slow, time.Minute},
		{"milliseconds with a unit", 429, map[string]string{"x-ratelimit-reset-requests": "17ms"}, slow, 17 * time.Millisecond},
		{"Unix time", 429, map[string]string{"date": date, "x-ratelimit-reset-requests": "1767323055"}, slow, 10 * time.Second},
		{"Unix time with a fraction", 429, map[string]string{"date": date, "x-ratelimit-reset-tokens": "1767323045.5"}, slow, 500 * time.Millisecond},
		{"Unix time gone by", 429, map[string]string{"date": date, "x-ratelimit-reset-requests": "1767323040"}, slow, 0},
		{"OpenRouter: Unix time in milliseconds", 429, map[string]string{"date": date, "x-ratelimit-limit": "20", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1767323052000"}, slow, 7 * time.Second},
		{"OpenRouter: headers in the error", 429, map[string]string{"date": date}, `{"error":{"message":"Rate limit exceeded: free-models-per-min","code":429,"metadata":{"headers":{"X-RateLimit-Limit":"20","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"4102444800000"}}}}`, time.Minute},
		{"OpenRouter: RetryInfo of the provider", 429, nil, `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":` + strconv.Quote(info(`"34s"`)) + `,"provider_name":"Google"}}}`, 34 * time.Second},
		{"Anthropic: no requests left", 429, map[string]string{"date": date, "anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "2026-01-02T03:04:08Z", "anthropic-ratelimit-tokens-remaining": "9000", "anthropic-ratelimit-tokens-reset": "2026-01-02T03:04:35Z"}, slow, 3 * time.Second},
		{"Anthropic: no output tokens left", 429, map[string]string{"date": date, "anthropic-ratelimit-requests-remaining": "4", "anthropic-ratelimit-requests-reset": "2026-01-02T03:04:08Z", "anthropic-ratelimit-input-tokens-remaining": "50", "anthropic-ratelimit-input-tokens-reset": "2026-01-02T03:04:06Z", "anthropic-ratelimit-output-tokens-remaining": "0", "anthropic-ratelimit-output-tokens-reset": "2026-01-02T04:04:25+01:00"}, slow, 20 * time.Second},
		{"Cerebras: no tokens left for this minute", 429, map[string]string{"x-ratelimit-remaining-requests-day": "900", "x-ratelimit-reset-requests-day": "33011.38", "x-ratelimit-remaining-tokens-minute": "0", "x-ratelimit-reset-tokens-minute": "11.38"}, slow, 11380 * time.Millisecond},
		{"Mistral: limit by size", 429, map[string]string{"ratelimitbysize-remaining": "0", "ratelimitbysize-reset": "43"}, slow, 43 * time.Second},
		{"gateway: draft of the IETF", 429, map[string]string{"ratelimit-remaining": "0", "ratelimit-reset": "5"}, slow, 5 * time.Second},
		{"a limit that was not hit", 500, map[string]string{"x-ratelimit-reset-requests": "1s"}, slow, 0},
		{"Retry-After counts more", 429, map[string]string{"retry-after": "2", "x-ratelimit-reset-requests": "20ms"}, info(`"34s"`), 2 * time.Second},
		{"no duration", 429, map[string]string{"x-ratelimit-reset-requests": "soon"}, slow, 0},
		{"negative", 429, map[string]string{"x-ratelimit-reset-requests": "-1s"}, slow, 0},
		{"Gemini: RetryInfo", 429, nil, info(`"34s"`), 34 * time.Second},
		{"Gemini: RetryInfo with a fraction", 503, nil, info(`"34.074824224s"`), 34074824224 * time.Nanosecond},
		{"Gemini: RetryInfo counts more than a window", 429, map[string]string{"x-ratelimit-reset-requests": "1s"}, info(`"34s"`), 34 * time.Second},
		{"Gemini: type after the delay", 429, nil, `{"error":{"details":[{"retryDelay":"5s","@type":"type.googleapis.com/google.rpc.RetryInfo"}],"message":"x"}}`, 5 * time.Second},
		{"delay of another type", 429, nil, `{"error":{"details":[{"retryDelay":"5s","@type":"x"}],"message":"x"}}`, 0},
		{"RetryInfo of another form", 429, nil, info(`{"seconds":34}`), 0},
		{"RetryInfo: negative", 429, nil, info(`"-34s"`), 0},
		{"RetryInfo: for ever", 429, nil, info(`"1e300s"`), 1<<63 - 1},
	}
	for _, tt := range tests {
		t.Run(tt.provider, func(t *testing.T) {
			t.Parallel()
			e := failure(t, model(t, func(w http.ResponseWriter, r *http.Request) {
				for k, v := range tt.headers {
					w.Header().Set(k, v)
				}
				sayJSON(tt.status, tt.body)(w, r)
			}), false)
			require.Equal(t, tt.want, e.RetryAfter)
		})
	}
}

// TestNotFoundAfterSuccessIsServerError checks that a 404 or a redirect of an
// endpoint that has answered is not taken for a wrong base URL.
func TestNotFoundAfterSuccessIsServerError(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, stream bool) {
		var next atomic.Pointer[http.HandlerFunc]
		set := func(h http.HandlerFunc) { next.Store(&h) }
		m := model(t, func(w http.ResponseWriter, r *http.Request) { (*next.Load())(w, r) })
		gone := sayJSON(404, `{"error":{"message":"no healthy upstream"}}`)

		set(gone)
		e := failure(t, m, stream)
		require.Equal(t, callfault.NotFound, e.Kind)
		require.ErrorContains(t, e, "no chat completions at this address (404): no healthy upstream")

		set(answer)
		_, err := call(t, m, stream)
		require.NoError(t, err)
		for name, h := range map[string]http.HandlerFunc{
			"404": gone,
			"redirect to a login": func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://login.example/", http.StatusTemporaryRedirect)
			},
		} {
			set(h)
			e = failure(t, m, stream)
			require.Equal(t, callfault.ServerError, e.Kind, name)
			require.NotContains(t, e.Error(), "no chat completions", name)
			require.NotContains(t, e.Error(), "OPENAI_BASE_URL", name)
			require.True(t, e.Retryable(), name)
			require.Equal(t, name == "404", callfault.IsAnswered(e.Kind, e.Status), name)
		}
	})
}

// The time to read an error grows with its size, whatever it nests: with 2^60 steps the call
// would never end.
func TestNestedErrorsAreReadInLinearTime(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"error", "message", "detail", "loc", "other"} {
		body := `{"message":` + strings.Repeat(`{"`+key+`":`, 60) + `{}` + strings.Repeat("}", 61)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(body))
		}))
		defer server.Close()
		m, err := openai.New(openai.Config{BaseURL: server.URL + "/v1", Model: "m"})
		require.NoError(t, err)
		_, err = m.Call(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "hi"}}}, nil)
		require.Error(t, err)
	}
}
