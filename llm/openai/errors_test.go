package openai_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

// TestErrorsOfProviders reads refusals in the forms in which providers write
// them. The user sees a readable text, and what is worth a retry is retried.
func TestErrorsOfProviders(t *testing.T) {
	t.Parallel()
	const model35 = "gpt-3.5"
	tests := []struct {
		provider string
		status   int
		body     string
		kind     llm.Kind
		retry    bool
		want     string // the whole message
	}{
		{"Gemini: list of one error", 400, `[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}]`, llm.BadRequest, false, "API key not valid."},
		{"Gemini: list with an empty item first", 503, `[{},{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]`, llm.ServerError, true, "The model is overloaded."},
		{"Gemini: code within a list", 429, `[{"error":{"code":"insufficient_quota","message":"spent"}}]`, llm.NoCredit, false, "spent"},
		{"Mistral: message as an object", 422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","foo"],"msg":"Extra inputs are not permitted","input":1}]},"type":"invalid_request_error","param":null,"code":null}`,
			llm.BadRequest, false, "body.foo: Extra inputs are not permitted"},
		{"Mistral: detail as a string", 401, `{"detail":"Unauthorized"}`, llm.Unauthorized, false, "no key was sent: Unauthorized"},
		{"FastAPI: detail as a list", 422, `{"detail":[{"type":"missing","loc":["body","messages",0,"role"],"msg":"Field required","input":{"content":"x"}},{"loc":["body","n"],"msg":"Input should be 1"}]}`,
			llm.BadRequest, false, "body.messages.0.role: Field required; body.n: Input should be 1"},
		{"FastAPI: type last, loc missing", 422, `{"detail":[{"msg":"Field required","type":"missing"}]}`, llm.BadRequest, false, "Field required"},
		{"FastAPI: input of a megabyte", 422, `{"detail":[{"type":"missing","loc":["body","n"],"msg":"Field required","input":"` + strings.Repeat("x", 1<<20) + `"}]}`,
			llm.BadRequest, false, "body.n: Field required"},
		{"FastAPI: detail as an object", 400, `{"detail":{"error":{"message":"no such adapter"}}}`, llm.BadRequest, false, "no such adapter"},
		{"message as an object", 400, `{"error":{"message":{"text":"temperature is too high","limit":2}}}`, llm.BadRequest, false, "text: temperature is too high; limit: 2"},
		{"message as lists by field", 400, `{"error":{"message":{"temperature":["is too high","is no number"]}}}`, llm.BadRequest, false, "temperature: is too high; is no number"},
		{"message as a list", 500, `{"error":{"message":["two","messages"]}}`, llm.ServerError, true, "two; messages"},
		{"error as a list", 400, `{"error":[{"message":"too long","code":1}]}`, llm.BadRequest, false, "too long"},
		{"Cloudflare: errors", 400, `{"success":false,"errors":[{"code":5007,"message":"No such task"}]}`, llm.BadRequest, false, "No such task"},
		{"byte order mark", 400, "\ufeff" + `{"error":{"message":"too long"}}`, llm.BadRequest, false, "too long"},
		{"code as a string of digits", 400, `{"error":{"message":"too long","code":"400"}}`, llm.BadRequest, false, "too long"},
		{"details of another form", 400, `{"error":{"details":"x","message":"too long"}}`, llm.BadRequest, false, "too long"},
		{"details that are no objects", 400, `{"error":{"details":[1,[2]],"message":"too long"}}`, llm.BadRequest, false, "too long"},
		{"Groq: request too large", 413, `{"error":{"message":"Request too large: Limit 6000, Requested 9000","type":"tokens","code":"rate_limit_exceeded"}}`, llm.BadRequest, false, "Request too large: Limit 6000, Requested 9000"},
		{"nginx: request too large", 413, `<html>413 Request Entity Too Large</html>`, llm.BadRequest, false, "HTML instead of JSON"},
		{"Groq: flex tier is full", 498, `{"error":{"message":"capacity exceeded","code":"capacity_exceeded"}}`, llm.ServerError, true, "capacity exceeded"},
		{"Anthropic: overloaded", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, llm.ServerError, true, "Overloaded"},
		{"Anthropic: unknown model", 404, `{"type":"error","error":{"type":"not_found_error","message":"model: ` + model35 + `"}}`, llm.UnknownModel, false, "model: " + model35},
		{"Gemini: unknown model", 404, `[{"error":{"code":404,"message":"models/` + model35 + ` is not found for API version v1main","status":"NOT_FOUND"}}]`, llm.UnknownModel, false, "models/" + model35 + " is not found for API version v1main"},
		{"Azure: unknown deployment", 404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, llm.UnknownModel, false, "The API deployment for this resource does not exist."},
		{"name within another name", 404, `{"error":{"message":"no route ` + model35 + `-turbo"}}`, llm.NotFound, false, "no route " + model35 + "-turbo"},
		{"FastAPI: no such path", 404, `{"detail":"Not Found"}`, llm.NotFound, false, "Not Found"},
	}
	for _, tt := range tests {
		t.Run(tt.provider, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, stream bool) {
				e := failure(t, modelOf(t, openai.Config{Model: model35, BaseURL: serve(t, sayJSON(tt.status, tt.body))}), stream)
				require.Equal(t, tt.want, e.Message)
				require.Equal(t, tt.kind, e.Kind)
				require.Equal(t, tt.retry, e.Retryable())
				require.Equal(t, !tt.retry, e.Terminal())
			})
		})
	}
}

// TestListOfErrorsUnderStatus200 reads the errors of Gemini where an answer is expected.
func TestListOfErrorsUnderStatus200(t *testing.T) {
	t.Parallel()
	const body = `[{"error":{"code":429,"message":"slow down","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3s"}]}}]`
	for name, h := range map[string]http.HandlerFunc{
		"in one piece": sayJSON(200, body),
		"as data":      events(chunkHi, "", "data: "+body),
		"by event":     events(chunkHi, "", "event: error", "data: "+body),
	} {
		e := failure(t, model(t, h), true)
		require.Equal(t, llm.RateLimited, e.Kind, name)
		require.Equal(t, "an error under status 200: slow down", e.Message, name)
		require.Equal(t, 3*time.Second, e.RetryAfter, name)
	}
}

// TestWaitsOfProviders reads how long a refused call should wait.
func TestWaitsOfProviders(t *testing.T) {
	t.Parallel()
	info := func(delay string) string {
		return `[{"error":{"code":429,"message":"Quota exceeded","details":[{"@type":"type.googleapis.com/google.rpc.Help","links":[]},` +
			`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":` + delay + `}]}}]`
	}
	const slow = `{"error":{"message":"slow down"}}`
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
		{"a point in time", 429, map[string]string{"x-ratelimit-reset-requests": "1767323045"}, slow, time.Minute},
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

// TestAddressIsNotBlamedAfterAnAnswer checks that a 404 or a redirect of an
// endpoint that has answered is not taken for a wrong base URL.
func TestAddressIsNotBlamedAfterAnAnswer(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, stream bool) {
		var next atomic.Pointer[http.HandlerFunc]
		set := func(h http.HandlerFunc) { next.Store(&h) }
		m := model(t, func(w http.ResponseWriter, r *http.Request) { (*next.Load())(w, r) })
		gone := sayJSON(404, `{"error":{"message":"no healthy upstream"}}`)

		set(gone)
		e := failure(t, m, stream)
		require.Equal(t, llm.NotFound, e.Kind)
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
			require.Equal(t, llm.ServerError, e.Kind, name)
			require.NotContains(t, e.Error(), "no chat completions", name)
			require.NotContains(t, e.Error(), "OPENAI_BASE_URL", name)
			require.True(t, e.Retryable(), name)
			require.Equal(t, name == "404", e.Answered(), name)
		}
	})
}
