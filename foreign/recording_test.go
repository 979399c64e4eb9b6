package foreign

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"github.com/ollama/ollama/openai"
	"github.com/stretchr/testify/require"
)

// An exchange is a request that a model endpoint got, and its reply.
type exchange struct {
	request    openai.ChatCompletionRequest
	status     int
	retryAfter string
	reply      []byte
}

// A recording is a proxy for a model endpoint that keeps all exchanges.
type recording struct {
	mu        sync.Mutex
	exchanges []exchange
}

// start starts the proxy for the endpoint at a base URL and returns its own.
func (r *recording) start(t *testing.T, behind string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if err := r.forward(w, req, behind); err != nil {
			t.Error(err)
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

func (r *recording) forward(w http.ResponseWriter, req *http.Request, behind string) error {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	var e exchange
	if err := json.Unmarshal(body, &e.request); err != nil {
		return err
	}
	res, err := http.Post(behind+"/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if e.reply, err = io.ReadAll(res.Body); err != nil {
		return err
	}
	e.status, e.retryAfter = res.StatusCode, res.Header.Get("Retry-After")
	r.mu.Lock()
	r.exchanges = append(r.exchanges, e)
	r.mu.Unlock()
	for _, name := range []string{"Content-Type", "Retry-After"} {
		if value := res.Header.Get(name); value != "" {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(e.status)
	_, err = w.Write(e.reply)
	return err
}

// A fixture is a reply of aimock and the requests that get it.
type fixture struct {
	Match    match          `json:"match"`
	Response map[string]any `json:"response"`
}

// A match lists what aimock compares with a request. Texts are complete, so that a request
// that differs in the conversation gets no reply.
type match struct {
	Model    string `json:"model"`
	System   string `json:"systemMessage,omitempty"`
	User     string `json:"userMessage"`
	Turn     int    `json:"turnIndex"`
	Answered bool   `json:"hasToolResult"`
	CallID   string `json:"toolCallId,omitempty"`         // of the last message
	Result   string `json:"toolResultContains,omitempty"` // the last message
	Offered  string `json:"toolName,omitempty"`           // a tool that the reply calls
	Format   string `json:"responseFormat,omitempty"`
	Sequence int    `json:"sequenceIndex"` // how many equal requests come before
}

// fixtures returns the exchanges as fixtures.
func (r *recording) fixtures(t *testing.T) []fixture {
	t.Helper()
	var all []fixture
	earlier := map[match]int{}
	for _, e := range r.exchanges {
		f := fixture{Match: matchOf(t, &e.request), Response: responseOf(t, &e)}
		if calls, ok := f.Response["toolCalls"].([]map[string]string); ok {
			f.Match.Offered = calls[0]["name"]
		}
		same := f.Match
		f.Match.Sequence = earlier[same]
		earlier[same]++
		all = append(all, f)
	}
	return all
}

func matchOf(t *testing.T, req *openai.ChatCompletionRequest) match {
	t.Helper()
	require.False(t, req.Stream, "the fixtures do not distinguish streams")
	m := match{Model: req.Model}
	if req.ResponseFormat != nil {
		m.Format = req.ResponseFormat.Type
	}
	for i, message := range req.Messages {
		text, _ := message.Content.(string)
		switch message.Role {
		case "system":
			m.System = text
		case "user":
			m.User, m.Answered = text, false
		case "assistant":
			m.Turn++
		case "tool":
			if m.Answered = true; i == len(req.Messages)-1 {
				m.CallID, m.Result = message.ToolCallID, text
			}
		}
	}
	return m
}

// responseOf returns the reply of an exchange as a fixture has it.
func responseOf(t *testing.T, e *exchange) map[string]any {
	t.Helper()
	if e.status != http.StatusOK {
		var body openai.ErrorResponse
		require.NoError(t, json.Unmarshal(e.reply, &body), "%s", e.reply)
		res := map[string]any{"error": body.Error, "status": e.status}
		if seconds, err := strconv.Atoi(e.retryAfter); err == nil {
			res["retryAfter"] = seconds
		}
		return res
	}
	var body openai.ChatCompletion
	require.NoError(t, json.Unmarshal(e.reply, &body), "%s", e.reply)
	require.Len(t, body.Choices, 1)
	said := body.Choices[0].Message
	res := map[string]any{"usage": body.Usage}
	if said.Content != nil {
		res["content"] = said.Content
	}
	var calls []map[string]string
	for _, c := range said.ToolCalls {
		calls = append(calls, map[string]string{"id": c.ID, "name": c.Function.Name, "arguments": c.Function.Arguments})
	}
	if calls != nil {
		res["toolCalls"] = calls
	}
	return res
}
