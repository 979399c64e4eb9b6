package openai

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/runteam/runteam/llm"
)

// streamFactor bounds what a stream may send in all, as a multiple of the limit
// of a reply: a chunk of a few characters takes some 300 bytes.
const streamFactor = 128

// stream reads a stream to its end. Only a finish reason makes a reply
// complete, since servers and proxies also end a stream that broke.
func (c *call) stream(in *bufio.Reader, emit func(llm.Delta) error) (llm.Response, error) {
	s := &events{call: c, in: in, left: int64(c.model.maxReply)*streamFactor + envelope}
	all := &completion{limit: c.model.maxReply}
	for {
		data, err := s.next()
		if err == nil {
			err = c.chunk(data, s, all, emit)
			if err == nil {
				continue
			}
		} else if all.finish != "" && !deliberate(err) {
			err = io.EOF // complete, whatever came after: no usage, no [DONE], a broken connection
		}
		switch {
		case !errors.Is(err, io.EOF):
			return llm.Response{}, spent(err, all.usage)
		case all.finish != "":
			return c.checked(c.response(all))
		case !all.choices && s.done:
			return llm.Response{}, c.empty(c.response(all), "no choices")
		}
		return llm.Response{}, spent(c.cut("the stream ended without a finish reason", nil), all.usage)
	}
}

// deliberate reports whether an endpoint itself said that the reply failed.
func deliberate(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	return ok && e.Kind != llm.Cut
}

// spent adds to an error what was counted so far.
func spent(err error, u llm.Usage) error {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		e.Usage = u
	}
	return err
}

// chunk adds one event to the reply, and emits the text that it brings.
func (c *call) chunk(data []byte, s *events, all *completion, emit func(llm.Delta) error) error {
	if s.failed {
		said := parseErrorBody(data)
		return c.failure(&said, all.usage)
	}
	if data[0] == '[' { // as Gemini writes errors
		if said, err := parseError(data); err == nil && said.message != "" {
			return c.failure(&said, all.usage)
		}
	}
	before := len(all.text)
	if err := c.decode.decode(data, all, true); err != nil {
		switch {
		case s.err != nil:
			return s.err // half a line is no data
		case errors.Is(err, errTooLarge):
			return c.tooLarge()
		case errors.Is(err, errUsage), errors.Is(err, errTools):
			return c.bad(err.Error())
		}
		return c.bad("a line of the stream is not JSON of a chat completion")
	}
	if all.failure != nil {
		return c.failure(all.failure, all.usage)
	}
	if emit == nil || len(all.text) == before {
		return nil
	}
	c.emitted = true
	if err := emit(llm.Delta{Text: string(all.text[before:]), Attempt: 1}); err != nil {
		return &emitError{err}
	}
	return nil
}

// events reads the data of a stream of events. Comments, other fields and empty
// lines are skipped.
type events struct {
	call   *call
	in     *bufio.Reader
	left   int64  // how many bytes the stream may still have
	line   []byte // the current line
	failed bool   // the current event is of the type "error"
	done   bool   // [DONE] was seen
	err    error  // what ended the stream after the current line
}

// next returns the data of the next event, which is valid until the next call.
// At the end of the stream it returns io.EOF.
func (s *events) next() ([]byte, error) {
	s.failed = false
	for s.err == nil {
		s.err = s.read()
		if s.err != nil && !errors.Is(s.err, io.EOF) {
			break
		}
		line := bytes.TrimSpace(s.line)
		if name, ok := bytes.CutPrefix(line, []byte("event:")); ok {
			s.failed = string(bytes.TrimSpace(name)) == "error"
			continue
		}
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		data = bytes.TrimSpace(data)
		switch {
		case !ok || len(data) == 0:
		case string(data) == "[DONE]":
			s.done, s.err = true, io.EOF
		default:
			return data, nil
		}
	}
	return nil, s.err
}

// read reads the next line, or as much of it as there is.
func (s *events) read() error {
	s.line = s.line[:0]
	for {
		piece, err := s.in.ReadSlice('\n')
		s.line = append(s.line, piece...)
		s.left -= int64(len(piece))
		switch {
		case len(s.line) > s.call.model.maxReply+envelope, s.left < 0:
			return s.call.tooLarge()
		case err == nil, errors.Is(err, io.EOF):
			return err
		case !errors.Is(err, bufio.ErrBufferFull):
			return s.call.cut("the connection broke", err)
		}
	}
}
