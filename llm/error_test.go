package llm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/llm"
)

func TestErrorSaysWhatToSet(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		give llm.Error
		want string
	}{
		{
			"no key",
			llm.Error{Kind: callfault.Unauthorized, Endpoint: "https://api.openai.com/v1", Err: llm.ErrNoKey},
			"https://api.openai.com/v1: no API key; set OPENAI_API_KEY, or set OPENAI_BASE_URL to an endpoint that needs none",
		},
		{
			"wrong key",
			llm.Error{Kind: callfault.Unauthorized, Status: 401, Endpoint: "https://h/v1", Model: "m", Message: "no such user"},
			`model "m" at https://h/v1: the endpoint refused the key (401): no such user; check the apiKey beside its baseURL, or OPENAI_API_KEY, ` +
				"which is sent only to api.openai.com and the host of OPENAI_BASE_URL",
		},
		{
			"a key that was not sent",
			llm.Error{Kind: callfault.Unauthorized, Status: 401, Endpoint: "https://h/v1", Err: llm.ErrNoKey, Message: "Say who you are."},
			"https://h/v1: the endpoint requires a key, and none was sent (401): Say who you are; set the apiKey beside its baseURL, or OPENAI_API_KEY, " +
				"which is sent only to api.openai.com and the host of OPENAI_BASE_URL",
		},
		{
			"rate limit",
			llm.Error{Kind: callfault.RateLimited, Status: 429, RetryAfter: 20 * time.Second},
			"rate limited (429) (retry after 20s)",
		},
		{
			"down",
			llm.Error{Kind: callfault.Unreachable, Endpoint: "http://localhost:1/v1", Message: "connection refused"},
			"http://localhost:1/v1: cannot be reached: connection refused; check that it is running, and its base URL (baseURL or OPENAI_BASE_URL)",
		},
		{
			"unknown model",
			llm.Error{Kind: callfault.UnknownModel, Status: 404, Model: "gtp-4o", Err: &callfault.OfferError{Models: []string{"gpt-4o", "o3"}}},
			`model "gtp-4o": the endpoint does not offer this model (404); set another; the endpoint offers gpt-4o, o3`,
		},
		{
			"no model",
			llm.Error{Kind: callfault.UnknownModel, Endpoint: "http://h/v1", Err: llm.ErrNoModel},
			"http://h/v1: no model is set; set one",
		},
		{
			"no version in the base URL",
			llm.Error{Kind: callfault.NotFound, Status: 404, Endpoint: "http://localhost:11434/"},
			"http://localhost:11434/: no chat completions at this address (404); /v1 is missing in the base URL: set baseURL or OPENAI_BASE_URL to http://localhost:11434/v1",
		},
		{
			"Azure without its path",
			llm.Error{Kind: callfault.NotFound, Status: 404, Endpoint: "https://acme.openai.azure.com"},
			"https://acme.openai.azure.com: no chat completions at this address (404); for Azure, write https://NAME.openai.azure.com/openai/v1, or " +
				"https://NAME.openai.azure.com/openai/deployments/DEPLOYMENT?api-version=VERSION",
		},
		{
			"another address",
			llm.Error{Kind: callfault.NotFound, Status: 404, Endpoint: "http://localhost/api/v3"},
			"http://localhost/api/v3: no chat completions at this address (404); check its base URL (baseURL or OPENAI_BASE_URL)",
		},
		{
			"a page instead of an answer",
			llm.Error{Kind: callfault.BadResponse, Status: 200, Endpoint: "http://h/v1", Message: "HTML instead of JSON"},
			"http://h/v1: bad response: HTML instead of JSON; check its base URL (baseURL or OPENAI_BASE_URL)",
		},
		{
			"a page, and no version in the base URL",
			llm.Error{Kind: callfault.BadResponse, Status: 200, Endpoint: "http://h", Message: "HTML instead of JSON"},
			"http://h: bad response: HTML instead of JSON; /v1 may be missing in the base URL: try http://h/v1 as baseURL or OPENAI_BASE_URL",
		},
		{
			"a prompt that is too long",
			llm.Error{Kind: callfault.PromptTooLong, Status: 413, Message: "limit 6000"},
			"the prompt is too long (413): limit 6000; shorten the task or what it reads, lower maxTokens, or use a model with a larger context window",
		},
		{
			"a moderated prompt",
			llm.Error{Kind: callfault.Moderated, Status: 403, Message: "flagged"},
			"a filter of the provider refused the prompt (403): flagged; change the prompt, or the filter settings at the provider",
		},
		{
			"timeout",
			llm.Error{Kind: callfault.Timeout, Message: "the limit is 5m0s"},
			"no complete reply in time: the limit is 5m0s; raise the limit of the call, or use a faster model",
		},
		{
			"too large",
			llm.Error{Kind: callfault.TooLarge, Status: 200, Message: "the limit is 4194304 bytes"},
			"the reply is too large: the limit is 4194304 bytes; ask for less, or raise the limit",
		},
		{"a server that forges lines", llm.Error{Kind: callfault.ServerError, Status: 502, Message: "a\n\x1b[2Jb\u202ec"}, `server error (502): a \u001b[2Jb\u202ec`},
		{"nothing known", llm.Error{}, "the call failed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, tt.give.Error())
			require.NotContains(t, tt.give.Error(), "\n")
		})
	}
}

func TestErrorListsAtMostTwelveModels(t *testing.T) {
	t.Parallel()
	offer := &callfault.OfferError{}
	e := llm.Error{Kind: callfault.UnknownModel, Model: "m", Err: offer}
	for i := range 80 {
		offer.Models = append(offer.Models, fmt.Sprintf("m%02d", i))
	}
	require.Contains(t, e.Error(), "m00, m01, ")
	require.Contains(t, e.Error(), "m11 and 68 more")
	require.NotContains(t, e.Error(), "m12")
}

func TestErrorWrapsItsCause(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("task: %w", &llm.Error{Kind: callfault.Unauthorized, Err: llm.ErrNoKey})
	require.ErrorIs(t, err, llm.ErrNoKey)
	e, ok := errors.AsType[*llm.Error](err)
	require.True(t, ok)
	require.Equal(t, callfault.Unauthorized, e.Kind)
}

func TestUsage(t *testing.T) {
	t.Parallel()
	sum := llm.Usage{InputTokens: 1, OutputTokens: 2}.Add(llm.Usage{InputTokens: 10, OutputTokens: 20})
	data, err := json.Marshal(sum)
	require.NoError(t, err)
	require.JSONEq(t, `{"input_tokens": 11, "output_tokens": 22}`, string(data))
	require.Equal(t, llm.Usage{InputTokens: 1, OutputTokens: 2}, llm.Usage{InputTokens: 1, OutputTokens: -2}.Add(llm.Usage{InputTokens: -10, OutputTokens: 2}), "a count below zero is none")
}
