package openai

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/runteam/runteam/internal/callinfo"
	"github.com/runteam/runteam/llm"
)

// Call sends one request and reads the whole reply, as [llm.Model] says. It
// asks for a stream if emit is not nil; a server that answers in one piece
// nevertheless gives one delta. A stream that was not asked for is read to its end.
func (m *Model) Call(ctx context.Context, req llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
	if m == nil || m.client == nil {
		return llm.Response{}, &llm.Error{Kind: llm.UnknownModel, Err: llm.ErrNoModel}
	}
	if ctx == nil {
		return llm.Response{}, errors.New("openai: the context is nil; use context.Background")
	}
	within, cancel := context.WithTimeoutCause(ctx, m.timeout, m.slow())
	defer cancel()
	res, err := m.callAdapted(within, req, emit)
	if err == nil {
		m.answered.Store(true)
		return res, nil
	}
	err = m.explain(ctx, within, req, err)
	// An endpoint that answered before is at this address, so it is out of order
	// for now. Not errors.AsType: the cause of a context belongs to the caller.
	if e, ok := err.(*llm.Error); ok && e.Kind == llm.NotFound && m.answered.Load() {
		e.Kind = llm.ServerError
	}
	return llm.Response{}, err
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
func (m *Model) explain(ctx, within context.Context, req llm.Request, err error) error {
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
	return m.unreachable(req, err)
}

// An emitError is what the caller's emit answered.
type emitError struct{ err error }

func (e *emitError) Error() string { return e.err.Error() }

// attempt makes one request and reads the reply. A call owns its client, since a client remembers nothing but its settings.
func (c *call) attempt(ctx context.Context, emit func(llm.Delta) error) (llm.Response, error) {
	client := c.model.goOpenAI(c)
	body := openai.ChatCompletionRequest{Model: placeholder} // call.patch adds the rest
	var err error
	if emit == nil {
		_, err = client.CreateChatCompletion(ctx, body)
	} else {
		if c.streamed = true; c.changes.noUsage {
			c.warn("stream_options: the endpoint refused it; the tokens of streamed replies are not counted")
		} else {
			body.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
		}
		_, err = client.CreateChatCompletionStream(ctx, body)
	}
	if !errors.Is(err, errTaken) {
		return llm.Response{}, err
	}
	defer c.reply.Body.Close()
	in := bufio.NewReaderSize(c.reply.Body, 16<<10)
	if isEvents(c.reply.Header, in) { // some proxies always stream
		return c.stream(in, emit)
	}
	res, err := c.whole(in, c.reply.ContentLength)
	if err != nil || emit == nil || res.Text == "" {
		return res, err
	}
	if err := emit(llm.Delta{Text: res.Text, Attempt: 1}); err != nil {
		return llm.Response{}, &emitError{err}
	}
	return res, nil
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

// response converts a reply. All of it is sanitized except for the text and the
// arguments of tool calls.
func (c *call) response(all *completion) llm.Response {
	res := llm.Response{
		Text: string(all.text), CallInfo: llm.CallInfo{FinishReason: all.finish, Model: all.model, Endpoint: c.model.base, RequestID: c.requestID(all.id)}, Reasoning: string(all.reasoning), Usage: all.usage, Warnings: c.warnings,
	}
	cached := max(all.usage.CachedTokens, all.cached) // some endpoints leave these out of the input tokens
	if res.Usage.InputTokens > 0 && isCut(&c.req, res.Usage.InputTokens+cached) {
		c.warn(cutPrompt)
		res.Warnings = c.warnings
	}
	res.Usage.CachedTokens = min(res.Usage.CachedTokens, res.Usage.InputTokens)
	res.Usage.ReasoningTokens = min(res.Usage.ReasoningTokens, res.Usage.OutputTokens)
	if !knownFinish[res.FinishReason] {
		res.FinishReason = c.sanitize(res.FinishReason)
	}
	if len(all.refusal) > 0 {
		res.Refusal = c.sanitize(string(all.refusal))
	}
	if res.Model != c.model.name {
		res.Model = c.sanitize(res.Model)
	}
	for i := range all.calls {
		t := &all.calls[i]
		res.ToolCalls = append(res.ToolCalls, llm.ToolCall{ID: c.sanitize(string(t.id)), Name: c.sanitize(string(t.name)), Arguments: string(t.arguments)})
	}
	return res
}

// requestIDHeaders hold the provider's ID of a request: those of OpenAI and most others,
// Anthropic, Azure and Amazon.
var requestIDHeaders = [...]string{"X-Request-Id", "Request-Id", "Apim-Request-Id", "X-Amzn-Requestid"}

// requestID returns the provider's ID of the request: that of a header, else id, which
// the body of the reply has.
func (c *call) requestID(id string) string {
	for _, name := range requestIDHeaders {
		if value := strings.TrimSpace(c.reply.Header.Get(name)); value != "" {
			id = value
			break
		}
	}
	return c.sanitize(id)
}

// knownFinish holds the finish reasons of the API.
var knownFinish = map[string]bool{"": true, "stop": true, "length": true, "tool_calls": true, "function_call": true, "content_filter": true}

// checked refuses a response that is empty, unless its finish reason says why it
// is: the same call would be truncated, filtered or refused again.
func (c *call) checked(res llm.Response) (llm.Response, error) {
	switch callinfo.FinishOf(&res) {
	case callinfo.Truncated, callinfo.Filtered, callinfo.Refused:
		return res, nil
	}
	if strings.TrimSpace(res.Text) == "" && len(res.ToolCalls) == 0 {
		what := "neither text nor tool calls"
		if res.Reasoning != "" {
			what = "reasoning without an answer"
		}
		return llm.Response{}, c.empty(res, what)
	}
	return res, nil
}

func (c *call) empty(res llm.Response, what string) error {
	if res.FinishReason != "" {
		what += fmt.Sprintf(", finish reason %q", res.FinishReason)
	}
	if c.format.form < noForm { // some servers accept a response_format and then answer with nothing
		what += "; if all structured answers are empty, set structuredOutput to prompt"
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
