package scripted_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

// answering returns a model that gives these responses in turn. A response without text and
// calls is a failed call.
func answering(responses ...llm.Response) llm.Model {
	n := 0
	return llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		res := responses[n]
		if n++; res.Text == "" && len(res.ToolCalls) == 0 {
			return res, &llm.Error{Kind: "server error", Status: 503, Message: "not now"}
		}
		return res, nil
	})
}

// calling is a response that calls a tool.
func calling(name, arguments string) llm.Response {
	return llm.Response{ToolCalls: []llm.ToolCall{{ID: "x", Name: name, Arguments: arguments}}, CallInfo: llm.CallInfo{FinishReason: "tool_calls"}}
}

// recordingOf returns the file of a recording.
func recordingOf(t require.TestingT, r *scripted.Recorder) string {
	var b bytes.Buffer
	_, err := r.WriteTo(&b)
	require.NoError(t, err)
	return b.String()
}

func TestRecordedConversation(t *testing.T) {
	t.Parallel()
	var r scripted.Recorder
	m := r.Model(answering(
		calling("search", `{ "q": "who is {{ x }}?", "n": 1.50 }`),
		llm.Response{},
		llm.Response{Text: "two at once", Usage: llm.Usage{InputTokens: 7, OutputTokens: 1}, ToolCalls: []llm.ToolCall{{ID: "x", Name: "fetch", Arguments: ""}, {ID: "y", Name: "search", Arguments: `{"q":"b"}`}}},
		llm.Response{Text: "Ann"},
		llm.Response{Text: "no tools for b"},
	))
	first, err := begin(llm.Retry(m, llm.RetryOptions{Delay: 1}), "a").talk(t.Context())
	require.NoError(t, err)
	other, err := begin(m, "b").talk(t.Context())
	require.NoError(t, err)
	file := recordingOf(t, &r)
	require.Equal(t, `# Recorded by runteam: what models and people answered, unabridged. As sensitive as the run.
replies:
  - task: "a"
    turn: 1
    usage: {input: 0, output: 0}
    toolCalls:
      - name: "search"
        arguments: {"n": 1.50, "q": "who is {{\"{{\"}} x }}?"}
  - task: "a"
    turn: 2
    times: 1
    status: 503
    body: |-
      {"error":{"message":"not now"}}
  - task: "a"
    turn: 2
    usage: {input: 7, output: 1}
    text: "two at once"
    toolCalls:
      - name: "fetch"
      - name: "search"
        arguments: {"q": "b"}
  - task: "a"
    turn: 3
    usage: {input: 0, output: 0}
    text: "Ann"
  - task: "b"
    usage: {input: 0, output: 0}
    text: "no tools for b"
`, file)
	_, again := start(t, reread(t, file))
	again2, err := begin(again, "b").talk(t.Context())
	require.NoError(t, err)
	require.Equal(t, other, again2)
	for range 2 { // a second conversation finds no failure left
		got, err := begin(llm.Retry(again, llm.RetryOptions{Delay: 1}), "a").talk(t.Context())
		require.NoError(t, err)
		for i := range first {
			want := strings.NewReplacer(`{ "q": "who is {{ x }}?", "n": 1.50 }`, `{"n":1.50,"q":"who is {{ x }}?"}`, "fetch |", "fetch {}|").Replace(first[i])
			require.Equal(t, want, got[i])
		}
	}
}

// Whatever a model writes as a call, a replay of the recording has it again.
func TestRecordedCallsAreReplayed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		give llm.Response
		body bool // the reply is a body, since toolCalls cannot express it
	}{
		{"an object", calling("search", `{"q": ["a", {"b": null}], "": true}`), false},
		{"no arguments", calling("search", ""), false},
		{"an empty object", calling("search", " {} "), false},
		{"many braces", calling("search", `{"q": "{{{}}}\n\t {{ .Task }}"}`), false},
		{"a large integer", calling("search", `{"n": 123456789012345678901234567890}`), false},
		{"as deep as a value may be", calling("search", `{"q":`+strings.Repeat("[", 127)+strings.Repeat("]", 127)+"}"), false},
		{"stop as the reason", llm.Response{ToolCalls: []llm.ToolCall{{ID: "1", Name: "search", Arguments: "{}"}}, CallInfo: llm.CallInfo{FinishReason: "stop"}}, false},
		{"a tool that was not offered", calling("serch", "{}"), true},
		{"a tool without a name", calling("", "{}"), true},
		{"a list", calling("search", "[1]"), true},
		{"half an object", calling("search", `{"q": "x`), true},
		{"a key twice", calling("search", `{"q": 1, "q": 2}`), true},
		{"a number beyond all", calling("search", `{"q": 1e999}`), true},
		{"too deep", calling("search", `{"q":`+strings.Repeat("[", 500)+strings.Repeat("]", 500)+"}"), true},
		{"half a reply", llm.Response{Text: "I", ToolCalls: []llm.ToolCall{{ID: "1", Name: "search", Arguments: "{}"}}, CallInfo: llm.CallInfo{FinishReason: "length"}}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var r scripted.Recorder
			_, err := begin(r.Model(answering(tt.give)), "a").ask(t.Context(), nil)
			require.NoError(t, err)
			require.Equal(t, tt.body, r.Script().Replies[0].Body != "")
			_, m := start(t, reread(t, recordingOf(t, &r)))
			for _, emit := range []func(llm.Delta) error{nil, func(llm.Delta) error { return nil }} {
				got, err := begin(m, "a").ask(t.Context(), emit)
				require.NoError(t, err)
				require.Equal(t, tt.give.Text, got.Text)
				require.Len(t, got.ToolCalls, 1)
				require.Equal(t, tt.give.ToolCalls[0].Name, got.ToolCalls[0].Name)
				require.Equal(t, value(t, tt.give.ToolCalls[0].Arguments), value(t, got.ToolCalls[0].Arguments))
			}
		})
	}
}

// value returns the value of arguments, or the text if they are no JSON value.
func value(t require.TestingT, arguments string) any {
	if strings.TrimSpace(arguments) == "" {
		return map[string]any{}
	}
	v, err := jsonvalue.Decode(arguments)
	if err != nil {
		require.ErrorIs(t, err, jsonvalue.ErrInvalid)
		return arguments
	}
	return v
}

func TestRecordedArgumentsAreEqual(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		arguments := rapid.MapOfN(texts(), rapid.OneOf(texts().AsAny(), rapid.Float64Range(-1e9, 1e9).AsAny(), rapid.SliceOfN(texts(), 0, 3).AsAny()), 0, 4).Draw(t, "arguments")
		raw, err := json.Marshal(arguments)
		require.NoError(t, err)
		var r scripted.Recorder
		_, err = begin(r.Model(answering(calling("search", string(raw)))), "a").ask(context.Background(), nil)
		require.NoError(t, err)
		file := recordingOf(t, &r)
		require.NotContains(t, file, "body:")
		s, err := scripted.Parse("recorded.yaml", []byte(file))
		require.NoError(t, err, file)
		require.Equal(t, file, strings.Split(file, "\n")[0]+"\n"+written(t, s))
		h, err := scripted.New(s, false)
		require.NoError(t, err)
		m, err := openai.New(openai.Config{Model: "m", BaseURL: "http://127.0.0.1/v1", HTTPClient: &http.Client{Transport: direct{h}}})
		require.NoError(t, err)
		res, err := begin(m, "a").ask(context.Background(), nil)
		require.NoError(t, err)
		require.Equal(t, value(t, string(raw)), value(t, res.ToolCalls[0].Arguments), file)
	})
}

func TestRecordedCallsOfToolsOfSeveralAttempts(t *testing.T) {
	t.Parallel()
	var r scripted.Recorder
	m := r.Model(answering(calling("search", `{"q":"first"}`), llm.Response{Text: "bad"}, calling("search", `{"q":"second"}`), llm.Response{Text: "good"}))
	want := [][]string{{`|search {"q":"first"}`, "bad"}, {`|search {"q":"second"}`, "good"}}
	_, again := start(t, reread(t, func() string {
		for _, conversation := range want {
			got, err := begin(m, "a").talk(t.Context())
			require.NoError(t, err)
			require.Equal(t, conversation, got)
		}
		return recordingOf(t, &r)
	}()))
	for _, conversation := range want {
		got, err := begin(again, "a").talk(t.Context())
		require.NoError(t, err)
		require.Equal(t, conversation, got)
	}
}

// A recording of a run that stopped in its first turn has the turn, so that no later turn
// gets its calls.
func TestRecordingThatEndsWithCalls(t *testing.T) {
	t.Parallel()
	var r scripted.Recorder
	m := r.Model(answering(calling("search", "{}"), calling("fetch", "{}")))
	for range 2 {
		_, err := begin(m, "a").ask(t.Context(), nil)
		require.NoError(t, err)
	}
	replies := r.Script().Replies
	require.Len(t, replies, 2)
	require.Equal(t, []int{1, 1}, []int{replies[0].Turn, replies[1].Turn})
	_, again := start(t, reread(t, recordingOf(t, &r)))
	for _, want := range []string{"search", "fetch"} {
		res, err := begin(again, "a").ask(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, want, res.ToolCalls[0].Name)
	}
}

// A direct is a transport that calls a handler without a connection.
type direct struct{ *scripted.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}
