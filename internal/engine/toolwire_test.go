package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A toolRun is what a run with tools did.
type toolRun struct {
	calls   []string // of tools, sorted
	results []string
	tokens  llm.Usage
}

// runWithTools runs two tasks, of which the first has tools.
func runWithTools(t *testing.T, model llm.Model) toolRun {
	t.Helper()
	var mu sync.Mutex
	var run toolRun
	lookUp, err := tool.New("look_up_person", "Looks a name up.", func(_ context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		run.calls = append(run.calls, "look_up_person "+in.Name)
		if in.Name == "Bob" {
			return "", fmt.Errorf("there is no Bob")
		}
		return in.Name + " lives at {{ 7 }} Elm Street, ann@example.com", nil
	}, tool.Options{Effect: tool.None})
	require.NoError(t, err)
	send, err := tool.New("send", "Sends a letter.", func(_ context.Context, in struct {
		Text string `json:"text"`
	}) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		run.calls = append(run.calls, "send "+in.Text)
		return "sent", nil
	}, tool.Options{})
	require.NoError(t, err)
	tm, err := engine.New(engine.Config{Agents: []engine.Member{
		{Name: "clerk", Agent: agent.New(model, agent.Options{Retry: llm.RetryOptions{Delay: time.Millisecond}}), Tools: []*tool.Tool{lookUp, send}, AllowUntrusted: []string{"send"}},
		{Name: "writer", Agent: agent.New(model, agent.Options{})},
	}})
	require.NoError(t, err)
	res, err := tm.RunTasks(t.Context(), []task.Spec{
		{Title: "Find Ann", Assignee: "clerk", Description: "Find her.", OutputSchema: []byte(`{"type":"object","required":["street"],"properties":{"street":{"type":"string"}}}`)},
		{Title: "Write", Assignee: "writer", Description: "Write it.", DependsOn: task.On("Find Ann")},
	}, nil)
	require.NoError(t, err)
	require.NoError(t, res.Err())
	for _, r := range res.Tasks {
		run.results = append(run.results, r.Result)
	}
	slices.Sort(run.calls)
	run.tokens = res.Usage
	return run
}

// toolEndpoint is an endpoint whose model calls tools, right and wrong.
func toolEndpoint(t *testing.T, seen *[]string) *openai.Model {
	call := func(id, name, arguments string) map[string]any {
		return map[string]any{"id": id, "type": "function", "function": map[string]any{"name": name, "arguments": arguments}}
	}
	turns := []map[string]any{
		{"content": "I look {{ twice }}.", "tool_calls": []any{call("a1", "look_up_person", `{ "name" : "Ann" }`), call("a2", "look_up_person", `{"name":"Bob"}`)}},
		{"content": nil, "tool_calls": []any{call("a1", "lookup", `{"name":"Ann"}`), call("a2", "look_up_person", `{"nam`), call("a3", "look_up_person", `{"age": 7}`), call("a4", "look_up_person", `[]`)}},
		{"content": nil, "tool_calls": []any{call("0", "send", `{"text":"To bob@example.com:\n {{ . }} \t"}`)}},
		{"content": "not JSON"},
		{"content": `{"street": "Elm Street"}`},
	}
	var mu sync.Mutex
	failed := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Messages []struct{ Role, Content string }
		}
		require.NoError(t, json.NewDecoder(r.Body).Decode(&body))
		mu.Lock()
		defer mu.Unlock()
		turn, text := 0, ""
		for _, m := range body.Messages {
			if text += m.Role + "\n" + m.Content + "\n"; m.Role == llm.Assistant {
				turn++
			}
		}
		message := map[string]any{"content": "Dear Ann"}
		if strings.Contains(text, "# Task: Find Ann\n") {
			message = turns[turn]
		}
		if turn == 2 && !failed {
			failed = true
			http.Error(w, `{"error":{"message":"not now"}}`, http.StatusServiceUnavailable)
			return
		}
		*seen = append(*seen, text)
		message["role"] = llm.Assistant
		_ = json.NewEncoder(w).Encode(map[string]any{
			"choices": []any{map[string]any{"message": message, "finish_reason": "stop"}}, "usage": map[string]int{"prompt_tokens": 10 + turn, "completion_tokens": 1 + turn},
		})
	}))
	t.Cleanup(server.Close)
	m, err := openai.New(openai.Config{Model: "m", BaseURL: server.URL + "/v1"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// A replay of a recorded run with tools makes the same calls of tools and gives the models
// the same conversations: parallel calls, failed and refused ones, a retried turn and a
// corrected answer.
func TestRecordedRunWithToolsIsReplayed(t *testing.T) {
	t.Parallel()
	var recorder scripted.Recorder
	var asked []string
	first := runWithTools(t, recorder.Model(toolEndpoint(t, &asked)))
	require.Equal(t, []string{"look_up_person Ann", "look_up_person Bob", "send To [REDACTED:email]:\n {{ . }} \t"}, first.calls)
	require.Equal(t, []string{`{"street": "Elm Street"}`, "Dear Ann"}, first.results)
	require.Equal(t, 3, strings.Count(asked[2], "Invalid arguments: "))
	var file bytes.Buffer
	_, err := recorder.WriteTo(&file)
	require.NoError(t, err)
	script, err := scripted.Parse("recorded.yaml", file.Bytes())
	require.NoError(t, err)
	server, err := scripted.Start(script, scripted.Options{Keep: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	m, err := openai.New(openai.Config{Model: "m", BaseURL: server.URL()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	var again scripted.Recorder
	require.Equal(t, first, runWithTools(t, again.Model(m)))
	var got []string
	for _, r := range server.Requests() {
		text := ""
		if r.System != "" {
			text = "system\n" + r.System + "\n"
		}
		for _, m := range r.Messages {
			text += m.Role + "\n" + m.Text + "\n"
		}
		if len(got) == 0 || got[len(got)-1] != text { // the failed call of a turn was repeated
			got = append(got, text)
		}
	}
	require.Len(t, got, len(asked))
	for i := range asked {
		require.Equal(t, asked[i], got[i])
	}
	var file2 bytes.Buffer
	_, err = again.WriteTo(&file2)
	require.NoError(t, err)
	require.Equal(t, file.String(), file2.String(), "a recording of a replay is the recording")
	require.Contains(t, file.String(), `arguments: {"text": "To bob@example.com:\n {{\"{{\"}} . }}{{\" \\t\"}}"}`, "nothing is redacted, as in other texts")
}
