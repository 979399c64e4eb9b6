package openai_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

// TestFirstTokenIsTimed checks what counts as the first part of a reply: a text, a reasoning or a call of a tool, but no empty
// piece. A reply in one piece has none.
func TestFirstTokenIsTimed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind string
		body []string // with a second before each
		want int64
	}{
		"text":      {"text/event-stream", []string{`{"choices":[{"delta":{"role":"assistant","content":""}}]}`, `{"choices":[{"delta":{"content":"hi"}}]}`, `{"choices":[{"delta":{"content":"!"},"finish_reason":"stop"}]}`}, 2000},
		"reasoning": {"text/event-stream", []string{`{"choices":[{"delta":{"reasoning":"hm"}}]}`, `{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}`}, 1000},
		"whole":     {"application/json", []string{`{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var wg sync.WaitGroup
				defer wg.Wait()
				transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
					ours, theirs := net.Pipe()
					wg.Go(func() { answerSlowly(theirs, tt.kind, tt.body) })
					return ours, nil
				}}
				defer transport.CloseIdleConnections()
				m := modelOf(t, openai.Config{Model: "m", BaseURL: "http://h/v1", HTTPClient: &http.Client{Transport: transport}})
				res, err := m.Call(t.Context(), hello, func(llm.Delta) error { return nil })
				require.NoError(t, err)
				require.Equal(t, tt.want, res.FirstTokenMs)
			})
		})
	}
}

// answerSlowly reads one request and answers it in parts.
func answerSlowly(c net.Conn, kind string, parts []string) {
	defer c.Close()
	buf := make([]byte, 64<<10)
	if _, err := c.Read(buf); err != nil {
		return
	}
	_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nConnection: close\r\n\r\n", kind)
	for _, part := range parts {
		time.Sleep(time.Second)
		if kind == "text/event-stream" {
			part = "data: " + part + "\n\n"
		}
		_, _ = fmt.Fprint(c, part)
	}
}
