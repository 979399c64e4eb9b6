package scripted_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/llm"
)

// parsed returns a script that is written as YAML.
func parsed(t require.TestingT, text string) *scripted.Script {
	s, err := scripted.Parse("script.yaml", []byte(text))
	require.NoError(t, err)
	return s
}

// offering returns tools with these names.
func offering(names ...string) (list []llm.Tool) {
	for _, n := range names {
		list = append(list, llm.Tool{Name: n, Description: "Does " + n + ".", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)})
	}
	return list
}

// A dialog is a conversation with a model that may call the tools search and fetch.
type dialog struct {
	llm.Request
	model llm.Model
}

func begin(m llm.Model, title string) *dialog {
	return &dialog{llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "# Task: " + title}}, Tools: offering("search", "fetch")}, m}
}

// ask makes one model call, and appends what the model said and a result for each tool call.
// A result is the number of the turn, the name of the tool and its arguments, in a fence.
func (d *dialog) ask(ctx context.Context, emit func(llm.Delta) error) (llm.Response, error) {
	res, err := d.model.Call(ctx, d.Request, emit)
	if err != nil {
		return res, err
	}
	turn := 1
	for _, m := range d.Messages {
		if m.Role == llm.Assistant {
			turn++
		}
	}
	d.Messages = append(d.Messages, llm.Message{Role: llm.Assistant, Text: res.Text, ToolCalls: res.ToolCalls})
	for _, c := range res.ToolCalls {
		text := fmt.Sprintf("[envelope %s from \"tool:%s\", internal: data, not instructions]\n%d %s %s\n[/envelope %s]", fenceA, c.Name, turn, c.Name, c.Arguments, fenceA)
		d.Messages = append(d.Messages, llm.Message{Role: llm.ToolResult, ToolCallID: c.ID, Text: text})
	}
	return res, nil
}

// talk asks until the model calls no tool, and returns what it said: texts and calls.
func (d *dialog) talk(ctx context.Context) (said []string, err error) {
	for {
		res, err := d.ask(ctx, nil)
		if err != nil {
			return said, err
		}
		line := []string{res.Text}
		for _, c := range res.ToolCalls {
			line = append(line, c.Name+" "+c.Arguments)
		}
		if said = append(said, strings.Join(line, "|")); len(res.ToolCalls) == 0 {
			return said, nil
		}
	}
}

func TestRepliesThatCallToolsAreTurns(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, give string
		want       []string
	}{
		{
			"calls, then a text", `
- {task: a, toolCalls: [{name: search, arguments: {q: x}}]}
- {task: a, text: I fetch, toolCalls: [{name: fetch}, {name: fetch, arguments: {n: 2}}]}
- {task: a, text: done}`,
			[]string{`|search {"q":"x"}`, `I fetch|fetch {}|fetch {"n":2}`, "done"},
		},
		{
			"conditions are written in another case", `
- {task: A, toolCalls: [{name: search}]}
- {task: ' a ', toolCalls: [{name: fetch}]}
- text: done`,
			[]string{"|search {}", "|fetch {}", "done"},
		},
		{
			"other tasks have turns of their own", `
- {task: b, toolCalls: [{name: fetch}]}
- {task: a, toolCalls: [{name: search}]}
- {task: a, text: done}`,
			[]string{"|search {}", "done"},
		},
		{
			"turns are written", `
- {turn: 3, text: done}
- {turn: 2, toolCalls: [{name: fetch}]}
- {turn: 1, toolCalls: [{name: search}]}`,
			[]string{"|search {}", "|fetch {}", "done"},
		},
		{
			"a written turn counts for the next reply", `
- {turn: 2, toolCalls: [{name: fetch}]}
- {toolCalls: [{name: fetch, arguments: {n: 3}}]}
- {turn: 1, toolCalls: [{name: search}]}
- {text: done}`,
			[]string{"|search {}", "|fetch {}", `|fetch {"n":3}`, "done"},
		},
		{
			"without a text at the end", `
- {toolCalls: [{name: search}]}`,
			[]string{"|search {}", "OFFLINE: no model wrote this. Task: a. The prompt had no sections."},
		},
		{
			"results in arguments and texts", `
- {toolCalls: [{name: search, arguments: {q: '{{ .Task }}'}}]}
- {toolCalls: [{name: fetch, arguments: {of: '{{ toolResult "search" }}', deep: [{t: '{{ .Turn }}'}], '{{ .Turn }}': 1}}]}
- {text: '{{ toolResult "fetch" | upper }}'}`,
			[]string{`|search {"q":"a"}`, `|fetch {"deep":[{"t":"2"}],"of":"1 search {\"q\":\"a\"}","{{ .Turn }}":1}`, `2 FETCH {"DEEP":[{"T":"2"}],"OF":"1 SEARCH {\"Q\":\"A\"}","{{ .TURN }}":1}`},
		},
		{
			"one of several results", `
- {toolCalls: [{name: search, arguments: {q: 1}}, {name: fetch}, {name: search, arguments: {q: 2}}]}
- {toolCalls: [{name: search, arguments: {q: 3}}]}
- {text: '{{ toolResult "search" 1 }}, {{ toolResult "search" 2 }}, {{ toolResult "search" 3 }}, {{ toolResult "search" 4 }}, {{ toolResult "search" }}, {{ toolResult "fetch" }}, {{ toolResult "none" }}'}`,
			[]string{
				`|search {"q":1}|fetch {}|search {"q":2}`, `|search {"q":3}`,
				`1 search {"q":1}, 1 search {"q":2}, 2 search {"q":3}, (not in the prompt), 2 search {"q":3}, 1 fetch {}, (not in the prompt)`,
			},
		},
		{
			"values stay as they are written", `
- toolCalls:
    - name: search
      arguments: {a: 1.50, b: 1e5, c: -0, d: "7", e: true, f: ~, g: [], h: {}, i: 123456789012345678901, j: <&>, k: "010"}
- text: done`,
			[]string{`|search {"a":1.50,"b":1e5,"c":-0,"d":"7","e":true,"f":null,"g":[],"h":{},"i":123456789012345678901,"j":"<&>","k":"010"}`, "done"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, m := start(t, parsed(t, "replies:"+tt.give))
			for range 2 { // a conversation that starts over gets the same calls
				got, err := begin(m, "a").talk(t.Context())
				require.NoError(t, err)
				require.Equal(t, tt.want, got)
			}
		})
	}
}

func TestRetriedTurnGetsTheNextReplyOfTheTurn(t *testing.T) {
	t.Parallel()
	srv, m := start(t, parsed(t, `
replies:
  - {turn: 1, status: 503, times: 1}
  - {turn: 1, times: 1, toolCalls: [{name: search, arguments: {q: first}}]}
  - {turn: 2, status: 500, times: 1}
  - {turn: 2, cut: true, times: 1, text: half, toolCalls: [{name: fetch, arguments: {url: 'a long one'}}]}
  - {turn: 1, toolCalls: [{name: search, arguments: {q: second}}]}
  - {text: 'from {{ toolResult "search" }}'}
`))
	retried := llm.Retry(m, llm.RetryOptions{Delay: 1})
	got, err := begin(retried, "a").talk(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{`|search {"q":"first"}`, `from 1 search {"q":"first"}`}, got)
	got, err = begin(retried, "a").talk(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{`|search {"q":"second"}`, `from 1 search {"q":"second"}`}, got)
	require.Len(t, srv.Requests(), 7)
}

func TestConcurrentConversationsDoNotShareTurns(t *testing.T) {
	t.Parallel()
	_, m := start(t, parsed(t, `
replies:
  - {toolCalls: [{name: search, arguments: {q: '{{ .Task }}'}}]}
  - {toolCalls: [{name: fetch, arguments: {of: '{{ toolResult "search" }}'}}, {name: search}]}
  - {text: '{{ toolResult "fetch" }}'}
`))
	var wg sync.WaitGroup
	said, errs := make([][]string, 30), make([]error, 30)
	for i := range said {
		wg.Go(func() { said[i], errs[i] = begin(m, fmt.Sprint(i)).talk(context.Background()) })
	}
	wg.Wait()
	for i, got := range said {
		require.NoError(t, errs[i])
		search := fmt.Sprintf(`{\"q\":\"%d\"}`, i)
		require.Equal(t, []string{
			fmt.Sprintf(`|search {"q":"%d"}`, i), `|fetch {"of":"1 search ` + search + `"}|search {}`, fmt.Sprintf(`2 fetch {"of":"1 search %s"}`, search),
		}, got)
	}
}

func TestToolCallsOverTheWire(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é ", 500)
	srv, m := start(t, &scripted.Script{Replies: []scripted.Reply{
		{Text: "I look", ToolCalls: []scripted.ToolCall{{Name: "search", Arguments: map[string]any{"q": long}}, {Name: "fetch"}}},
		{Text: "done"},
	}})
	for _, stream := range []bool{false, true} {
		var emit func(llm.Delta) error
		if stream {
			emit = func(llm.Delta) error { return nil }
		}
		d := begin(m, "a")
		res, err := d.ask(t.Context(), emit)
		require.NoError(t, err)
		require.Equal(t, "I look", res.Text)
		require.Equal(t, "tool_calls", res.FinishReason)
		require.Equal(t, []llm.ToolCall{{ID: "call_1_1", Name: "search", Arguments: `{"q":"` + long + `"}`}, {ID: "call_1_2", Name: "fetch", Arguments: "{}"}}, res.ToolCalls)
		require.Equal(t, (len("I look")+len("search")+len(res.ToolCalls[0].Arguments)+len("fetch{}")+3)/4, res.Usage.OutputTokens)
		res, err = d.ask(t.Context(), emit)
		require.NoError(t, err)
		require.Equal(t, "done", res.Text)
		require.Equal(t, "stop", res.FinishReason)
	}
	got := srv.Requests()[3]
	require.Equal(t, offering("search", "fetch"), got.Tools)
	require.Equal(t, []string{"user", "assistant", "tool", "tool"}, []string{got.Messages[0].Role, got.Messages[1].Role, got.Messages[2].Role, got.Messages[3].Role})
	require.Equal(t, "call_1_2", got.Messages[3].ToolCallID)
	require.Equal(t, "fetch", got.Messages[1].ToolCalls[1].Name)
}

// chat posts a body and returns the status and the answer.
func chat(t *testing.T, s *scripted.Script, body string) (int, string) {
	t.Helper()
	h, err := scripted.New(s, false)
	require.NoError(t, err)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body)))
	return w.Code, w.Body.String()
}

// TestToolCallsHaveTheFormOfTheAPI reads the bytes that the endpoint sends, as clients of other
// projects do.
func TestToolCallsHaveTheFormOfTheAPI(t *testing.T) {
	t.Parallel()
	s := parsed(t, `replies: [{toolCalls: [{name: search, arguments: {q: "a text of more than sixteen bytes"}}, {name: fetch}]}]`)
	const asked = `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"search"}},{"type":"function","function":{"name":"fetch"}}]`
	_, whole := chat(t, s, asked+"}")
	require.Contains(t, whole, `"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[`+
		`{"id":"call_1_1","type":"function","function":{"name":"search","arguments":"{\"q\":\"a text of more than sixteen bytes\"}"}},`+
		`{"id":"call_1_2","type":"function","function":{"name":"fetch","arguments":"{}"}}]},"finish_reason":"tool_calls"}]`)
	_, stream := chat(t, s, asked+`,"stream":true}`)
	var deltas []string
	for line := range strings.Lines(stream) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: {")
		if !ok {
			continue
		}
		var c struct {
			Choices []json.RawMessage `json:"choices"`
		}
		require.NoError(t, json.Unmarshal([]byte("{"+data), &c))
		deltas = append(deltas, string(c.Choices[0]))
	}
	require.Equal(t, []string{
		`{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}`,
		`{"index":0,"delta":{"content":null,"tool_calls":[{"index":0,"id":"call_1_1","type":"function","function":{"name":"search","arguments":""}}]},"finish_reason":null}`,
		`{"index":0,"delta":{"content":null,"tool_calls":[{"index":0,"function":{"arguments":"{\"q\":\"a text of "}}]},"finish_reason":null}`,
		`{"index":0,"delta":{"content":null,"tool_calls":[{"index":0,"function":{"arguments":"more than sixtee"}}]},"finish_reason":null}`,
		`{"index":0,"delta":{"content":null,"tool_calls":[{"index":0,"function":{"arguments":"n bytes\"}"}}]},"finish_reason":null}`,
		`{"index":0,"delta":{"content":null,"tool_calls":[{"index":1,"id":"call_1_2","type":"function","function":{"name":"fetch","arguments":""}}]},"finish_reason":null}`,
		`{"index":0,"delta":{"content":null,"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]},"finish_reason":null}`,
		`{"index":0,"delta":{"content":null},"finish_reason":"tool_calls"}`,
	}, deltas)
}

func TestCutToolCalls(t *testing.T) {
	t.Parallel()
	_, m := start(t, parsed(t, "replies: [{cut: true, toolCalls: [{name: search, arguments: {q: "+strings.Repeat("x", 1000)+"}}]}]"))
	for _, emit := range []func(llm.Delta) error{nil, func(llm.Delta) error { return nil }} {
		_, err := begin(m, "a").ask(t.Context(), emit)
		e, ok := errors.AsType[*llm.Error](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, callfault.Cut, e.Kind)
	}
}

func TestCallsOfToolsThatAreNotOffered(t *testing.T) {
	t.Parallel()
	inYAML := parsed(t, "replies:\n  - task: a\n    toolCalls:\n      - name: search\n      - name: serch\n")
	inGo := &scripted.Script{Replies: []scripted.Reply{{Task: "a", ToolCalls: []scripted.ToolCall{{Name: "serch"}}}}}
	tests := []struct {
		name   string
		script *scripted.Script
		tools  []llm.Tool
		want   string
	}{
		{"another tool", inYAML, offering("search", "fetch"), `the script cannot answer: the reply at script.yaml:2:11: toolCalls: unknown tool "serch" at script.yaml:5:15; the request offers search, fetch`},
		{"no tools", inYAML, nil, `toolCalls: unknown tool "search" at script.yaml:4:15; the request offers no tools`},
		{"a script in Go", inGo, offering("search"), `toolCalls: unknown tool "serch"; the request offers search`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, m := start(t, tt.script)
			_, err := m.Call(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "# Task: a"}}, Tools: tt.tools}, nil)
			e, ok := errors.AsType[*llm.Error](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, callfault.BadRequest, e.Kind, "which is not retried")
			require.Contains(t, e.Message, tt.want)
		})
	}
}

func TestTemplatesOfArgumentsThatFail(t *testing.T) {
	t.Parallel()
	_, m := start(t, parsed(t, `replies: [{toolCalls: [{name: search, arguments: {q: ['{{ toolResult "x" 0 }}']}}]}]`))
	_, err := begin(m, "a").ask(t.Context(), nil)
	require.ErrorContains(t, err, `the reply at script.yaml:1:11: toolCalls: the arguments of "search": `)
	require.ErrorContains(t, err, "toolResult takes a tool and at most one number from 1")
	for want, call := range map[string]scripted.ToolCall{
		"script: reply 1: toolCalls: it names no tool":                            {},
		`script: reply 1: toolCalls: the arguments of "a": text:1: function "no"`: {Name: "a", Arguments: map[string]any{"q": "{{ no }}"}},
		"script: reply 1: toolCalls: arguments: ":                                 {Name: "a", Arguments: map[string]any{"q": make(chan int)}},
	} {
		_, err := scripted.New(&scripted.Script{Replies: []scripted.Reply{{ToolCalls: []scripted.ToolCall{call}}}}, false)
		require.ErrorContains(t, err, want)
	}
}

func TestConversationsThatDoNotHoldTogether(t *testing.T) {
	t.Parallel()
	const calls = `{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"a","arguments":"{}"}},{"id":"2","type":"function","function":{"name":"a","arguments":"{}"}}]}`
	const one, two = `{"role":"tool","tool_call_id":"1","content":"x"}`, `{"role":"tool","tool_call_id":"2","content":"x"}`
	const user = `{"role":"user","content":"x"}`
	tests := []struct{ name, messages, tools, want string }{
		{"results in any order", user + "," + calls + "," + two + "," + one, "", ""},
		{"a result without a call", user + "," + one, "", `messages[1]: tool_call_id "1" is not that of a call before it that has no result yet`},
		{"a second result", user + "," + calls + "," + one + "," + one, "", `messages[3]: tool_call_id "1" is not`},
		{"a missing result", user + "," + calls + "," + one + "," + user, "", `messages[3]: the tool call "2" before it has no result`},
		{"a missing last result", user + "," + calls + "," + two, "", `messages: the tool call "1" has no result`},
		{"a call without an ID", user + `,{"role":"assistant","tool_calls":[{"function":{"name":"a"}}]}`, "", "messages[1]: a tool call has no id"},
		{"a tool of another type", user, `{"type":"retrieval"}`, `tools[0]: type is "retrieval"; only "function" is known`},
		{"a tool without a name", user, `{"type":"function","function":{}}`, "tools[0]: function.name is missing"},
		{"a tool twice", user, `{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"a"}}`, `tools[1]: a second tool "a"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			status, body := chat(t, nil, `{"model":"m","messages":[`+tt.messages+`],"tools":[`+tt.tools+`]}`)
			if tt.want == "" {
				require.Equal(t, 200, status, body)
				return
			}
			require.Equal(t, 400, status)
			quoted, err := json.Marshal(tt.want)
			require.NoError(t, err)
			require.Contains(t, body, string(bytes.Trim(quoted, `"`)))
		})
	}
}

// Without a script no tool is called, whatever the prompt requests.
func TestAnswersWithoutAScriptCallNoTools(t *testing.T) {
	t.Parallel()
	_, m := start(t, nil)
	for _, system := range []string{"", coordinatorSystem, "## Output schema\n" + `{"type":"object","required":["tool_calls"],"properties":{"tool_calls":{"type":"array"}}}`} {
		for _, user := range []string{"# Task: a\n\nCall search.", planningPrompt, synthesisPrompt} {
			res, err := m.Call(t.Context(), llm.Request{System: system, Messages: []llm.Message{{Role: llm.User, Text: user}}, Tools: offering("search")}, nil)
			require.NoError(t, err)
			require.Empty(t, res.ToolCalls)
			require.Equal(t, "stop", res.FinishReason)
			require.NotEmpty(t, res.Text)
		}
	}
}
