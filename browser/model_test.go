package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// A model is an endpoint of a test: it writes its answers piece by piece, when the test says so.
type model struct {
	*httptest.Server
	any func(*modelCall) // answers what answers has not

	mu      sync.Mutex
	answers map[string]func(*modelCall)
	prompts map[string][]string
}

// newModel starts an endpoint with the answers to tasks, by their titles.
func newModel(t testing.TB, answers map[string]func(*modelCall)) *model {
	m := &model{answers: answers, prompts: map[string][]string{}}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

// env is the environment of a command that uses the model.
func (m *model) env() []string {
	return []string{"OPENAI_BASE_URL=" + m.URL + "/v1", "OPENAI_API_KEY=test-key-of-no-account"}
}

// seen returns the prompts of a task so far.
func (m *model) seen(title string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.prompts[title]...)
}

// A modelCall is a request whose answer is written.
type modelCall struct {
	ctx     context.Context //nolint:containedctx // of the request
	prompt  string          // the last message
	turn    int             // how often the task has asked, from 1
	w       http.ResponseWriter
	streams bool
	text    strings.Builder
	calls   []any // of tools

	signature string // that the provider needs back with each call; empty for none
}

// sendsTo calls the tool with which an agent sends a handoff to another one.
func (c *modelCall) sendsTo(agent, message string) {
	arguments, _ := json.Marshal(map[string]string{"to": agent, "message": message})
	call := map[string]any{"index": len(c.calls), "id": fmt.Sprintf("call%d", len(c.calls)), "type": "function", "function": map[string]any{"name": "send_handoff", "arguments": string(arguments)}}
	if c.calls = append(c.calls, call); c.streams {
		c.chunk(map[string]any{"index": 0, "delta": map[string]any{"tool_calls": []any{call}}, "finish_reason": nil})
	}
}

// end says why the answer ends.
func (c *modelCall) end() string {
	if len(c.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

// write sends a piece of the answer.
func (c *modelCall) write(piece string) {
	c.text.WriteString(piece)
	if c.streams {
		c.chunk(map[string]any{"index": 0, "delta": map[string]any{"content": piece}, "finish_reason": nil})
	}
}

func (c *modelCall) chunk(choice map[string]any) {
	data, _ := json.Marshal(map[string]any{"id": "1", "object": "chat.completion.chunk", "model": "scripted", "choices": []any{choice}})
	_, _ = fmt.Fprintf(c.w, "data: %s\n\n", data)
	c.w.(http.Flusher).Flush()
}

// await waits until a channel is closed, or the client is gone.
func (c *modelCall) await(until <-chan struct{}) bool {
	select {
	case <-until:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// says returns the answer that is a text.
func says(text string) func(*modelCall) {
	return func(c *modelCall) { c.write(text) }
}

var taskLine = regexp.MustCompile(`(?m)^# Task: (.*)$`)

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Stream   bool
		Messages []struct{ Role, Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	title, last := "", ""
	for _, message := range request.Messages {
		if found := taskLine.FindStringSubmatch(message.Content); found != nil && title == "" && message.Role == "user" {
			title = found[1]
		}
		last = message.Content
	}
	m.mu.Lock()
	m.prompts[title] = append(m.prompts[title], last)
	c := &modelCall{ctx: r.Context(), prompt: last, turn: len(m.prompts[title]), w: w, streams: request.Stream}
	answer := m.answers[title]
	m.mu.Unlock()
	if answer == nil {
		answer = m.any
	}
	if answer == nil {
		http.Error(w, "no answer to "+title, http.StatusBadRequest)
		return
	}
	c.answer(answer)
}

// answer writes a whole answer.
func (c *modelCall) answer(of func(*modelCall)) {
	usage := map[string]any{"prompt_tokens": 120, "completion_tokens": 40, "total_tokens": 160}
	if !c.streams {
		of(c)
		c.w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(c.w).Encode(map[string]any{
			"id": "1", "object": "chat.completion", "model": "scripted", "usage": usage,
			"choices": []any{map[string]any{"index": 0, "finish_reason": c.end(), "message": map[string]any{"role": "assistant", "content": c.text.String(), "tool_calls": c.calls}}},
		})
		return
	}
	c.w.Header().Set("Content-Type", "text/event-stream")
	of(c)
	c.chunk(map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": c.end()})
	data, _ := json.Marshal(map[string]any{"id": "1", "object": "chat.completion.chunk", "model": "scripted", "choices": []any{}, "usage": usage})
	_, _ = fmt.Fprintf(c.w, "data: %s\n\ndata: [DONE]\n\n", data)
}
