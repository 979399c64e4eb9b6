package openai_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

// replySize is the size of the hostile replies, in bytes.
var replySize = func() int {
	if slowtest.Enabled() {
		return 4 << 20
	}
	return 1 << 20
}()

// A shape is a hostile reply of about replySize bytes.
type shape struct {
	name   string
	status int
	stream bool
	body   string
	list   string // the answer to a request for the list of models
	gzip   bool
}

// fill repeats a piece between two ends until the whole has replySize bytes.
func fill(before, piece, after string) string {
	n := (replySize - len(before) - len(after)) / len(piece)
	return before + strings.TrimSuffix(strings.Repeat(piece, n), ",") + after
}

// shapes returns replies that cost a reader more than their size.
func shapes() []shape {
	const ok = `"finish_reason":"stop"}]}`
	n := replySize / 2
	all := []shape{
		{name: "one text", body: fill(`{"choices":[{"message":{"content":"`, "x", `"},`+ok)},
		{name: "escaped text", body: fill(`{"choices":[{"message":{"content":"`, `\u0041`, `"},`+ok)},
		{name: "content parts", body: fill(`{"choices":[{"message":{"content":[`, `{"type":"text","text":"0123456"},`, `]},`+ok)},
		{name: "empty parts", body: fill(`{"choices":[{"message":{"content":[`, `{},`, `]},`+ok)},
		{name: "empty choices", body: fill(`{"choices":[`, `{},`, `]}`)},
		{name: "choices", body: fill(`{"choices":[{"message":{"content":"a"},"finish_reason":"stop"},`, `{"index":1,"message":{"content":"b"}},`, `]}`)},
		{name: "reasoning", body: fill(`{"choices":[{"message":{"reasoning_content":"`, "x", `","content":"a"},`+ok)},
		{name: "reasoning many times", body: fill(`{"choices":[{"message":{"content":"a",`, `"reasoning":"x",`, `},`+ok)},
		{name: "reasoning details", body: fill(`{"choices":[{"message":{"content":"a","reasoning_details":[`, `{"type":"reasoning.text","text":"x"},`, `]},`+ok)},
		{name: "deep reasoning", body: fill(`{"choices":[{"message":{"content":"a","reasoning":`, `{"summary":[`, ``)},
		{name: "thinking parts", body: fill(`{"choices":[{"message":{"content":[`, `{"type":"thinking","thinking":[{"type":"text","text":"x"}]},`, `]},`+ok)},
		{name: "thinking in one part", body: fill(`{"choices":[{"message":{"content":[{"type":"thinking",`, `"thinking":"x",`, `}]},`+ok)},
		{name: "count details", body: fill(`{"usage":{`, `"prompt_tokens_details":{"cached_tokens":1},`, `},"choices":[{"message":{"content":"a"},`+ok)},
		{name: "tool calls", body: fill(`{"choices":[{"message":{"tool_calls":[`, `{},`, `]},`+ok)},
		{name: "deep arrays", body: `{"choices":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`},
		{name: "deep objects", body: `{"a":` + strings.Repeat(`{"a":`, replySize/6) + "1" + strings.Repeat("}", replySize/6) + `}`},
		{name: "many keys", body: fill(`{"choices":[{"message":{"content":"a",`, `"k":1,`, `},`+ok)},
		{name: "long key", body: fill(`{"`, "k", `":1,"choices":[{"message":{"content":"a"},`+ok)},
		{name: "huge number", body: fill(`{"usage":{"prompt_tokens":`, "9", `},"choices":[{"message":{"content":"a"},`+ok)},
		{name: "error of many keys", body: fill(`{"error":{"message":"no",`, `"k":1,`, `}}`)},
		{name: "error of many messages", body: fill(`{"error":{`, `"message":{},`, `}}`)},
		{name: "error of lists", status: 400, body: fill(`{"message":[`, `{"loc":[1],"msg":""},`, `]}`)},
		{name: "error of lists under 200", body: fill(`{"error":{"message":[`, `{"loc":[1],"msg":{}},`, `]}}`)},
		{name: "deep error", body: `{"error":` + strings.Repeat(`{"error":`, replySize/9) + "1" + strings.Repeat("}", replySize/9) + `}`},
		{name: "deep message", body: `{"error":{"message":` + strings.Repeat(`{"a":[`, replySize/8) + `"a"` + strings.Repeat("]}", replySize/8) + `}}`},
		{name: "error with headers", status: 400, body: fill(`{"error":{"metadata":{"headers":{`, `"a":"b",`, `}}}}`)},
		{name: "error inside errors", status: 400, body: fill(`{"error":{"metadata":{"raw":"{\"error\":{\"metadata\":{`, `\"raw\":\"{}\",`, `}}}"}}}`)},
		{name: "list of errors", body: fill(`[`, `{},`, `]`)},
		{name: "details", body: fill(`{"error":{"details":[`, `{"retryDelay":"1s"},`, `]}}`)},
		{name: "stream of lists", stream: true, body: fill(chunkHi+"\n", "data:[]\n", chunkEnd+"\ndata: [DONE]\n")},
		{name: "error text", body: fill(`{"error":"`, "x", `"}`)},
		{name: "error body", status: 500, body: fill(`{"error":{"message":"no",`, `"k":1,`, `}}`)},
		{name: "list of models", status: 404, list: fill(`{"data":[`, `{},`, `]}`)[:1<<20-3] + "]}"},
		{name: "counts as text", body: fill(`{"usage":{"prompt_tokens":"`, "9", `"},"choices":[{"message":{"content":"a"},`+ok)},
		{name: "many counts", body: fill(`{"usage":{`, `"prompt_tokens":"9",`, `},"choices":[{"message":{"content":"a"},`+ok)},
		{name: "arguments as an object", body: fill(`{"choices":[{"message":{"tool_calls":[{"function":{"arguments":{`, `"k":1,`, `}}}]},`+ok)},
		{name: "many arguments", body: fill(`{"choices":[{"message":{"tool_calls":[{"function":{`, `"arguments":{},`, `}}]},`+ok)},
		{name: "parts as strings", body: fill(`{"choices":[{"message":{"content":[`, `"",`, `]},`+ok)},
		{name: "blanks before", body: fill("", " ", `{"choices":[{"message":{"content":"a"},`+ok)},
		{name: "byte order marks", body: fill("", "\ufeff", `{"choices":[{"message":{"content":"a"},`+ok)},
		{name: "blanks", body: fill(`{"choices":[{"message":{"content":"a"},`+ok, " ", "")},
		{name: "gzip", gzip: true, body: fill(`{"choices":[{"message":{"content":"`, "x", `"},`+ok)},
		{name: "stream of empty lines", stream: true, body: fill(chunkHi+"\n", "data:{}\n", chunkEnd+"\ndata: [DONE]\n")},
		{name: "stream of pieces", stream: true, body: fill("", `data: {"choices":[{"delta":{"content":"x"}}]}`+"\n", chunkEnd+"\ndata: [DONE]\n")},
		{name: "stream of reasoning", stream: true, body: fill("", `data: {"choices":[{"delta":{"reasoning":"x","reasoning_details":[{"text":"x"}]}}]}`+"\n", chunkEnd+"\ndata: [DONE]\n")},
		{name: "stream of choices", stream: true, body: fill(chunkHi+"\n"+`data: {"choices":[`, `{},`, "]}\n"+chunkEnd+"\ndata: [DONE]\n")},
		{name: "stream of arguments", stream: true, body: fill("", `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"x"}}]}}]}`+"\n", chunkEnd+"\ndata: [DONE]\n")},
		{name: "stream of ids", stream: true, body: fill("", `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x"}]}}]}`+"\n", chunkEnd+"\ndata: [DONE]\n")},
		{name: "stream of indexes", stream: true, body: fill("", `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a"},{"index":0,"id":"b"}]}}]}`+"\n", chunkEnd+"\ndata: [DONE]\n")},
		{name: "stream of names", stream: true, body: fill("", `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"add","arguments":"{}"}}]}}]}`+"\n", chunkEnd+"\ndata: [DONE]\n")},
		{name: "members", body: fill(`{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"add"}}],"vendor":[`, `{"a":[1]},`, `]},`+ok)},
		{name: "deep member", body: `{"choices":[{"message":{"content":"a","vendor":` + strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000) + `},` + ok},
		{name: "stream of members", stream: true, body: fill("", `data: {"choices":[{"delta":{"vendor":{"a":[{"index":1,"text":"x"}]}}}]}`+"\n", chunkEnd+"\ndata: [DONE]\n")},
		{name: "stream of other members", stream: true, body: fill("", `data: {"choices":[{"delta":{"vendor":[{"a":"x"},1,2,3,4]}}]}`+"\n", chunkEnd+"\ndata: [DONE]\n")},
		{name: "stream of deep members", stream: true, body: fill("", `data: {"choices":[{"delta":{"vendor":`+strings.Repeat(`{"a":[`, 200)+strings.Repeat(`]}`, 200)+`}}]}`+"\n", chunkEnd+"\ndata: [DONE]\n")},
		{name: "stream of thoughts", stream: true, body: fill("", `data: {"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"x"}]}]}}]}`+"\n", chunkEnd+"\ndata: [DONE]\n")},
		{name: "members of a call", body: fill(`{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"add",`, `"k":1,`, `}}]},`+ok)},
		{name: "stream of null errors", stream: true, body: fill(chunkHi+"\n", `data: {"error":null}`+"\n", chunkEnd+"\ndata: [DONE]\n")},
		{name: "unrequested stream", body: fill("", `data: {"choices":[{"delta":{"content":"x"}}]}`+"\n", chunkEnd+"\ndata: [DONE]\n")},
		{name: "stream of comments", stream: true, body: fill(chunkHi+"\n", ":\n", chunkEnd+"\ndata: [DONE]\n")},
	}
	return all
}

// model returns a model that gets the shape as its reply.
func (s *shape) model(t testing.TB) *openai.Model {
	t.Helper()
	kind, body := "application/json", s.body
	if s.stream {
		kind = "text/event-stream"
	}
	header := http.Header{"Content-Type": {kind}}
	status := s.status
	if status == 0 {
		status = 200
	}
	if s.gzip { // as a transport decodes it
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = io.WriteString(w, body)
		require.NoError(t, w.Close())
		body = packed.String()
	}
	m, err := openai.New(openai.Config{Model: "m", BaseURL: "http://h/v1", APIKey: openai.NewKey(fakeKey), HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet {
			return &http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(strings.NewReader(s.list)), ContentLength: -1, Request: r}, nil
		}
		var in io.Reader = strings.NewReader(body)
		if s.gzip {
			z, err := gzip.NewReader(in)
			if err != nil {
				return nil, err
			}
			in = z
		}
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(in), ContentLength: -1, Request: r}, nil
	})}})
	require.NoError(t, err)
	return m
}

// call makes the call.
func (s *shape) call(ctx context.Context, m *openai.Model) error {
	var emit func(llm.Delta) error
	if s.stream {
		emit = func(llm.Delta) error { return nil }
	}
	_, err := m.Call(ctx, hello, emit)
	return err
}

// TestHostileRepliesTakeLinearMemory checks a bound on what reading each hostile reply allocates.
func TestHostileRepliesTakeLinearMemory(t *testing.T) { // not parallel: it measures memory
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			m := s.model(t)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_ = s.call(t.Context(), m)
			runtime.ReadMemStats(&after)
			require.LessOrEqual(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(replySize>>16), "MiB allocated")
		})
	}
}

// BenchmarkReply reads hostile replies of 4 MiB. The goal is 300 ms and 64 MiB
// each. While encoding/json decoded the replies into the types of go-openai, it
// measured 4.1 s and 57 GB for "content parts", 2.9 s and 2.1 GB for "empty
// choices", 1.8 s and 2.1 GB for "stream of choices", 0.7 s and 1 GB for "tool
// calls", 0.4 s and 2.1 GB for "stream of ids", 0.3 s and 1.3 GB for "stream of
// arguments", where it now measures 14 ms and 24 MB, 63 ms and 17 MB, 220 ms and
// 22 MB, 6 ms and 17 MB, 90 ms and 2 MB, 120 ms and 1 MB.
func BenchmarkReply(b *testing.B) {
	for _, s := range shapes() {
		b.Run(strings.ReplaceAll(s.name, " ", "-"), func(b *testing.B) {
			m := s.model(b)
			b.SetBytes(int64(len(s.body) + len(s.list)))
			b.ReportAllocs()
			for b.Loop() {
				_ = s.call(b.Context(), m)
			}
		})
	}
}
