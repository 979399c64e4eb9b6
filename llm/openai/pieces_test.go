package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

// A piecewise reply is written in many pieces: the nth delta, and the response.
type piecewise struct {
	name  string
	first string // the first delta
	last  string // the last delta
	delta func(n int) string
	check func(tb testing.TB, n int, res llm.Response)
}

// piecewiseReplies are replies whose text, reasoning, calls and members arrive in n pieces of 8 bytes.
func piecewiseReplies() []piecewise {
	const word = "8 bytes."
	pieceOf := func(i int) string {
		return fmt.Sprintf(`"tool_calls":[{"index":%d,"function":{"arguments":"%s"}}]`, i, word)
	}
	opened := `"tool_calls":[{"index":0,"id":"call_a","function":{"name":"add","arguments":"{\"a\":\""}}]`
	isCall := func(tb testing.TB, n int, res llm.Response) {
		require.Len(tb, res.ToolCalls, 1)
		require.Equal(tb, n*len(word)+6, len(res.ToolCalls[0].Arguments))
	}
	return []piecewise{
		{"text", `"content":""`, "", func(int) string { return `"content":"` + word + `"` }, func(tb testing.TB, n int, res llm.Response) {
			require.Equal(tb, n*len(word), len(res.Text))
		}},
		{"arguments", opened, "", func(int) string { return pieceOf(0) }, isCall},
		{"arguments with the name each time", opened, "", func(int) string {
			return `"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"add","arguments":"` + word + `"}}]`
		}, isCall},
		{"arguments with another ID each time", opened, `"tool_calls":[{"index":0,"id":"call_z","type":"function","function":{"name":"add","arguments":"\"}"}}]`, func(n int) string {
			return fmt.Sprintf(`"tool_calls":[{"index":0,"id":"call_%d","type":"function","function":{"name":"add","arguments":"%s"}}]`, n, word)
		}, func(tb testing.TB, n int, res llm.Response) {
			require.Len(tb, res.ToolCalls, 1)
			require.Equal(tb, n*len(word)+8, len(res.ToolCalls[0].Arguments))
		}},
		{"arguments of 100 calls", `"content":""`, "", func(n int) string {
			if n < 100 {
				return fmt.Sprintf(`"tool_calls":[{"index":%d,"id":"call_%d","function":{"name":"add","arguments":"%s"}}]`, n, n, word)
			}
			return pieceOf(n % 100)
		}, func(tb testing.TB, n int, res llm.Response) { require.Len(tb, res.ToolCalls, 100) }},
		{"reasoning", opened, "", func(int) string {
			return `"reasoning":"` + word + `","reasoning_details":[{"type":"reasoning.text","text":"` + word + `","format":"f","index":0}]`
		}, func(tb testing.TB, n int, res llm.Response) {
			require.Equal(tb, n*len(word), len(res.Reasoning))
			require.Less(tb, res.Provider.Size(), 2*n*len(word)+200)
			require.Greater(tb, res.Provider.Size(), 2*n*len(word))
		}},
	}
}

// body returns the stream in n pieces.
func (p *piecewise) body(n int) string {
	var b strings.Builder
	write := func(delta, finish string) {
		b.WriteString(`data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{` + delta + `},"finish_reason":` + finish + "}]}\n\n")
	}
	write(p.first, "null")
	for i := range n {
		write(p.delta(i), "null")
	}
	write(p.last, `"tool_calls"`)
	return b.String() + done + "\n\n"
}

// A reply in very many pieces is assembled in linear time and memory. The test checks the memory, which shows
// the work too: nothing is kept of a piece but what it adds.
func TestVeryManyPieces(t *testing.T) { // not parallel: it measures memory
	n := 10_000
	if slowtest.Enabled() {
		n = slowtest.Cases(300_000, 1_000_000)
	}
	for _, p := range piecewiseReplies() {
		t.Run(p.name, func(t *testing.T) {
			body := p.body(n)
			m, err := openai.New(openai.Config{Model: "m", BaseURL: "http://h/v1", MaxReply: 64 << 20, HTTPClient: fixed(body)})
			require.NoError(t, err)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			res, err := m.Call(t.Context(), calculate, nil)
			runtime.ReadMemStats(&after)
			if e, ok := errors.AsType[*llm.Error](err); ok && p.name == "reasoning" && n > 10_000 {
				require.Equal(t, callfault.TooLarge, e.Kind, "8 MB of provider data")
				return
			}
			require.NoError(t, err)
			p.check(t, n, res)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*len(body)))
		})
	}
}

// fixed returns a client that answers each request with a stream.
func fixed(body string) *http.Client {
	return &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1, Request: r}, nil
	})}
}

// Pieces that each repeat those before them count once, however many bytes they have together.
func TestCumulativePiecesAreBounded(t *testing.T) {
	t.Parallel()
	arguments := `{"text":"` + strings.Repeat("some words ", 200) + `"}`
	var b strings.Builder
	for i := 10; i <= len(arguments); i += 2 {
		b.WriteString(`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_a","function":{"name":"add","arguments":` + quoted(arguments[:i]) + "}}]}}]}\n\n")
	}
	b.WriteString(`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_a","function":{"name":"add","arguments":` + quoted(arguments) + `}}]},"finish_reason":"tool_calls"}]}` + "\n\n")
	for _, limit := range []int{16 << 10, 64 << 10, 4 << 20} {
		m, err := openai.New(openai.Config{Model: "m", BaseURL: "http://h/v1", MaxReply: limit, HTTPClient: fixed(b.String())})
		require.NoError(t, err)
		res, err := m.Call(t.Context(), calculate, nil)
		require.NoError(t, err)
		require.Equal(t, []llm.ToolCall{{ID: "call_a", Name: "add", Arguments: arguments}}, res.ToolCalls)
	}
}

// What no order of pieces explains is an error, or a call that its tool refuses; never a call of another
// tool.
func TestPiecesThatContradictEachOther(t *testing.T) {
	t.Parallel()
	piece := func(members, function string) string {
		return `data: {"choices":[{"delta":{"tool_calls":[{` + members + `"function":{` + function + `}}]}}]}`
	}
	const end = `data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`
	tests := []struct {
		name  string
		lines []string
	}{
		{"with an ID", []string{piece(`"index":0,"id":"call_a",`, `"name":"add","arguments":"{\"a\":"`), piece(`"index":0,"id":"call_a",`, `"name":"mul","arguments":"1}"`)}},
		{"by index", []string{piece(`"index":0,"id":"call_a",`, `"name":"add","arguments":"{\"a\":"`), piece(`"index":0,`, `"name":"mul","arguments":"1}"`)}},
		{"by order", []string{piece(``, `"name":"add","arguments":"{\"a\":"`), piece(``, `"name":"mul","arguments":"1}"`)}},
		{"before the arguments", []string{piece(`"index":0,"id":"call_a",`, `"name":"add"`), piece(`"index":0,"id":"call_a",`, `"name":"mul","arguments":"{}"`)}},
		{"to a name that begins alike", []string{piece(`"index":0,"id":"call_a",`, `"name":"add","arguments":"{"`), piece(`"index":0,"id":"call_a",`, `"name":"add_all","arguments":"}"`)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := asked(t, answering(t, strings.Join(append(tt.lines, end), "\n\n")+"\n\n"), calculate, true)
			var e *llm.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, callfault.BadResponse, e.Kind)
			require.ErrorContains(t, err, "a tool call changes its name half-way")
		})
	}
}

// Calls beside each other with one name are joined only if their arguments are JSON together.
func TestCallsThatAreNoPiecesStayApart(t *testing.T) {
	t.Parallel()
	for _, arguments := range [][]string{{`{"a":1}`, `{"a":2}`}, {`{"a":1`, `{"a":2}}`}, {`{"a":1`, `{"a":2}`}, {``, `{"a":1}`}, {`{"a":`, `{"a":`}, {`[1,`, `2]`}} {
		var b strings.Builder
		var want []llm.ToolCall
		for i, text := range arguments {
			fmt.Fprintf(&b, `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_%d","function":{"name":"add","arguments":%s}}]}}]}`+"\n\n", i, quoted(text))
			want = append(want, llm.ToolCall{ID: fmt.Sprintf("call_%d", i), Name: "add", Arguments: text})
		}
		b.WriteString(`data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n")
		res, err := asked(t, answering(t, b.String()), calculate, true)
		require.NoError(t, err)
		require.Equal(t, want, res.ToolCalls)
	}
}

// BenchmarkPieces assembles replies in 10,000 pieces. The goal is 20 ms.
func BenchmarkPieces(b *testing.B) {
	for _, p := range piecewiseReplies() {
		b.Run(strings.ReplaceAll(p.name, " ", "-"), func(b *testing.B) {
			m, err := openai.New(openai.Config{Model: "m", BaseURL: "http://h/v1", HTTPClient: fixed(p.body(10_000))})
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Call(b.Context(), calculate, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTurn makes the tenth turn of a conversation with 20 tools: a request and a whole reply with a call.
func BenchmarkTurn(b *testing.B) {
	req := calculate
	req.Tools = nil
	for i := range 20 {
		req.Tools = append(req.Tools, llm.Tool{Name: fmt.Sprintf("tool_%d", i), Description: "Says where a person lives.", Parameters: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"],"additionalProperties":false}`)})
	}
	for i := range 9 {
		id := fmt.Sprintf("call_%d_1", i+1)
		req.Messages = append(req.Messages,
			llm.Message{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: id, Name: "tool_1", Arguments: `{"name":"Ann","age":7}`}}},
			llm.Message{Role: llm.ToolResult, ToolCallID: id, Text: strings.Repeat("Ann lives in Oslo. ", 50)})
	}
	const reply = `{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_a","type":"function","function":{"name":"tool_1","arguments":"{\"name\":\"Bob\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`
	m, err := openai.New(openai.Config{Model: "m", BaseURL: "http://h/v1", HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		_, _ = io.Copy(io.Discard, r.Body)
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(reply)), ContentLength: int64(len(reply)), Request: r}, nil
	})}})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Call(b.Context(), req, nil); err != nil {
			b.Fatal(err)
		}
	}
}
