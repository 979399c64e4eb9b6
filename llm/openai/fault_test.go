package openai_test

import (
	"context"
	"errors"
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

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/callwait"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

func TestStatuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		body   string
		kind   string
		want   string
	}{
		{"401", 401, `{"error":{"message":"bad key","type":"invalid_request_error"}}`, callfault.Unauthorized, "none was sent (401): bad key; set the apiKey"},
		{"403", 403, `{"error":"forbidden"}`, callfault.Unauthorized, "forbidden"},
		{"402", 402, `{"error":{"message":"Insufficient Balance"}}`, callfault.NoCredit, "no credit left (402): Insufficient Balance"},
		{"quota", 429, `{"error":{"message":"You exceeded","code":"insufficient_quota"}}`, callfault.NoCredit, "no credit left"},
		{"429", 429, `{"error":{"message":"slow down"}}`, callfault.RateLimited, "rate limited (429): slow down"},
		{"400", 400, `{"error":{"message":"temperature is out of range","param":"temperature"}}`, callfault.BadRequest, "refused the request (400): temperature is out of range"},
		{"422 of FastAPI", 422, `{"detail":[{"loc":["body"],"msg":"no"}]}`, callfault.BadRequest, "refused the request (422)"},
		{"400 unknown model", 400, `{"error":{"message":"no/such is not a valid model ID","code":400}}`, callfault.UnknownModel, "does not offer"},
		{"403 unknown model", 403, `{"error":{"message":"no access","code":"model_not_found"}}`, callfault.UnknownModel, "does not offer"},
		{"408", 408, ``, callfault.ServerError, "server error (408)"},
		{"500", 500, `{"error":{"message":["two","messages"]}}`, callfault.ServerError, "server error (500)"},
		{"502 HTML", 502, `<html><body><h1>502 Bad Gateway</h1></body></html>`, callfault.ServerError, "server error (502): HTML instead of JSON"},
		{"503 text", 503, "overloaded\nplease wait\x1b[31m", callfault.ServerError, `server error (503): overloaded please wait\u001b[31m`},
		{"503 of Envoy", 503, "no healthy upstream", callfault.ServerError, "server error (503): no healthy upstream"},
		{"504 nothing", 504, "", callfault.ServerError, "server error (504)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, stream bool) {
				e := failure(t, model(t, sayJSON(tt.status, tt.body)), stream)
				require.Equal(t, tt.kind, e.Kind)
				require.Equal(t, tt.status, e.Status)
				require.Equal(t, "m", e.Model)
				require.ErrorContains(t, e, tt.want)
			})
		})
	}
}

func TestEchoedPromptIsMasked(t *testing.T) {
	t.Parallel()
	e := failure(t, model(t, sayJSON(400, `{"error":{"message":"invalid input: {\"content\": \"# Task: the canary-of-the-prompt sings\"} in `+strings.Repeat("x", 5000)+`"}}`)), false)
	require.Contains(t, e.Message, `invalid input: {"content": "[prompt]"} in xxx`)
	require.LessOrEqual(t, len(e.Message), 300)
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	date := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := []struct {
		name    string
		headers map[string]string
		want    time.Duration
	}{
		{"seconds", map[string]string{"Retry-After": "20"}, 20 * time.Second},
		{"part of a second", map[string]string{"Retry-After": "0.5"}, 500 * time.Millisecond},
		{"date", map[string]string{"Date": date.Format(http.TimeFormat), "Retry-After": date.Add(90 * time.Second).Format(http.TimeFormat)}, 90 * time.Second},
		{"date gone by", map[string]string{"Date": date.Format(http.TimeFormat), "Retry-After": date.Add(-time.Hour).Format(http.TimeFormat)}, 0},
		{"milliseconds", map[string]string{"Retry-After-Ms": "1500", "Retry-After": "2"}, 1500 * time.Millisecond},
		{"nonsense", map[string]string{"Retry-After": "soon"}, 0},
		{"negative", map[string]string{"Retry-After": "-5"}, 0},
		{"for ever", map[string]string{"Retry-After": "1e300"}, 1<<63 - 1},
		{"none", nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := failure(t, model(t, func(w http.ResponseWriter, r *http.Request) {
				for k, v := range tt.headers {
					w.Header().Set(k, v)
				}
				sayJSON(429, `{"error":{"message":"slow down"}}`)(w, r)
			}), true)
			require.Equal(t, callfault.RateLimited, e.Kind)
			require.Equal(t, tt.want, e.RetryAfter)
		})
	}
}

func TestUnknownModelListsModels(t *testing.T) {
	t.Parallel()
	var lists atomic.Int32
	h := func(completion http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/models" {
				lists.Add(1)
				sayJSON(200, `{"object":"list","data":[{"id":"zeta"},{"id":"alpha"},{"id":"mistral"},{"id":""},{"id":"alpha"}]}`)(w, r)
				return
			}
			completion(w, r)
		}
	}
	tests := []struct {
		name, body string
	}{
		{"OpenAI", `{"error":{"message":"The model does not exist","type":"invalid_request_error","code":"model_not_found"}}`},
		{"Ollama", `{"error":{"message":"model \"m\" not found, try pulling it first","type":"api_error"}}`},
		{"vLLM before 0.10", `{"object":"error","message":"The model ` + "`m`" + ` does not exist.","type":"NotFoundError","code":404}`},
		{"nothing said", ``},
	}
	for _, tt := range tests {
		e := failure(t, model(t, h(sayJSON(404, tt.body))), false)
		require.Equal(t, callfault.UnknownModel, e.Kind, tt.name)
		require.Equal(t, []string{"mistral", "alpha", "zeta"}, offered(e), "the likeliest first")
		require.ErrorContains(t, e, "the endpoint offers mistral, alpha, zeta")
	}
	require.EqualValues(t, len(tests), lists.Load())

	listed := modelOf(t, openai.Config{Model: "alpha", BaseURL: serve(t, h(sayJSON(404, tests[0].body)))})
	e := failure(t, listed, false)
	require.Equal(t, callfault.UnknownModel, e.Kind, "what the endpoint says counts more than its list")
	require.Len(t, offered(e), 3)
	listed = modelOf(t, openai.Config{Model: "alpha", BaseURL: serve(t, h(sayJSON(404, "")))})
	require.Equal(t, callfault.NotFound, failure(t, listed, false).Kind)
	lists.Add(-2)

	for _, status := range []int{200, 400, 401, 429, 500} { // only a 404 is worth the question
		_, _ = call(t, model(t, h(sayJSON(status, whole))), false)
	}
	require.EqualValues(t, len(tests), lists.Load())
}

// offered returns the models that an error says that the endpoint offers.
func offered(e *llm.Error) []string {
	if offer, ok := errors.AsType[*callfault.OfferError](e.Err); ok {
		return offer.Models
	}
	return nil
}

func TestMissingVersionInTheBaseURL(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, stream bool) {
		mux := http.NewServeMux()
		mux.HandleFunc("/v1/chat/completions", answer)
		s := httptest.NewServer(mux)
		defer s.Close()
		e := failure(t, modelOf(t, openai.Config{Model: "m", BaseURL: s.URL}), stream)
		require.Equal(t, callfault.NotFound, e.Kind)
		require.ErrorContains(t, e, "/v1 is missing in the base URL: set baseURL or OPENAI_BASE_URL to "+s.URL+"/v1")
		require.False(t, callfault.IsAnswered(e.Kind, e.Status))
	})
}

func TestBadModelLists(t *testing.T) {
	t.Parallel()
	for name, list := range map[string]http.HandlerFunc{
		"HTML":    say(200, "text/html", "<html>"),
		"empty":   sayJSON(200, `{"data":[]}`),
		"endless": sayJSON(200, `{"data":[{"id":"`+strings.Repeat("x", 2<<20)+`"}]}`),
		"error":   sayJSON(500, `{}`),
	} {
		e := failure(t, model(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				list(w, r)
				return
			}
			sayJSON(404, `{"error":{"message":"the model does not exist"}}`)(w, r)
		}), false)
		require.Equal(t, callfault.UnknownModel, e.Kind, name)
		require.Empty(t, offered(e), name)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, stream bool) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		refused := "http://" + l.Addr().String() + "/v1"
		require.NoError(t, l.Close())
		e := failure(t, modelOf(t, openai.Config{Model: "m", BaseURL: refused, APIKey: openai.NewKey(fakeKey)}), stream)
		require.Equal(t, callfault.Unreachable, e.Kind)
		require.ErrorContains(t, e, refused+": cannot be reached: connection refused")
		require.True(t, e.Retryable())

		e = failure(t, model(t, func(w http.ResponseWriter, _ *http.Request) { reset(t, w) }), stream)
		require.Equal(t, callfault.Unreachable, e.Kind)
		require.Regexp(t, "connection reset|closed the connection", e.Message)

		e = failure(t, modelOf(t, openai.Config{Model: "m", BaseURL: "http://h/v1", HTTPClient: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			return nil, &net.DNSError{Name: "h", Err: "no such host", IsNotFound: true}
		})}}), stream)
		require.Equal(t, callfault.Unreachable, e.Kind)
		require.ErrorContains(t, e, `no such host "h"`)

		e = failure(t, modelOf(t, openai.Config{Model: "m", BaseURL: "http://h/v1", HTTPClient: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			return nil, &net.DNSError{Name: "h", Err: "i/o timeout", IsTimeout: true}
		})}}), stream)
		require.Equal(t, callfault.Unreachable, e.Kind)
		require.ErrorContains(t, e, "connecting timed out")

		e = failure(t, modelOf(t, openai.Config{Model: "m", BaseURL: "http://h/v1", HTTPClient: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			return nil, errors.New("proxy http://user:hunter2@proxy:3128 says no")
		})}}), stream)
		require.Equal(t, "proxy http://proxy:3128 says no", e.Message)
	})
}

// reset closes the connection of w at once, as a process that dies does.
func reset(t *testing.T, w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// silent runs a test against a server that reads and never answers, with a clock of its own.
func silent(t *testing.T, cfg openai.Config, test func(t *testing.T, m *openai.Model)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer stop()
		cfg.Model, cfg.BaseURL = "m", "http://h/v1"
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			wg.Go(func() { _, _ = io.Copy(io.Discard, theirs) })
			wg.Go(func() { <-ctx.Done(); _ = theirs.Close() })
			return ours, nil
		}}
		defer transport.CloseIdleConnections()
		cfg.HTTPClient = &http.Client{Transport: transport}
		test(t, modelOf(t, cfg))
	})
}

func TestHangingServerTimesOut(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, stream bool) {
		silent(t, openai.Config{}, func(t *testing.T, m *openai.Model) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var emit func(llm.Delta) error
			if stream {
				emit = func(llm.Delta) error { return nil }
			}
			start := time.Now()
			_, err := llm.Retry(m, llm.RetryOptions{}).Call(ctx, hello, emit)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, time.Second, time.Since(start), "and it is not called again")
		})
	})
}

// TestCallWithoutDeadlineIsBounded covers callers that set no limit, such as an agent written in Go.
func TestCallWithoutDeadlineIsBounded(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, stream bool) {
		silent(t, openai.Config{}, func(t *testing.T, m *openai.Model) {
			var emit func(llm.Delta) error
			if stream {
				emit = func(llm.Delta) error { return nil }
			}
			start := time.Now()
			_, err := m.Call(t.Context(), hello, emit)
			failed, ok := errors.AsType[*llm.Error](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, callfault.Timeout, failed.Kind)
			require.Equal(t, 5*time.Minute, time.Since(start))
		})
	})
}

func TestCallEndsWithTheContext(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, stream bool) {
		silent(t, openai.Config{}, func(t *testing.T, m *openai.Model) {
			stop := errors.New("stopped by hand")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Minute, func() { cancel(stop) })
			var emit func(llm.Delta) error
			if stream {
				emit = func(llm.Delta) error { return nil }
			}
			_, err := m.Call(ctx, hello, emit)
			require.ErrorIs(t, err, stop)
			require.ErrorContains(t, err, `call of model "m"`)
		})
	})
}

func TestRetriesOfACall(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, stream bool) {
		var calls atomic.Int32
		m := model(t, func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1) < 3 {
				sayJSON(500, `{"error":{"message":"again"}}`)(w, r)
				return
			}
			answer(w, r)
		})
		var waits []string
		ctx := callwait.Observe(t.Context(), func(w callwait.Wait) { waits = append(waits, w.Err.Error()) })
		res, err := llm.Retry(m, llm.RetryOptions{Delay: time.Millisecond}).Call(ctx, hello, nil)
		require.NoError(t, err)
		res.Endpoint = ""
		require.Equal(t, good, res)
		require.Len(t, waits, 2)
		require.Contains(t, waits[0], "model \"m\" at http://127.0.0.1:")
		require.Contains(t, waits[0], "server error (500): again")
	})
}
