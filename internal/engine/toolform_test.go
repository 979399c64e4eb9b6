package engine_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/llm/openai"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// TestOnlyTheModelSeesFormsOfSchemas checks that the program and the tool get the arguments of the
// tool's own schema, against which they are validated in full, whatever form the model was given.
func TestOnlyTheModelSeesFormsOfSchemas(t *testing.T) {
	t.Parallel()
	replies := []string{
		`{"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"open","arguments":"{\"input\":{\"max_size_cace723f1e\":0}}"}},` +
			`{"id":"b","type":"function","function":{"name":"open","arguments":"{\"input\":{\"max_size_cace723f1e\":5}}"}}]}`,
		`{"content":"done"}`,
	}
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = append(sent, string(body))
		_, _ = io.WriteString(w, `{"choices":[{"message":`+replies[len(sent)-1]+`,"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(server.Close)
	m, err := openai.New(openai.Config{Model: "m", BaseURL: server.URL + "/v1"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })

	var asked, made []string
	open := &tool.Tool{
		Name: "open", Parameters: json.RawMessage(`{"oneOf":[{"type":"object","required":["max size"],"properties":{"max size":{"type":"integer","minimum":1}}},{"type":"object","required":["path"]}]}`),
		Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
			made = append(made, string(c.Arguments))
			return tool.Result{Text: "opened"}, nil
		},
	}
	tm, err := engine.New(engine.Config{
		Agents: []engine.Member{{Name: "clerk", Agent: agent.New(m, agent.Options{}), Tools: []*tool.Tool{open}, AllowUntrusted: []string{"open"}}},
		OnToolCall: func(_ context.Context, c plan.ToolCall) error {
			asked = append(asked, string(c.Arguments))
			return nil
		},
	})
	require.NoError(t, err)
	res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Open", Assignee: "clerk", Description: "Open it."}}, nil)
	require.NoError(t, err)
	require.NoError(t, res.Err())
	require.Equal(t, []string{`{"max size":5}`}, made)
	require.Equal(t, made, asked)
	require.Len(t, sent, 2)
	require.Contains(t, sent[0], `"parameters":{"type":"object","properties":{"input":{"oneOf":`)
	require.Equal(t, 1, strings.Count(sent[1], "Invalid arguments"), "the value below the minimum")
	require.Contains(t, sent[1], `{\"input\":{\"max_size_cace723f1e\":5}}`)
}
