package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/runteam/runteam/llm"
)

// Call sends one request and reads the whole reply, as [llm.Model] says. It
// streams if emit is not nil; a server that answers in one piece nevertheless
// gives one delta.
func (m *Model) Call(ctx context.Context, req llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
	within, cancel := context.WithTimeoutCause(ctx, m.timeout, m.slow())
	defer cancel()
	res, err := m.attempt(within, req, emit, !m.noUsage.Load())
	if e, ok := errors.AsType[*llm.Error](err); ok && emit != nil && refusesUsage(e) && !m.noUsage.Swap(true) {
		res, err = m.attempt(within, req, emit, false)
	}
	if err == nil {
		return res, nil
	}
	return llm.Response{}, m.explain(ctx, within, err)
}

// refusesUsage reports whether an endpoint does not know the option that asks for usage in a stream.
func refusesUsage(e *llm.Error) bool {
	return e.Kind == llm.BadRequest && strings.Contains(e.Message, "stream_options")
}

// slow is the cause with which the limit of a call ends it.
func (m *Model) slow() *llm.Error {
	e := m.fault(llm.Timeout, fmt.Sprintf("the limit is %s", m.timeout))
	e.Err = context.DeadlineExceeded
	return e
}

// fault returns an error of this model.
func (m *Model) fault(kind llm.Kind, message string) *llm.Error {
	return &llm.Error{Kind: kind, Endpoint: m.base, Model: m.name, Message: message}
}

// explain says which of several ends of a call is the one to report.
func (m *Model) explain(ctx, within context.Context, err error) error {
	if refused, ok := errors.AsType[*emitError](err); ok {
		return fmt.Errorf("stream of model %q: %w", m.name, refused.err)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("call of model %q: %w", m.name, context.Cause(ctx))
	}
	if within.Err() != nil {
		return context.Cause(within)
	}
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e
	}
	return m.unreachable(err)
}

// An emitError is what the caller's emit answered.
type emitError struct{ err error }

func (e *emitError) Error() string { return e.err.Error() }

// attempt makes one request. A call owns its client, since a client remembers nothing but its settings.
func (m *Model) attempt(ctx context.Context, req llm.Request, emit func(llm.Delta) error, usage bool) (llm.Response, error) {
	c := &call{model: m, req: req, stream: emit != nil}
	client := m.goOpenAI(c)
	body := openai.ChatCompletionRequest{Model: placeholder, Messages: messages(req)}
	if emit == nil {
		reply, err := client.CreateChatCompletion(ctx, body)
		if err != nil {
			return llm.Response{}, c.unreadable(err)
		}
		return c.whole(reply)
	}
	if usage {
		body.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	stream, err := client.CreateChatCompletionStream(ctx, body)
	if errors.Is(err, errWhole) {
		return c.unstreamed(emit)
	}
	if err != nil {
		return llm.Response{}, err
	}
	defer stream.Close()
	return c.collect(stream, emit)
}

// goOpenAI returns a client that sends through doer.
func (m *Model) goOpenAI(doer openai.HTTPDoer) *openai.Client {
	cfg := openai.DefaultConfig("") // the doer adds the key
	cfg.BaseURL = m.base
	cfg.HTTPClient = doer
	return openai.NewClientWithConfig(cfg)
}

// placeholder stands for the name of the model until the request is patched:
// go-openai refuses settings and endpoints by the name, even for a local model
// that is only called so.
const placeholder = "model"

func messages(req llm.Request) []openai.ChatCompletionMessage {
	var all []openai.ChatCompletionMessage
	if req.System != "" {
		all = append(all, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: req.System})
	}
	for _, m := range req.Messages {
		all = append(all, openai.ChatCompletionMessage{Role: string(m.Role), Content: m.Text})
	}
	return all
}

// whole turns a reply in one piece into a response.
func (c *call) whole(reply openai.ChatCompletionResponse) (llm.Response, error) {
	res := llm.Response{Model: llm.OneLine(reply.Model), Usage: usage(&reply.Usage)}
	if len(reply.Choices) == 0 {
		return llm.Response{}, c.empty(res, "no choices")
	}
	choice := reply.Choices[0]
	res.FinishReason = finish(choice.FinishReason)
	res.Text = said(choice.Message)
	for _, t := range choice.Message.ToolCalls {
		res.ToolCalls = append(res.ToolCalls, llm.ToolCall{ID: t.ID, Name: t.Function.Name, Arguments: t.Function.Arguments})
	}
	return c.checked(res)
}

// said returns the text of a message, whose content may come in parts; a refusal is a text too.
func said(m openai.ChatCompletionMessage) string {
	text := m.Content
	for _, part := range m.MultiContent {
		if part.Type == openai.ChatMessagePartTypeText {
			text += part.Text
		}
	}
	if text == "" {
		text = m.Refusal
	}
	return text
}

func finish(r openai.FinishReason) string {
	if r == openai.FinishReasonNull {
		return ""
	}
	return llm.OneLine(string(r))
}

func usage(u *openai.Usage) llm.Usage {
	if u == nil {
		return llm.Usage{}
	}
	return llm.Usage{InputTokens: max(u.PromptTokens, 0), OutputTokens: max(u.CompletionTokens, 0)}
}

// unstreamed reads a reply that came in one piece although a stream was asked for.
func (c *call) unstreamed(emit func(llm.Delta) error) (llm.Response, error) {
	var reply openai.ChatCompletionResponse
	if err := json.Unmarshal(c.body, &reply); err != nil {
		return llm.Response{}, c.unreadable(err)
	}
	res, err := c.whole(reply)
	if err != nil || res.Text == "" {
		return res, err
	}
	if err := emit(llm.Delta{Text: res.Text, Attempt: 1}); err != nil {
		return llm.Response{}, &emitError{err}
	}
	return res, nil
}

// checked refuses a response that is empty or too large.
func (c *call) checked(res llm.Response) (llm.Response, error) {
	switch {
	case len(res.Text) > c.model.maxReply:
		return llm.Response{}, c.tooLarge()
	case strings.TrimSpace(res.Text) == "" && len(res.ToolCalls) == 0:
		return llm.Response{}, c.empty(res, "neither text nor tool calls")
	}
	return res, nil
}

func (c *call) empty(res llm.Response, what string) error {
	if res.FinishReason != "" {
		what += fmt.Sprintf(", finish reason %q", res.FinishReason)
	}
	if res.FinishReason == string(openai.FinishReasonLength) {
		what += ": raise maxTokens"
	}
	e := c.model.fault(llm.Empty, what)
	e.Status, e.Usage = http.StatusOK, res.Usage
	return e
}

func (c *call) tooLarge() error {
	e := c.model.fault(llm.TooLarge, fmt.Sprintf("the limit is %d bytes", c.model.maxReply))
	e.Status = http.StatusOK
	return e
}

// unreadable words an error of decoding a whole reply; others pass.
func (c *call) unreadable(err error) error {
	_, form := errors.AsType[*json.UnmarshalTypeError](err)
	_, syntax := errors.AsType[*json.SyntaxError](err)
	if !form && !syntax {
		return err
	}
	e := c.model.fault(llm.BadResponse, "JSON of another form than a chat completion")
	e.Status = http.StatusOK
	return e
}
