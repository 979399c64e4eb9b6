package openai_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/callinfo"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

func TestTruncatedStream(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		give http.HandlerFunc
	}{
		{"cleanly", events(chunkHi, "", chunkYou)},
		{"with [DONE] after a part of a call", events(chunkHi, "", `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"add","arguments":"{\"a\":"}}]}}]}`, "", done)},
		{"with [DONE] after nothing", events(`data: {"choices":[{"delta":{"reasoning":"Hm."}}]}`, done)},
		{"within a line", say(200, "text/event-stream", chunkHi+"\n\n"+chunkYou[:20])},
		{"before anything", events("")},
		{"by a reset", func(w http.ResponseWriter, r *http.Request) {
			events(chunkHi)(w, r)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := failure(t, model(t, tt.give), true)
			require.Equal(t, callfault.Cut, e.Kind)
			require.True(t, e.Retryable())
		})
	}
}

func TestStreamWithAFinishReasonIsComplete(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		give http.HandlerFunc
	}{
		{"without [DONE]", events(chunkHi, chunkYou, chunkEnd)},
		{"without blank lines and usage", events(chunkHi, chunkYou, chunkEnd, done)},
		{"without the last line break", say(200, "text/event-stream", strings.Join([]string{chunkHi, chunkYou, chunkEnd}, "\n\n"))},
		{"with CRLF", say(200, "text/event-stream", strings.Join([]string{chunkHi, chunkYou, chunkEnd, done, ""}, "\r\n\r\n"))},
		{"without blanks after data", events(strings.ReplaceAll(chunkHi, "data: ", "data:"), chunkYou, chunkEnd, done)},
		{"under another type", say(200, "application/octet-stream", strings.Join([]string{": hello", chunkHi, chunkYou, chunkEnd, done}, "\n\n"))},
		{"with a null error", events(chunkHi, chunkYou, strings.Replace(chunkEnd, "{", `{"error":null,`, 1), done)},
		{"with another choice", events(chunkHi, `data: {"choices":[{"index":1,"delta":{"content":"x"}}]}`, chunkYou, chunkEnd, done)},
		{"broken afterwards", func(w http.ResponseWriter, r *http.Request) {
			events(chunkHi, chunkYou, chunkEnd)(w, r)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res, err := call(t, model(t, tt.give), true)
			require.NoError(t, err)
			require.Equal(t, "hi there", res.Text)
			require.Equal(t, "stop", res.FinishReason)
			require.Zero(t, res.Usage)
		})
	}
}

func TestErrorInsideAStream(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		lines []string
		kind  string
		want  string
	}{
		{"as data", []string{chunkHi, "", `data: {"error":{"message":"GPU on fire"}}`, "", done}, callfault.BadResponse, "GPU on fire"},
		{"with a space", []string{chunkHi, "", `data: { "error": {"message":"GPU on fire"}}`, "", done}, callfault.BadResponse, "GPU on fire"},
		{"after comments", []string{": a", chunkHi, ": b", `data: {"error":{"message":"GPU on fire"}}`}, callfault.BadResponse, "GPU on fire"},
		{"by event", []string{chunkHi, "", "event: error", `data: {"message":"GPU on fire"}`, "", done}, callfault.BadResponse, "GPU on fire"},
		{"by event, as text", []string{chunkHi, "", "event: error", `data: GPU on fire`, "", done}, callfault.BadResponse, "GPU on fire"},
		{"with a status", []string{`data: {"error":{"message":"slow down","code":429}}`}, callfault.RateLimited, "slow down"},
		{"with a code", []string{`data: {"error":{"message":"slow down","code":"rate_limit_exceeded"}}`}, callfault.RateLimited, "slow down"},
		{"after the finish reason", []string{chunkHi, chunkEnd, `data: {"error":{"message":"GPU on fire"}}`}, callfault.BadResponse, "GPU on fire"},
		{"not JSON", []string{chunkHi, "", `data: hi`, "", done}, callfault.BadResponse, "not JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := failure(t, model(t, events(tt.lines...)), true)
			require.Equal(t, tt.kind, e.Kind)
			require.ErrorContains(t, e, tt.want)
			require.True(t, e.Retryable())
		})
	}
}

func TestKeepAliveComments(t *testing.T) {
	t.Parallel()
	var lines []string
	for range 2000 {
		lines = append(lines, ": keep-alive", "")
	}
	res, err := call(t, model(t, events(append(lines, chunkHi, "", chunkYou, "", chunkEnd, "", chunkUse, "", done)...)), true)
	require.NoError(t, err)
	require.Equal(t, good, res)
}

func TestWholeReplyToStreamRequest(t *testing.T) {
	t.Parallel()
	res, err := call(t, model(t, sayJSON(200, " \n"+whole)), true)
	require.NoError(t, err)
	require.Equal(t, good, res)
}

func TestBadReplies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		body string
		kind string
		want string
	}{
		{"error under 200", `{"error":{"message":"no GPU","type":"x"}}`, callfault.BadResponse, "an error under status 200: no GPU"},
		{"error as text", `{"error":"no GPU"}`, callfault.BadResponse, "no GPU"},
		{"error with a status", `{"error":{"message":"no GPU","code":503}}`, callfault.ServerError, "no GPU"},
		{"HTML", "<!DOCTYPE html><title>Login</title>", callfault.BadResponse, "HTML instead of JSON"},
		{"nothing", "", callfault.BadResponse, "the body is empty"},
		{"a list", "[]", callfault.BadResponse, "not a JSON object"},
		{"half of it", whole[:60], callfault.Cut, "ends half-way"},
		{"garbage", `{"choices": nope}`, callfault.BadResponse, "not JSON"},
		{"two values", whole + whole, callfault.BadResponse, "not JSON"},
		{"another form", `{"choices":"none"}`, callfault.BadResponse, "another form"},
		{"negative usage", strings.Replace(whole, `:7`, `:-7`, 1), callfault.BadResponse, "token counts are negative"},
		{"128 tool calls and one", `{"choices":[{"message":{"tool_calls":[` + strings.Repeat("{},", 128) + `{}]}}]}`, callfault.BadResponse, "more than 128 tool calls"},
		{"no choices", `{"choices":[],"usage":{"prompt_tokens":7}}`, callfault.Empty, "no choices"},
		{"no choices at all", `{}`, callfault.Empty, "no choices"},
		{"no text", `{"choices":[{"message":{"content":" \n"},"finish_reason":"stop"}]}`, callfault.Empty, `neither text nor tool calls, finish reason "stop"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, stream bool) {
				e := failure(t, model(t, sayJSON(200, tt.body)), stream)
				require.Equal(t, tt.kind, e.Kind)
				require.ErrorContains(t, e, tt.want)
				require.True(t, e.Retryable())
			})
		})
	}
}

func TestEmptyStreams(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"no choices": {chunkUse, done},
		"no text":    {chunkEnd, chunkUse, done},
	} {
		e := failure(t, model(t, events(lines...)), true)
		require.Equal(t, callfault.Empty, e.Kind, name)
		require.Equal(t, good.Usage, e.Usage, "it was paid for")
	}
}

func TestContentForms(t *testing.T) {
	t.Parallel()
	res, err := call(t, model(t, sayJSON(200, `{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},"finish_reason":"null"}]}`)), false)
	require.NoError(t, err)
	require.Equal(t, llm.Response{Text: "ab"}, res)
	res, err = call(t, model(t, sayJSON(200, `{"choices":[{"message":{"content":null,"refusal":"I will not."}}]}`)), false)
	require.NoError(t, err)
	require.Equal(t, "I will not.", res.Text)
}

func TestBrokenBody(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, stream bool) {
		e := failure(t, model(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
			_, _ = io.WriteString(w, whole[:40])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}), stream)
		require.Equal(t, callfault.Cut, e.Kind)
		require.ErrorContains(t, e, "the connection broke")
	})
}

// flood writes n bytes of text in the requested form, and counts the bytes that were sent.
func flood(n int, sent *atomic.Int64) http.HandlerFunc {
	piece := strings.Repeat("x", 1<<16)
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		stream := strings.Contains(string(body), `"stream":true`)
		if stream {
			w.Header().Set("Content-Type", "text/event-stream")
		} else {
			_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"`)
		}
		for range n / len(piece) {
			line := piece
			if stream {
				line = `data: {"choices":[{"delta":{"content":"` + piece + `"}}]}` + "\n\n"
			}
			k, err := io.WriteString(w, line)
			if sent.Add(int64(k)); err != nil {
				return
			}
		}
		if !stream {
			_, _ = io.WriteString(w, `"},"finish_reason":"stop"}]}`)
			return
		}
		_, _ = io.WriteString(w, chunkEnd+"\n\n"+done+"\n\n")
	}
}

func TestTenMegabyteReply(t *testing.T) { // not parallel: it measures memory
	for _, stream := range []bool{false, true} {
		var sent atomic.Int64
		m := model(t, flood(10<<20, &sent))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := m.Call(t.Context(), hello, map[bool]func(llm.Delta) error{true: func(llm.Delta) error { return nil }}[stream])
		runtime.ReadMemStats(&after)
		var e *llm.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, callfault.TooLarge, e.Kind)
		require.ErrorContains(t, e, "the limit is 4194304 bytes")
		require.False(t, e.Retryable())
		require.Less(t, after.HeapAlloc, before.HeapAlloc+64<<20)
	}
}

func TestEndlessReplies(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, stream bool) {
		var sent atomic.Int64
		base := serve(t, flood(1<<40, &sent)) // ends only if the client leaves
		e := failure(t, modelOf(t, openai.Config{Model: "m", BaseURL: base, MaxReply: 1000}), stream)
		require.Equal(t, callfault.TooLarge, e.Kind)
		require.Less(t, sent.Load(), int64(64<<20), "the rest is not read")
	})
	endless := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			if _, err := io.WriteString(w, "data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"); err != nil {
				return
			}
		}
	}
	e := failure(t, modelOf(t, openai.Config{Model: "m", BaseURL: serve(t, endless), MaxReply: 1000}), true)
	require.Equal(t, callfault.TooLarge, e.Kind, "a line without end")

	keepAlive := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			if _, err := io.WriteString(w, ": keep-alive\n\n"); err != nil {
				return
			}
		}
	}
	e = failure(t, modelOf(t, openai.Config{Model: "m", BaseURL: serve(t, keepAlive), MaxReply: 1000}), true)
	require.Equal(t, callfault.TooLarge, e.Kind, "comments without end")

	headers := func(w http.ResponseWriter, _ *http.Request) {
		for i := range 5000 {
			w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 100))
		}
	}
	e = failure(t, model(t, headers), false)
	require.Equal(t, callfault.Unreachable, e.Kind, "headers without end")
}

func TestMaxReplyIsExact(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, stream bool) {
		base := serve(t, answer)
		_, err := call(t, modelOf(t, openai.Config{Model: "m", BaseURL: base, MaxReply: len("hi there")}), stream)
		require.NoError(t, err)
		e := failure(t, modelOf(t, openai.Config{Model: "m", BaseURL: base, MaxReply: len("hi there") - 1}), stream)
		require.Equal(t, callfault.TooLarge, e.Kind)
	})
	e := failure(t, modelOf(t, openai.Config{Model: "m", MaxReply: 1000, BaseURL: serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100000000")
		w.WriteHeader(200)
	})}), false)
	require.Equal(t, callfault.TooLarge, e.Kind, "what announces itself is not read")
}

func FuzzReply(f *testing.F) {
	f.Add(whole, false, false)
	f.Add(strings.Join([]string{chunkHi, chunkEnd, done}, "\n\n"), true, true)
	f.Add("event: error\ndata: x", true, true)
	f.Add(`{"error":{"message":{"a":1},"code":[]}}`, true, false)
	f.Add("<html>", false, true)
	f.Add(`data:{"choices":[{"message":{"content":"0"},"finish_reason":"stop"}`, true, true) // the stream ends within a line
	for _, row := range recordedForms(f) {
		f.Add(string(row.Whole), false, false)
		f.Add(row.stream(), true, true)
	}
	f.Fuzz(func(t *testing.T, body string, stream, typed bool) {
		kind := "application/json"
		if typed {
			kind = "text/event-stream"
		}
		m, err := openai.New(openai.Config{Model: "m", BaseURL: "http://h/v1", MaxReply: 1 << 16, HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1, Request: r}, nil
		})}})
		require.NoError(t, err)
		res, err := call(t, m, stream)
		if err != nil {
			var e *llm.Error
			require.ErrorAs(t, err, &e)
			require.NotEmpty(t, e.Kind)
			return
		}
		require.True(t, strings.TrimSpace(res.Text) != "" || len(res.ToolCalls) > 0)
		require.LessOrEqual(t, len(res.Text), 1<<16)
		requireReturnable(t, res)
	})
}

// requireReturnable requires that a reply can be sent back as a part of its conversation.
func requireReturnable(t *testing.T, res llm.Response) {
	t.Helper()
	var sent []byte
	m, err := openai.New(openai.Config{Model: "m", BaseURL: "http://h/v1", HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		sent, _ = io.ReadAll(r.Body)
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(whole)), ContentLength: -1, Request: r}, nil
	})}})
	require.NoError(t, err)
	req := hello
	req.Messages = append(slices.Clone(req.Messages), llm.Message{Role: llm.Assistant, Text: res.Text, ToolCalls: res.ToolCalls, Provider: res.Provider})
	for _, c := range res.ToolCalls {
		req.Messages = append(req.Messages, llm.Message{Role: llm.ToolResult, ToolCallID: c.ID, Text: "3"})
	}
	_, err = m.Call(t.Context(), req, nil)
	require.NoError(t, err)
	messages, _ := messagesOf(t, string(sent))
	require.Len(t, messages, 3+len(res.ToolCalls))
	require.Len(t, messages[2].ToolCalls, len(res.ToolCalls))
	require.LessOrEqual(t, res.Provider.Size(), llm.MaxProviderData)
}

// TestEmptyRepliesWithAReason returns a reply without a text if its finish reason says
// why there is none, so that it is not tried again as an empty one.
func TestEmptyRepliesWithAReason(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]callinfo.Finish{"length": callinfo.Truncated, "content_filter": callinfo.Filtered, "refusal": callinfo.Refused} {
		res, err := call(t, model(t, sayJSON(200, `{"choices":[{"message":{"content":""},"finish_reason":"`+reason+`"}]}`)), false)
		require.NoError(t, err)
		require.Equal(t, want, callinfo.FinishOf(&res))
	}
	both(t, func(t *testing.T, stream bool) {
		handler := sayJSON(200, `{"choices":[{"message":{"content":null,"refusal":"I will not."},"finish_reason":"stop"}]}`)
		if stream {
			handler = events(`data: {"choices":[{"delta":{"refusal":"I will "}}]}`, "", `data: {"choices":[{"delta":{"refusal":"not."},"finish_reason":"stop"}]}`, "", done)
		}
		res, err := call(t, model(t, handler), stream)
		require.NoError(t, err)
		require.Equal(t, "I will not.", res.Refusal)
		require.Equal(t, callinfo.Refused, callinfo.FinishOf(&res))
	})
}
