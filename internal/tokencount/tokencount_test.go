package tokencount_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/tokencount"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

// The estimate of a turn of a conversation covers the request that is sent: the definitions of
// tools, the calls and their results, each with what the format puts around it.
func TestEstimateCoversTheRequestOfAConversation(t *testing.T) {
	t.Parallel()
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		fmt.Fprint(w, `{"choices":[{"message":{"content":"done"},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	m, err := openai.New(openai.Config{Model: "m", BaseURL: server.URL})
	require.NoError(t, err)
	sized := func(tools, turns, calls, bytes int) llm.Request {
		r := llm.Request{System: "system", Messages: []llm.Message{{Role: llm.User, Text: "first"}}}
		for i := range tools {
			r.Tools = append(r.Tools, llm.Tool{Name: fmt.Sprint("tool_", i), Description: strings.Repeat("d", bytes), Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)})
		}
		for i := range turns {
			said := llm.Message{Role: llm.Assistant, Text: strings.Repeat("s", bytes)}
			var results []llm.Message
			for k := range calls {
				id := fmt.Sprintf("call_%d_%d", i+1, k+1)
				said.ToolCalls = append(said.ToolCalls, llm.ToolCall{ID: id, Name: "tool_0", Arguments: "{}"})
				results = append(results, llm.Message{Role: llm.ToolResult, ToolCallID: id, Text: strings.Repeat("r", bytes)})
			}
			r.Messages = append(append(r.Messages, said), results...)
		}
		return r
	}
	base := 0 // what every request has
	for _, size := range [][4]int{{0, 0, 0, 0}, {1, 0, 0, 0}, {20, 0, 0, 200}, {1, 1, 1, 0}, {3, 1, 8, 10}, {3, 40, 2, 1000}, {5, 100, 1, 1}} {
		r := sized(size[0], size[1], size[2], size[3])
		_, err := m.Call(t.Context(), r, nil)
		require.NoError(t, err)
		estimated := 4 * tokencount.Estimate(&r).InputTokens
		if base == 0 {
			base = len(body) - estimated
		}
		require.GreaterOrEqual(t, estimated+base, len(body), "%v", size)
		require.LessOrEqual(t, estimated, len(body)*5/4, "%v", size)
	}
}
