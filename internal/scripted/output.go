package scripted

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/runteam/runteam/llm"
)

// An output writes one answer, streamed or not as the call requests.
type output struct {
	w      http.ResponseWriter
	call   call
	number int
	input  int // bytes of the request's texts
}

// The types of the chat completions API that are sent.
type (
	completion struct {
		ID      string   `json:"id"`
		Object  string   `json:"object"`
		Created int64    `json:"created"`
		Model   string   `json:"model"`
		Choices []choice `json:"choices"`
		Usage   *tokens  `json:"usage,omitempty"`
	}
	choice struct {
		Index        int      `json:"index"`
		Message      *message `json:"message,omitempty"`
		Delta        *message `json:"delta,omitempty"`
		FinishReason *string  `json:"finish_reason"`
	}
	message struct {
		Role      string     `json:"role,omitempty"`
		Content   *string    `json:"content"` // null beside tool calls
		ToolCalls []toolCall `json:"tool_calls,omitempty"`
	}
	toolCall struct {
		Index    *int     `json:"index,omitempty"` // in a stream only
		ID       string   `json:"id,omitempty"`    // in a stream in the first piece only, as Type and Name
		Type     string   `json:"type,omitempty"`
		Function function `json:"function"`
	}
	function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	}
	tokens struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
)

// send answers with a text and tool calls; cut closes the connection halfway.
func (o *output) send(res llm.Response, cut bool, u *Usage) {
	if u == nil {
		u = &Usage{Input: (o.input + 3) / 4, Output: (responseBytes(res) + 3) / 4}
	}
	used := &tokens{Prompt: u.Input, Completion: u.Output, Total: u.Input + u.Output}
	finish := "stop"
	if len(res.ToolCalls) > 0 {
		finish = "tool_calls"
	}
	if o.call.Stream {
		o.stream(res, cut, finish, used)
		return
	}
	body, err := json.Marshal(o.completion("chat.completion", used, choice{Message: messageOf(res), FinishReason: &finish}))
	if err != nil {
		refuse(o.w, http.StatusInternalServerError, "server_error", "the answer cannot be written as JSON")
		return
	}
	o.w.Header().Set("Content-Type", "application/json")
	o.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if cut {
		_, _ = o.w.Write(body[:len(body)/2])
		o.abort()
	}
	_, _ = o.w.Write(body)
}

// responseBytes returns the bytes of a text and tool calls.
func responseBytes(res llm.Response) int {
	n := len(res.Text)
	for _, c := range res.ToolCalls {
		n += len(c.Name) + len(c.Arguments)
	}
	return n
}

// messageOf returns the message of a reply that is not streamed.
func messageOf(res llm.Response) *message {
	m := &message{Role: llm.Assistant}
	if res.Text != "" || len(res.ToolCalls) == 0 {
		m.Content = &res.Text
	}
	for _, c := range res.ToolCalls {
		m.ToolCalls = append(m.ToolCalls, toolCall{ID: c.ID, Type: "function", Function: function{c.Name, c.Arguments}})
	}
	return m
}

// stream answers with events.
func (o *output) stream(res llm.Response, cut bool, finish string, used *tokens) {
	o.w.Header().Set("Content-Type", "text/event-stream")
	o.w.Header().Set("Cache-Control", "no-cache")
	o.event(choice{Delta: &message{Role: llm.Assistant, Content: new("")}})
	left := responseBytes(res) // bytes to send
	if cut {
		left /= 2
	}
	o.pieces(res.Text, &left, func(piece string) message { return message{Content: &piece} })
	for i, c := range res.ToolCalls {
		if left < len(c.Name) {
			break
		}
		left -= len(c.Name)
		o.event(choice{Delta: &message{ToolCalls: []toolCall{{Index: &i, ID: c.ID, Type: "function", Function: function{Name: c.Name}}}}})
		o.pieces(c.Arguments, &left, func(piece string) message {
			return message{ToolCalls: []toolCall{{Index: &i, Function: function{Arguments: piece}}}}
		})
	}
	if cut {
		o.abort()
	}
	o.event(choice{Delta: &message{}, FinishReason: &finish})
	if o.call.StreamOptions.IncludeUsage {
		last := o.completion("chat.completion.chunk", used)
		last.Choices = []choice{}
		o.line(last)
	}
	_, _ = io.WriteString(o.w, "data: [DONE]\n\n")
}

// pieces sends a text in several events, but at most left bytes of it.
func (o *output) pieces(text string, left *int, delta func(piece string) message) {
	step, end := min(max(len(text)/64, 16), 4096), min(len(text), *left)
	for at := 0; at < end; {
		next := piece(text, at, step)
		o.event(choice{Delta: new(delta(text[at:next]))})
		at = next
	}
	*left -= end
}

// piece returns the end of a piece of text of n bytes from at, moved to the end of a rune.
func piece(text string, at, n int) int {
	end := min(at+n, len(text))
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end++
	}
	return end
}

func (o *output) event(c choice) { o.line(o.completion("chat.completion.chunk", nil, c)) }

func (o *output) line(c completion) {
	data, err := json.Marshal(c)
	if err != nil {
		return // texts and numbers can always be encoded
	}
	_, _ = fmt.Fprintf(o.w, "data: %s\n\n", data)
	_ = http.NewResponseController(o.w).Flush()
}

func (o *output) completion(object string, used *tokens, choices ...choice) completion {
	return completion{
		ID: fmt.Sprintf("chatcmpl-%d", o.number), Object: object, Created: time.Now().Unix(),
		Model: o.call.Model, Choices: choices, Usage: used,
	}
}

// abort closes the connection after what was written so far.
func (o *output) abort() {
	_ = http.NewResponseController(o.w).Flush()
	panic(http.ErrAbortHandler)
}

// refuse answers with an error in the format of the API.
func refuse(w http.ResponseWriter, status int, code, text string) {
	var body struct {
		Error struct {
			Message string  `json:"message"`
			Type    string  `json:"type"`
			Param   *string `json:"param"`
			Code    string  `json:"code"`
		} `json:"error"`
	}
	body.Error.Message, body.Error.Type, body.Error.Code = text, "invalid_request_error", code
	if status >= 500 {
		body.Error.Type = "server_error"
	}
	send(w, status, body)
}

func refuseMethod(w http.ResponseWriter, r *http.Request) {
	refuse(w, http.StatusMethodNotAllowed, "method_not_allowed", "this path does not take "+r.Method)
}

func send(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
