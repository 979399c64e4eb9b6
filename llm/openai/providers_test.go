package openai_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/llm"
)

// replyOf returns a reply whose message has the given members.
func replyOf(message string) string {
	return `{"choices":[{"index":0,"message":{"role":"assistant",` + message + `},"finish_reason":"stop"}]}`
}

// usageOf returns a good reply with the given usage.
func usageOf(usage string) string {
	return strings.Replace(whole, `{"prompt_tokens":7,"completion_tokens":2}`, usage, 1)
}

// TestProviderReplies reads good answers in the forms in which servers send
// them. The user sees each answer, with its tool calls and the counts that can
// be read.
func TestProviderReplies(t *testing.T) {
	t.Parallel()
	hi := llm.Response{Text: "hi there", CallInfo: llm.CallInfo{FinishReason: "stop"}}
	uncounted := good
	uncounted.Usage = llm.Usage{}
	calls := func(id, arguments string) llm.Response {
		return llm.Response{CallInfo: llm.CallInfo{FinishReason: "stop"}, ToolCalls: []llm.ToolCall{{ID: id, Name: "read", Arguments: arguments}}}
	}
	named := func(id string) llm.Response {
		res := good
		res.RequestID = id
		return res
	}
	counted := func(in, out int) llm.Response {
		res := good
		res.Usage = llm.Usage{InputTokens: in, OutputTokens: out}
		return res
	}
	tests := []struct {
		provider, body string
		want           llm.Response
	}{
		{"gateway: id as a number", strings.Replace(whole, "{", `{"id":17,`, 1), named("17")},
		{"gateway: id as an object", strings.Replace(whole, "{", `{"id":{"a":1},`, 1), good},
		{"Python server: fractional created", strings.Replace(whole, "{", `{"created":1767323045.25,`, 1), good},
		{"gateway: model as a number", strings.Replace(whole, `"m-1"`, `1`, 1), llm.Response{Text: "hi there", CallInfo: llm.CallInfo{FinishReason: "stop"}, Usage: good.Usage}},
		{"gateway: counts as strings", usageOf(`{"prompt_tokens":"7","completion_tokens":" 2 "}`), good},
		{"JavaScript server: counts as floats", usageOf(`{"prompt_tokens":7.0,"completion_tokens":2e0}`), good},
		{"local server: counts are null", usageOf(`{"prompt_tokens":null,"completion_tokens":null}`), uncounted},
		{"local server: usage is null", usageOf(`null`), uncounted},
		{"local server: usage is a text", usageOf(`"unknown"`), uncounted},
		{"local server: usage is a list", usageOf(`[7,2]`), uncounted},
		{"one count is no number", usageOf(`{"prompt_tokens":7,"completion_tokens":"n/a"}`), counted(7, 0)},
		{"one count is an object", usageOf(`{"prompt_tokens":{"text":7},"completion_tokens":2}`), counted(0, 2)},
		{"a count has a fraction", usageOf(`{"prompt_tokens":7.5,"completion_tokens":2}`), counted(0, 2)},
		{"a count exceeds every integer", usageOf(`{"prompt_tokens":1e99,"completion_tokens":2}`), counted(0, 2)},
		{"Ollama: arguments as an object", replyOf(`"content":"","tool_calls":[{"id":"c1","function":{"name":"read","arguments":{"path":"a","n":[1]}}}]`), calls("c1", `{"path":"a","n":[1]}`)},
		{"llama.cpp: tool call id as a number", replyOf(`"content":null,"tool_calls":[{"id":12,"function":{"name":"read","arguments":"{}"}}]`), calls("12", `{}`)},
		{"vLLM: arguments are null", replyOf(`"content":null,"tool_calls":[{"id":"c1","function":{"name":"read","arguments":null}}]`), calls("c1", "")},
		{"OpenAI: refusal is null", replyOf(`"content":"hi there","refusal":null`), hi},
		{"gateway: refusal is false", replyOf(`"content":"hi there","refusal":false`), hi},
		{"gateway: tool_calls is an object", replyOf(`"content":"hi there","tool_calls":{}`), hi},
		{"gateway: error is empty", strings.Replace(whole, "{", `{"error":"",`, 1), good},
		{"gateway: error is false", strings.Replace(whole, "{", `{"error":false,`, 1), good},
		{"Mistral: thinking and references among the parts", replyOf(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"no"}]},` +
			`{"type":"text","text":"hi "},{"type":"reference","reference_ids":[1],"text":"no"},{"type":"text","text":"there"}]`), llm.Response{Text: "hi there", CallInfo: llm.CallInfo{FinishReason: "stop"}, Reasoning: "no"}},
		{"part with a text that is no string", replyOf(`"content":[{"type":"image","text":{"a":1}},{"type":"text","text":"hi there"}]`), hi},
		{"part with a type that is no string", replyOf(`"content":[{"type":1,"text":"no"},{"type":"text","text":"hi there"}]`), hi},
		{"gateway: parts without a type", replyOf(`"content":[{"text":"hi "},{"text":"there"},{"image":"no"}]`), hi},
		{"gateway: parts of the Responses API", replyOf(`"content":[{"type":"output_text","text":"hi there","annotations":[]},{"type":"refusal","text":"no"}]`), hi},
		{"parts as strings", replyOf(`"content":["hi ","there",null]`), hi},
		{"content as one part", replyOf(`"content":{"type":"text","text":"hi there"}`), hi},
		{"IIS: byte order mark", "\ufeff" + whole, good},
		{"DeepSeek: empty lines before the answer", strings.Repeat("\n", 3000) + whole, good},
		{"gateway: index as a string", strings.Replace(whole, `"index":0`, `"index":"0"`, 1), good},
		{"gateway: finish reason is false", strings.Replace(whole, `"finish_reason":"stop"`, `"finish_reason":false`, 1), llm.Response{Text: "hi there", CallInfo: llm.CallInfo{Model: "m-1"}, Usage: good.Usage}},
	}
	for _, tt := range tests {
		t.Run(tt.provider, func(t *testing.T) {
			t.Parallel()
			for _, kind := range []string{"application/json", "text/event-stream"} { // the type may be wrong
				res, err := call(t, model(t, say(200, kind, tt.body)), false)
				require.NoError(t, err, kind)
				res.Provider = nil // TestForms has it
				require.Equal(t, tt.want, res, kind)
			}
		})
	}
}

// messageHi is chunkHi with a message in place of the delta.
var messageHi = strings.Replace(chunkHi, `"delta"`, `"message"`, 1)

// TestProviderStreams reads streams, some of which were not requested.
func TestProviderStreams(t *testing.T) {
	t.Parallel()
	stream := []string{chunkHi, "", chunkYou, "", chunkEnd, "", chunkUse, "", done, ""}
	text := strings.Join(stream, "\n")
	pieces := func(chunks ...string) string { return strings.Join(append(chunks, done), "\n\n") }
	tests := []struct {
		provider, kind, body string
	}{
		{"proxy that always streams", "text/event-stream", text},
		{"proxy that always streams, as JSON", "application/json", text},
		{"comments first", "application/json", ": OPENROUTER PROCESSING\n\n" + text},
		{"byte order mark", "text/event-stream", "\ufeff" + text},
		{"byte order mark, as JSON", "application/json", "\ufeff" + text},
		{"ids as numbers", "text/event-stream", strings.ReplaceAll(text, `{"model"`, `{"id":1,"created":0.5,"model"`)},
		{"counts as strings", "text/event-stream", strings.Replace(text, `:7,"completion_tokens":2`, `:"7","completion_tokens":"2"`, 1)},
		{"whole reply as one event", "text/event-stream", "data: " + whole + "\n\n" + done},
		{"gateway: a message in each event, with the text so far", "text/event-stream", pieces(messageHi, strings.Replace(messageHi, "hi ", "hi there", 1), strings.Replace(messageHi, "hi ", "hi there", 1), chunkEnd, chunkUse)},
		{"gateway: a message in each event, with a piece", "text/event-stream", pieces(messageHi, strings.Replace(messageHi, "hi ", "there", 1), chunkEnd, chunkUse)},
		{"gateway: the whole message last", "text/event-stream", pieces(chunkHi, "data: "+whole)},
		{"Perplexity: the text so far with each piece", "text/event-stream", pieces(
			strings.Replace(chunkHi, `"delta"`, `"message":{"content":"hi "},"delta"`, 1), strings.Replace(chunkYou, `"there"}`, `"there"},"message":{"content":"hi there"}`, 1),
			strings.Replace(chunkEnd, `"finish`, `"message":{"content":"hi there"},"finish`, 1), chunkUse)},
		{"gateway: delta is null next to a message", "text/event-stream", pieces(strings.Replace(messageHi, `"message"`, `"delta":null,"message"`, 1), chunkYou, chunkEnd, chunkUse)},
		{"counts become null", "text/event-stream", pieces(chunkHi, chunkYou, chunkUse, strings.Replace(chunkUse, `:7,"completion_tokens":2`, `:null,"completion_tokens":null`, 1), chunkEnd)},
	}
	for _, tt := range tests {
		t.Run(tt.provider, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, stream bool) {
				res, err := call(t, model(t, say(200, tt.kind, tt.body)), stream)
				require.NoError(t, err)
				if strings.Contains(tt.body, `"id":1`) {
					require.Equal(t, "1", res.RequestID)
					res.RequestID = ""
				}
				require.Equal(t, good, res)
			})
		})
	}
	e := failure(t, model(t, events(chunkHi, "", chunkYou)), false)
	require.Equal(t, callfault.Cut, e.Kind, "an unrequested stream is not complete without a finish reason either")
	e = failure(t, model(t, sayJSON(200, strings.Repeat(" ", 1<<20))), false)
	require.Equal(t, callfault.BadResponse, e.Kind, "a body of spaces is empty")
}

// TestToolCallsInMessagesOfAStream reads tool calls of a stream whose events have
// messages in place of deltas.
func TestToolCallsInMessagesOfAStream(t *testing.T) {
	t.Parallel()
	event := func(call string) string {
		return `data: {"choices":[{"message":{"tool_calls":[` + call + `]}}]}`
	}
	const end = `data: {"choices":[{"message":{"content":null},"finish_reason":"tool_calls"}]}`
	want := []llm.ToolCall{{ID: "c1", Name: "read", Arguments: `{"a":1}`}}
	for name, lines := range map[string][]string{
		"once":            {event(`{"id":"c1","function":{"name":"read","arguments":"{\"a\":1}"}}`), end},
		"in each message": {event(`{"id":"c1","function":{"name":"read","arguments":"{"}}`), event(`{"id":"c1","function":{"name":"read","arguments":"{\"a\":1}"}}`), end},
		"in pieces":       {event(`{"index":0,"id":"c1","function":{"name":"read","arguments":"{\"a\""}}`), event(`{"index":0,"function":{"arguments":":1}"}}`), end},
	} {
		res, err := call(t, model(t, events(lines...)), true)
		require.NoError(t, err, name)
		require.Equal(t, want, res.ToolCalls, name)
	}
}

// TestNegativeCountsAreRefused checks that no form of a negative count lowers what a budget counts.
func TestNegativeCountsAreRefused(t *testing.T) {
	t.Parallel()
	for _, count := range []string{`-7`, `"-7"`, `-7.0`, `-0.5`, `-1e99`, `-` + strings.Repeat("9", 100)} {
		e := failure(t, model(t, sayJSON(200, usageOf(`{"prompt_tokens":`+count+`}`))), false)
		require.Equal(t, callfault.BadResponse, e.Kind, count)
		require.ErrorContains(t, e, "token counts are negative")
	}
}
