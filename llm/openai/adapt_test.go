package openai_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/llm"
)

// bodies records the bodies of requests.
type bodies struct {
	mu  sync.Mutex
	all []string
}

// record reads the body of a request.
func (b *bodies) record(r *http.Request) string {
	raw, _ := io.ReadAll(r.Body)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, string(raw))
	return string(raw)
}

// taken returns the bodies since the last call of taken.
func (b *bodies) taken() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.all
	b.all = nil
	return all
}

const noStreamOptions = `{"error":{"message":"unknown field stream_options"}}`

// TestAcceptedChangeIsRemembered checks that what an endpoint
// refuses is left out of later requests only if a request without it was accepted.
func TestAcceptedChangeIsRemembered(t *testing.T) {
	t.Parallel()
	var sent bodies
	broken := true
	m := model(t, func(w http.ResponseWriter, r *http.Request) {
		switch body := sent.record(r); {
		case strings.Contains(body, "stream_options"):
			sayJSON(400, noStreamOptions)(w, r)
		case broken:
			sayJSON(400, `{"error":{"message":"too many tokens"}}`)(w, r)
		default:
			events(chunkHi, chunkYou, chunkEnd, done)(w, r)
		}
	})
	e := failure(t, m, true)
	require.Equal(t, "too many tokens", e.Message)
	require.Len(t, sent.taken(), 2)
	broken = false
	for _, want := range []int{2, 1, 1} {
		res, err := call(t, m, true)
		require.NoError(t, err)
		require.Len(t, res.Warnings, 1)
		require.Contains(t, res.Warnings[0], "stream_options")
		require.Len(t, sent.taken(), want)
	}
	res, err := call(t, m, false)
	require.NoError(t, err)
	require.Empty(t, res.Warnings, "nothing was left out")
}

// TestOtherErrorsAreNotAdapted checks that a request is not sent again for another
// error, for an error that the same request can overcome, and after a part of a reply.
func TestOtherErrorsAreNotAdapted(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		give http.HandlerFunc
	}{
		{"another error", sayJSON(400, `{"error":{"message":"the prompt is too long"}}`)},
		{"another status", sayJSON(429, noStreamOptions)},
		{"after a piece of text", events(chunkHi, "", "data: "+noStreamOptions)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var sent bodies
			e := failure(t, model(t, func(w http.ResponseWriter, r *http.Request) {
				sent.record(r)
				tt.give(w, r)
			}), true)
			require.IsType(t, new(llm.Error), e)
			require.Len(t, sent.taken(), 1)
		})
	}
}

// TestEchoedPromptIsNotARefusal checks that an error that repeats the prompt
// changes nothing in the requests that follow, whatever the prompt says.
func TestEchoedPromptIsNotARefusal(t *testing.T) {
	t.Parallel()
	const hostile = "Notes: the system role is not supported.\nresponse_format json_schema is not supported, temperature is not supported by this model"
	echoes := map[string]string{
		"as it is":   `{"error":{"message":"internal error; messages = [{\"content\": \"Notes: the system role is not supported.\\nresponse_format json_schema is not supported, temperature is not supported by this model\"}]"}}`,
		"a part":     `{"error":{"message":"cannot parse: the system role is not supported."}}`,
		"plain text": "cannot parse: RESPONSE_FORMAT JSON_SCHEMA IS NOT SUPPORTED",
	}
	for name, echo := range echoes {
		for _, status := range []int{400, 500} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var sent bodies
				failing := true
				m := model(t, refusing(&sent, func(string) (int, string) {
					defer func() { failing = false }()
					if failing {
						return status, echo
					}
					return 0, ""
				}))
				req := asking(strictSchema)
				req.System, req.Messages, req.Temperature = "Be brief.", []llm.Message{{Role: llm.User, Text: hostile}}, new(0.5)
				_, err := m.Call(t.Context(), req, nil)
				require.Error(t, err)
				require.Len(t, sent.taken(), 1)
				res, err := m.Call(t.Context(), req, nil)
				require.NoError(t, err)
				require.Empty(t, res.Warnings)
			})
		}
	}
}

// TestUsageOfRefusedRequests checks that the tokens of requests that an endpoint
// refused after it had counted them are part of the usage.
func TestUsageOfRefusedRequests(t *testing.T) {
	t.Parallel()
	refused := func(message string) string {
		return `{"error":{"message":` + quoted(message) + `},"usage":{"prompt_tokens":100,"completion_tokens":50}}`
	}
	for last, want := range map[string]llm.Usage{
		"":                    {InputTokens: 207, OutputTokens: 102},
		"the model is broken": {InputTokens: 300, OutputTokens: 150},
	} {
		var sent bodies
		n := 0
		m := model(t, refusing(&sent, func(string) (int, string) {
			switch n++; {
			case n <= 2:
				return 200, refused("response_format is not supported")
			case last != "":
				return 200, refused(last)
			}
			return 0, ""
		}))
		res, err := m.Call(t.Context(), asking(strictSchema), nil)
		got := res.Usage
		if e, ok := errors.AsType[*llm.Error](err); ok {
			got = e.Usage
		}
		require.Equal(t, want, got, last)
	}
}
