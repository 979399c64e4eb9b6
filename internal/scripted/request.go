package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/oneline"
	"github.com/runteam/runteam/llm"
)

// A call is the part of the body of a request that matters here.
type call struct {
	Model    string `json:"model"`
	Messages []struct {
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content"`
		ToolCalls  []toolCall      `json:"tool_calls"`
		ToolCallID string          `json:"tool_call_id"`
	} `json:"messages"`
	Tools []struct {
		Type     string `json:"type"`
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	Stream        bool `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// readCall reads and checks the body of a request.
func readCall(w http.ResponseWriter, r *http.Request) (Request, call, error) {
	var c call
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxRequest))
	if err != nil {
		return Request{}, c, err
	}
	if err := json.Unmarshal(body, &c); err != nil {
		return Request{}, c, fmt.Errorf("the body is not JSON of a chat completion: %w", err)
	}
	switch {
	case c.Model == "":
		return Request{}, c, errors.New("model is missing")
	case len(c.Messages) == 0:
		return Request{}, c, errors.New("messages is empty")
	}
	req := Request{Model: c.Model, Stream: c.Stream, Headers: slices.Sorted(maps.Keys(r.Header))}
	if err := c.readMessages(&req); err != nil {
		return Request{}, c, err
	}
	if err := c.readTools(&req); err != nil {
		return Request{}, c, err
	}
	return req, c, nil
}

// readMessages reads the conversation. As endpoints do, it requires that the results of all
// tool calls of a message follow it.
func (c *call) readMessages(req *Request) error {
	var system, open []string // open are the IDs of calls without a result
	for i, m := range c.Messages {
		text, err := contentText(m.Content)
		if err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
		if m.Role != llm.ToolResult && len(open) > 0 {
			return fmt.Errorf("messages[%d]: the tool call %q before it has no result", i, oneline.Of(open[0]))
		}
		said := llm.Message{Role: m.Role, Text: text}
		switch m.Role {
		case "system", "developer":
			system = append(system, text)
			continue
		case llm.User:
		case llm.Assistant:
			for _, t := range m.ToolCalls {
				if t.ID == "" {
					return fmt.Errorf("messages[%d]: a tool call has no id", i)
				}
				said.ToolCalls = append(said.ToolCalls, llm.ToolCall{ID: t.ID, Name: t.Function.Name, Arguments: t.Function.Arguments})
				open = append(open, t.ID)
			}
		case llm.ToolResult:
			at := slices.Index(open, m.ToolCallID)
			if at < 0 {
				return fmt.Errorf("messages[%d]: tool_call_id %q is not that of a call before it that has no result yet", i, oneline.Of(m.ToolCallID))
			}
			open, said.ToolCallID = slices.Delete(open, at, at+1), m.ToolCallID
		default:
			return fmt.Errorf("messages[%d]: unknown role %q", i, oneline.Of(m.Role))
		}
		req.Messages = append(req.Messages, said)
	}
	if len(open) > 0 {
		return fmt.Errorf("messages: the tool call %q has no result", oneline.Of(open[0]))
	}
	req.System = strings.Join(system, "\n\n")
	return nil
}

// readTools reads the tools that the model may call.
func (c *call) readTools(req *Request) error {
	for i, t := range c.Tools {
		switch f := t.Function; {
		case t.Type != "function":
			return fmt.Errorf("tools[%d]: type is %q; only \"function\" is known", i, oneline.Of(t.Type))
		case f.Name == "":
			return fmt.Errorf("tools[%d]: function.name is missing", i)
		case slices.ContainsFunc(req.Tools, func(o llm.Tool) bool { return o.Name == f.Name }):
			return fmt.Errorf("tools[%d]: a second tool %q", i, oneline.Of(f.Name))
		default:
			req.Tools = append(req.Tools, llm.Tool{Name: f.Name, Description: f.Description, Parameters: f.Parameters})
		}
	}
	return nil
}

// contentText returns the text of a content: a string, null, or a list of parts.
func contentText(raw json.RawMessage) (string, error) {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", errors.New("content is neither a text nor a list of parts")
	}
	for _, p := range parts {
		text += p.Text
	}
	return text, nil
}

// requestBytes returns the bytes of all texts of a request.
func requestBytes(req Request) int {
	n := len(req.System)
	for _, m := range req.Messages {
		n += len(m.Text)
		for _, c := range m.ToolCalls {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	return n
}
