package openai

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/callinfo"
	"github.com/runteam/runteam/internal/membudget"
	"github.com/runteam/runteam/llm"
)

const (
	envelope     = 64 << 10 // bytes that a reply may have in addition to its text
	maxErrorBody = 64 << 10 // bytes that are read of an error
)

// An emitError is what the caller's emit returned.
type emitError struct{ err error }

func (e *emitError) Error() string { return e.err.Error() }

// attempt sends a request and reads its reply. accepted reports whether the endpoint took
// the request.
func (r *request) attempt(ctx context.Context, emit func(llm.Delta) error) (res llm.Response, accepted bool, err error) {
	begun := time.Now()
	sent, err := r.send(ctx)
	if err != nil {
		return res, false, err
	}
	defer sent.Body.Close()
	report := &reporter{model: r.model, clean: newSanitizer(r.model, &r.Request)}
	if sent.StatusCode < 200 || sent.StatusCode >= 300 {
		return res, false, report.ofStatus(ctx, r, sent)
	}
	ctx, giveBack := membudget.Within(ctx, membudget.Attempt)
	defer giveBack()
	in := bufio.NewReader(sent.Body)
	p := &replyReader{request: r, report: report, header: sent.Header, emit: emit, begun: begun}
	if isEvents(sent.Header, in) { // some proxies always stream
		res, err = p.stream(bufio.NewReader(membudget.Events(ctx, in)))
		return res, true, err
	}
	res, err = p.whole(membudget.Reader(ctx, in), sent.ContentLength)
	if err == nil && emit != nil && res.Text != "" {
		if err := emit(llm.Delta{Text: res.Text, Attempt: 1}); err != nil {
			return llm.Response{}, true, &emitError{err}
		}
	}
	return res, true, err
}

// A replyReader reads the reply to one request.
type replyReader struct {
	request *request
	report  *reporter
	header  http.Header
	emit    func(llm.Delta) error // nil for a request without a stream
	emitted bool                  // a part of the reply was emitted
	begun   time.Time             // the request
	first   time.Time             // the first part of a reply that is streamed; zero before it
	decode  completionReader
}

// read returns the body of a reply in one piece, within the limit.
func (p *replyReader) read(in io.Reader, announced int64) ([]byte, error) {
	limit := int64(p.report.model.maxReply) + envelope
	if announced > limit {
		return nil, p.report.tooLarge()
	}
	var body bytes.Buffer
	if announced > 0 {
		body.Grow(int(announced) + bytes.MinRead)
	}
	_, err := body.ReadFrom(io.LimitReader(in, limit+1))
	switch {
	case int64(body.Len()) > limit:
		return nil, p.report.tooLarge()
	case err != nil:
		return nil, p.report.unread(err)
	}
	return body.Bytes(), nil
}

// whole reads a reply in one piece.
func (p *replyReader) whole(in io.Reader, announced int64) (llm.Response, error) {
	body, err := p.read(in, announced)
	if err != nil {
		return llm.Response{}, err
	}
	body = bytes.TrimSpace(body)
	what := ""
	switch {
	case len(body) == 0:
		what = "the body is empty"
	case body[0] == '<':
		what = "HTML instead of JSON"
	case body[0] != '{':
		if said, err := parseError(body); err == nil && said.message != "" {
			return llm.Response{}, p.failure(&said, llm.Usage{})
		}
		what = "not a JSON object"
	}
	if what != "" {
		return llm.Response{}, p.report.bad(what)
	}
	all := p.newCompletion()
	if err := p.decode.add(body, all, false); err != nil {
		return llm.Response{}, p.unreadable(err)
	}
	switch {
	case all.failure != nil:
		return llm.Response{}, p.failure(all.failure, all.tokens.usage())
	case !all.choices:
		return llm.Response{}, p.empty(p.response(all), "no choices")
	}
	return p.complete(all)
}

// newCompletion returns the reply before anything of it has arrived.
func (p *replyReader) newCompletion() *completion {
	tools := toolCalls{offered: p.request.Tools}
	return &completion{limit: p.report.model.maxReply, calls: tools, beside: tools}
}

// complete returns the response of a reply that has arrived.
func (p *replyReader) complete(all *completion) (llm.Response, error) {
	res, err := p.checked(p.response(all))
	if err != nil {
		return res, err
	}
	res.Provider, err = p.providerData(all)
	if err != nil {
		return llm.Response{}, err
	}
	return res, nil
}

// providerData returns what the provider added to a reply, and the IDs that it gave its calls. Without
// calls, nothing of it must come back, so a reply that has too much of it is kept without it.
func (p *replyReader) providerData(all *completion) (*llm.ProviderData, error) {
	m := p.report.model
	d := &llm.ProviderData{Endpoint: m.base, Model: m.name, Message: all.members.object()}
	excess := all.members.excess
	for i := range all.calls.list {
		t := &all.calls.list[i]
		c := llm.ProviderCall{Members: t.members.object(), Function: t.function.object()}
		if id := string(t.id); isCallID(id) {
			c.ID = id
			if isShortID(id) {
				m.shortIDs.Store(true)
			}
		}
		d.Calls = append(d.Calls, c)
		excess = excess || t.members.excess || t.function.excess
	}
	switch size := d.Size(); {
	case excess || size > llm.MaxProviderData:
		if len(d.Calls) == 0 {
			return nil, nil
		}
		e := p.report.error(callfault.TooLarge, fmt.Sprintf("what the endpoint adds to the message and its tool calls beyond the protocol, and may need back, is above %d bytes", llm.MaxProviderData))
		e.Usage = all.tokens.usage()
		return nil, e
	case size == 0:
		return nil, nil
	}
	return d, nil
}

// unreadable returns the error of a call for one of the decoder.
func (p *replyReader) unreadable(err error) error {
	switch {
	case errors.Is(err, errTooLarge):
		return p.report.tooLarge()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return p.report.cut("the JSON ends half-way", nil)
	case errors.Is(err, errForm), errors.Is(err, errUsage), errors.Is(err, errTools), errors.Is(err, errName):
		return p.report.bad(err.Error())
	}
	return p.report.bad("not JSON: " + p.report.clean.sanitize(err.Error()))
}

// failure returns the error that a reply with status 200 holds. One that ends a stream of
// which a part was emitted refuses no part of the request.
func (p *replyReader) failure(said *errorBody, u llm.Usage) error {
	e, status := p.report.ofBody(said, u)
	if p.emitted {
		return e
	}
	return asRefusal(e, status, said, p.report.clean)
}

// response converts a reply. All of it is sanitized except for the text, the arguments of
// tool calls, which get the form of the tool's own schema, and the names of tools that the
// request offers.
func (p *replyReader) response(all *completion) llm.Response {
	clean, m := p.report.clean, p.report.model
	if len(all.calls.list) == 0 {
		all.calls = all.beside
	}
	clean.addProviderData(all.members.object())
	for i := range all.calls.list {
		clean.addProviderData(all.calls.list[i].members.object())
		clean.addProviderData(all.calls.list[i].function.object())
	}
	res := llm.Response{
		Text: string(all.text), Reasoning: string(all.apart.text()), Usage: all.tokens.usage(),
		CallInfo: llm.CallInfo{FinishReason: all.finish, Model: all.model, Endpoint: m.base, RequestID: clean.sanitize(requestID(p.header, all.id))},
	}
	if !p.first.IsZero() {
		res.FirstTokenMs = max(1, p.first.Sub(p.begun).Milliseconds())
	}
	if all.tokens.prompt > 0 && isCut(&p.request.Request, res.Usage.InputTokens+all.tokens.cached) { // some endpoints leave the cached ones out
		p.request.warn(cutPrompt)
	}
	res.Warnings = p.request.warnings
	res.Usage.CachedTokens = min(res.Usage.CachedTokens, res.Usage.InputTokens)
	res.Usage.ReasoningTokens = min(res.Usage.ReasoningTokens, res.Usage.OutputTokens)
	if !knownFinish[res.FinishReason] {
		res.FinishReason = clean.sanitize(res.FinishReason)
	}
	if len(all.refusal) > 0 {
		res.Refusal = clean.sanitize(string(all.refusal))
	}
	if res.Model != m.name {
		res.Model = clean.sanitize(res.Model)
	}
	calls := all.calls.finished()
	for i := range calls {
		t := &calls[i]
		name := string(t.name)
		if !all.calls.offers(t.name, nil) {
			if short, ok := bytes.CutPrefix(t.name, []byte("functions.")); ok && all.calls.offers(short, nil) { // the namespace of gpt-oss and Kimi
				name = string(short)
			} else {
				name = clean.sanitize(name)
			}
		}
		arguments := p.request.originalArguments(name, string(unwrapped(t.arguments)))
		res.ToolCalls = append(res.ToolCalls, llm.ToolCall{ID: clean.sanitize(string(t.id)), Name: name, Arguments: arguments})
	}
	return res
}

// requestIDHeaders hold the provider's ID of a request: those of OpenAI and most others,
// Anthropic, Azure and Amazon.
var requestIDHeaders = [...]string{"X-Request-Id", "Request-Id", "Apim-Request-Id", "X-Amzn-Requestid"}

// requestID returns the provider's ID of the request: that of a header, else id, which
// the body of the reply has.
func requestID(h http.Header, id string) string {
	for _, name := range requestIDHeaders {
		if value := strings.TrimSpace(h.Get(name)); value != "" {
			return value
		}
	}
	return id
}

// knownFinish holds the finish reasons of the API.
var knownFinish = map[string]bool{"": true, "stop": true, "length": true, "tool_calls": true, "function_call": true, "content_filter": true}

// checked refuses a response that is empty, unless its finish reason says why it
// is: the same call would be truncated, filtered or refused again.
func (p *replyReader) checked(res llm.Response) (llm.Response, error) {
	switch callinfo.FinishOf(&res) {
	case callinfo.Truncated, callinfo.Filtered, callinfo.Refused:
		return res, nil
	}
	if strings.TrimSpace(res.Text) == "" && len(res.ToolCalls) == 0 {
		what := "neither text nor tool calls"
		if res.Reasoning != "" {
			what = "reasoning without an answer"
		}
		return llm.Response{}, p.empty(res, what)
	}
	return res, nil
}

func (p *replyReader) empty(res llm.Response, what string) error {
	if res.FinishReason != "" {
		what += fmt.Sprintf(", finish reason %q", res.FinishReason)
	}
	if p.request.format.form < noForm { // some servers accept a response_format and then answer with nothing
		what += "; if all structured answers are empty, set structuredOutput to prompt"
	}
	e := p.report.error(callfault.Empty, what)
	e.Usage = res.Usage
	return e
}
