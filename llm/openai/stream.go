package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/llm"
)

// streamFactor bounds what a stream may send in all, as a multiple of the limit
// of a reply: a chunk of a few characters takes some 300 bytes.
const streamFactor = 128

// stream reads a stream to its end. A finish reason makes a reply complete, since servers and proxies
// also end a stream that broke; so does [DONE] after a text or whole calls, since some servers send no reason.
func (p *replyReader) stream(in *bufio.Reader) (llm.Response, error) {
	maxReply := p.report.model.maxReply
	s := &events{report: p.report, in: in, left: int64(maxReply)*streamFactor + envelope}
	all := p.newCompletion()
	for {
		data, err := s.next()
		if err == nil {
			err = p.chunk(data, s, all)
			if err == nil {
				continue
			}
		} else if all.finish != "" && !deliberate(err) {
			err = io.EOF // complete, whatever came after: no usage, no [DONE], a broken connection
		}
		switch {
		case !errors.Is(err, io.EOF):
			return llm.Response{}, spent(err, all.tokens.usage())
		case all.finish != "", s.done && all.isAnswer():
			return p.complete(all)
		case !all.choices && s.done:
			return llm.Response{}, p.empty(p.response(all), "no choices")
		}
		return llm.Response{}, spent(p.report.cut("the stream ended without a finish reason", nil), all.tokens.usage())
	}
}

// isAnswer reports whether a reply without a finish reason has what a whole reply has.
func (c *completion) isAnswer() bool {
	calls := &c.calls
	if len(calls.list) == 0 {
		calls = &c.beside
	}
	for _, t := range calls.finished() {
		if len(t.name) == 0 || len(t.arguments) > 0 && !json.Valid(unwrapped(t.arguments)) {
			return false
		}
	}
	return len(calls.list) > 0 || len(bytes.TrimSpace(c.text)) > 0
}

// deliberate reports whether an endpoint itself said that the reply failed.
func deliberate(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	return ok && e.Kind != callfault.Cut
}

// spent adds to an error what was counted so far.
func spent(err error, u llm.Usage) error {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		e.Usage = u
	}
	return err
}

// chunk adds one event to the reply, and emits the text that it brings.
func (p *replyReader) chunk(data []byte, s *events, all *completion) error {
	if s.failed {
		said := parseErrorBody(data)
		return p.failure(&said, all.tokens.usage())
	}
	if data[0] == '[' { // as Gemini writes errors
		if said, err := parseError(data); err == nil && said.message != "" {
			return p.failure(&said, all.tokens.usage())
		}
	}
	before := len(all.text)
	if err := p.decode.add(data, all, true); err != nil {
		switch {
		case s.err != nil: // half a line, whose choice may be whole
			if err := p.emitFrom(all, before); err != nil {
				return err
			}
			return s.err
		case errors.Is(err, errTooLarge):
			return p.report.tooLarge()
		case errors.Is(err, errUsage), errors.Is(err, errTools), errors.Is(err, errName):
			return p.report.bad(err.Error())
		}
		return p.report.bad("a line of the stream is not JSON of a chat completion")
	}
	if all.failure != nil {
		return p.failure(all.failure, all.tokens.usage())
	}
	if p.first.IsZero() && all.hasBegun() {
		p.first = time.Now()
	}
	return p.emitFrom(all, before)
}

// emitFrom emits the text after its first n bytes.
func (p *replyReader) emitFrom(all *completion, n int) error {
	if p.emit == nil || len(all.text) == n {
		return nil
	}
	p.emitted = true
	if err := p.emit(llm.Delta{Text: string(all.text[n:]), Attempt: 1}); err != nil {
		return &emitError{err}
	}
	return nil
}
