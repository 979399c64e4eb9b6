package openai_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

// streamOf returns a stream whose deltas have the given members.
func streamOf(deltas ...string) string {
	var b strings.Builder
	for _, d := range deltas {
		fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":{%s}}]}\n\n", d)
	}
	return b.String() + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" + done + "\n"
}

// TestReasoningIsSeparated reads reasoning in the forms in which providers send it,
// in one piece and as a stream. It is never part of the text or of a delta.
func TestReasoningIsSeparated(t *testing.T) {
	t.Parallel()
	tests := []struct {
		provider string
		deltas   []string // of a stream; the message of a whole reply if there is one only
		want     string
	}{
		{"DeepSeek", []string{`"content":"hi","reasoning_content":"let me see"`}, "let me see"},
		{"DeepSeek, stream", []string{`"content":null,"reasoning_content":"let "`, `"content":null,"reasoning_content":"me see"`, `"content":"hi","reasoning_content":null`}, "let me see"},
		{"Groq, Ollama", []string{`"reasoning":"let me see","content":"hi"`}, "let me see"},
		{"OpenRouter: the same twice", []string{`"content":"hi","reasoning":"let me see","reasoning_details":[{"type":"reasoning.text","text":"let me see","signature":"x","index":0}]`}, "let me see"},
		{"OpenRouter: the same twice, stream", []string{`"content":"","reasoning":"let ","reasoning_details":[{"type":"reasoning.text","text":"let "}]`,
			`"content":"","reasoning":"me see","reasoning_details":[{"type":"reasoning.text","text":"me see"}]`, `"content":"hi"`}, "let me see"},
		{"OpenRouter: details only", []string{`"content":"hi","reasoning":null,"reasoning_details":[{"type":"reasoning.summary","summary":"let "},{"type":"reasoning.encrypted","data":"zzz"},{"type":"reasoning.text","text":"me see"}]`}, "let me see"},
		{"vLLM: both names", []string{`"content":"hi","reasoning":"let me see","reasoning_content":"let me see"`}, "let me see"},
		{"LiteLLM: thinking blocks", []string{`"content":"hi","thinking_blocks":[{"type":"thinking","thinking":"let me see","signature":"x"}]`}, "let me see"},
		{"Mistral", []string{`"content":[{"type":"thinking","thinking":[{"type":"text","text":"let "},{"type":"text","text":"me see"}],"closed":true},{"type":"text","text":"hi"}]`}, "let me see"},
		{"Mistral, stream", []string{`"content":[{"type":"thinking","thinking":[{"type":"text","text":"let "}]}]`,
			`"content":[{"type":"thinking","thinking":[{"type":"text","text":"me see"}]}]`, `"content":"hi"`}, "let me see"},
		{"Anthropic", []string{`"content":[{"type":"thinking","thinking":"let me see","signature":"x"},{"type":"redacted_thinking","data":"zzz"},{"type":"text","text":"hi"}]`}, "let me see"},
		{"part of reasoning with a text", []string{`"content":[{"text":"let me see","type":"reasoning"},{"type":"text","text":"hi"}]`}, "let me see"},
		{"part of reasoning with a summary", []string{`"content":[{"type":"reasoning","summary":[{"type":"summary_text","text":"let me see"}]},{"type":"text","text":"hi"}]`}, "let me see"},
		{"text with a member that is no reasoning of it", []string{`"content":[{"type":"text","text":"hi","summary":"no"}]`}, ""},
		{"empty and null", []string{`"content":"hi","reasoning":"","reasoning_content":null,"reasoning_details":[]`}, ""},
		{"values that hold no text", []string{`"content":"hi","reasoning":{"effort":"low"},"reasoning_content":7,"reasoning_details":[null,[1],{"text":{}}]`}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.provider, func(t *testing.T) {
			t.Parallel()
			bodies := map[string]string{"text/event-stream": streamOf(tt.deltas...)}
			if len(tt.deltas) == 1 {
				bodies["application/json"] = replyOf(tt.deltas[0])
			}
			for kind, body := range bodies {
				for _, stream := range []bool{false, true} {
					res, err := call(t, model(t, say(200, kind, body)), stream)
					require.NoError(t, err)
					res.Provider = nil
					require.Equal(t, llm.Response{Text: "hi", CallInfo: llm.CallInfo{FinishReason: "stop"}, Reasoning: tt.want}, res, kind)
				}
			}
		})
	}
}

// TestReasoningIsNotAnAnswer checks that a reply that stops after its reasoning is
// empty, that one that was truncated there is truncated, and that reasoning
// counts toward the limit of a reply.
func TestReasoningIsNotAnAnswer(t *testing.T) {
	t.Parallel()
	const thought = `"content":"","reasoning":"let me see"`
	for _, body := range []string{replyOf(thought), streamOf(thought)} {
		e := failure(t, model(t, sayJSON(200, body)), false)
		require.Equal(t, callfault.Empty, e.Kind)
		require.ErrorContains(t, e, `reasoning without an answer, finish reason "stop"`)
		require.NotContains(t, e.Error(), "let me see")

		res, err := call(t, model(t, sayJSON(200, strings.Replace(body, `"stop"`, `"length"`, 1))), false)
		require.NoError(t, err)
		res.Provider = nil
		require.Equal(t, llm.Response{Reasoning: "let me see", CallInfo: llm.CallInfo{FinishReason: "length"}}, res)
	}
	const limit = 100 << 10
	long := fmt.Sprintf(`"content":%q,"reasoning":%q`, strings.Repeat("x", limit/2), strings.Repeat("y", limit/2))
	for _, body := range []string{replyOf(long), streamOf(long)} {
		small := openai.Config{Model: "m", BaseURL: serve(t, sayJSON(200, body)), MaxReply: limit}
		_, err := call(t, modelOf(t, small), false)
		require.NoError(t, err)
		small.MaxReply--
		require.Equal(t, callfault.TooLarge, failure(t, modelOf(t, small), false).Kind)
	}
}

// TestRequestIDs reads what providers call a request: in a header, else in the reply.
func TestRequestIDs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		provider, header, value, body string
		want                          string
	}{
		{"OpenAI", "x-request-id", "req_1", `"chatcmpl-1"`, "req_1"},
		{"Anthropic", "request-id", "req_2", `"msg_1"`, "req_2"},
		{"Azure", "apim-request-id", "7c0e", `"chatcmpl-1"`, "7c0e"},
		{"OpenRouter", "", "", `"gen-1-x"`, "gen-1-x"},
		{"a number", "", "", `42`, "42"},
		{"none", "", "", `null`, ""},
		{"an empty header", "x-request-id", " ", `"gen-1"`, "gen-1"},
		{"two lines", "", "", `"a\nb\u001b[31m"`, `a b\u001b[31m`},
		{"very long", "", "", `"` + strings.Repeat("x", 5000) + `"`, strings.Repeat("x", 297) + "…"},
		{"an echo of the prompt", "", "", `"canary-of-the-prompt"`, "[prompt]"},
		{"an echo of the key", "x-request-id", fakeKey, `""`, "[key]"},
	}
	for _, tt := range tests {
		t.Run(tt.provider, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, stream bool) {
				m := modelOf(t, openai.Config{Model: "m", APIKey: openai.NewKey(fakeKey), BaseURL: serve(t, func(w http.ResponseWriter, r *http.Request) {
					if tt.header != "" {
						w.Header().Set(tt.header, tt.value)
					}
					if stream {
						hi := strings.Replace(chunkHi, "{", `{"id":`+tt.body+`,`, 1)
						events(hi, "", strings.Replace(chunkYou, "{", `{"id":"later",`, 1), "", chunkEnd, "", done)(w, r)
						return
					}
					sayJSON(200, strings.Replace(whole, "{", `{"id":`+tt.body+`,`, 1))(w, r)
				})})
				res, err := call(t, m, stream)
				require.NoError(t, err)
				want := tt.want
				if stream && want == "" {
					want = "later" // the first that there is
				}
				require.Equal(t, want, res.RequestID)
			})
		})
	}
}

// TestReasoningIsCountedAsOutput reads the counts of providers that leave reasoning
// out of the tokens of the reply. A budget counts all that was written.
func TestReasoningIsCountedAsOutput(t *testing.T) {
	t.Parallel()
	tests := []struct {
		provider, usage string
		want            llm.Usage
	}{
		{"OpenAI", `{"prompt_tokens":12,"completion_tokens":387,"total_tokens":399,"completion_tokens_details":{"reasoning_tokens":386}}`, llm.Usage{InputTokens: 12, OutputTokens: 387, ReasoningTokens: 386}},
		{"xAI", `{"prompt_tokens":12,"completion_tokens":1,"total_tokens":399,"completion_tokens_details":{"reasoning_tokens":386}}`, llm.Usage{InputTokens: 12, OutputTokens: 387, ReasoningTokens: 386}},
		{"Gemini", `{"completion_tokens":198,"prompt_tokens":20,"total_tokens":623}`, llm.Usage{InputTokens: 20, OutputTokens: 603}},
		{"Gemini: only reasoning was counted", `{"completion_tokens":0,"prompt_tokens":21,"total_tokens":"81","completion_tokens_details":{"reasoning_tokens":60}}`, llm.Usage{InputTokens: 21, OutputTokens: 60, ReasoningTokens: 60}},
		{"a total that is too small", `{"prompt_tokens":7,"completion_tokens":2,"total_tokens":3}`, llm.Usage{InputTokens: 7, OutputTokens: 2}},
		{"a negative total", `{"prompt_tokens":7,"completion_tokens":2,"total_tokens":-3}`, llm.Usage{InputTokens: 7, OutputTokens: 2}},
		{"a total alone", `{"total_tokens":9}`, llm.Usage{}},
	}
	for _, tt := range tests {
		t.Run(tt.provider, func(t *testing.T) {
			t.Parallel()
			stream := strings.Join([]string{chunkHi, chunkEnd, `data: {"choices":[],"usage":` + tt.usage + `}`, done}, "\n\n")
			for _, body := range []string{usageOf(tt.usage), stream} {
				res, err := call(t, model(t, sayJSON(200, body)), false)
				require.NoError(t, err)
				require.Equal(t, tt.want, res.Usage)
			}
		})
	}
}

// TestCachedAndReasoningTokens reads which tokens were cached and which were reasoning.
func TestCachedAndReasoningTokens(t *testing.T) {
	t.Parallel()
	tests := []struct {
		provider, usage   string
		cached, reasoning int
	}{
		{"OpenAI", `"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":3}`, 4, 3},
		{"DeepSeek", `"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":6`, 4, 0},
		{"strings", `"prompt_tokens_details":{"cached_tokens":"4"},"completion_tokens_details":{"reasoning_tokens":3.0}`, 4, 3},
		{"null", `"prompt_tokens_details":null,"completion_tokens_details":{"reasoning_tokens":null}`, 0, 0},
		{"of other types", `"prompt_tokens_details":[4],"completion_tokens_details":"3","prompt_cache_hit_tokens":{}`, 0, 0},
		{"negative", `"prompt_tokens_details":{"cached_tokens":-4},"completion_tokens_details":{"reasoning_tokens":"-3"}`, 0, 0},
		{"more than the whole", `"prompt_tokens_details":{"cached_tokens":11},"completion_tokens_details":{"reasoning_tokens":1e15}`, 10, 5},
	}
	for _, tt := range tests {
		t.Run(tt.provider, func(t *testing.T) {
			t.Parallel()
			usage := `{"prompt_tokens":10,"completion_tokens":5,` + tt.usage + `}`
			want := llm.Usage{InputTokens: 10, OutputTokens: 5, CachedTokens: tt.cached, ReasoningTokens: tt.reasoning}
			stream := strings.Join([]string{chunkHi, chunkEnd, `data: {"choices":[],"usage":` + usage + `}`, done}, "\n\n")
			for _, body := range []string{usageOf(usage), stream} {
				res, err := call(t, model(t, sayJSON(200, body)), false)
				require.NoError(t, err)
				require.Equal(t, want, res.Usage)
			}
		})
	}
}
