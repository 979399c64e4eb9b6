package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/runteam/runteam/llm"
)

// collect reads a stream to its end. Only a finish reason makes a reply
// complete: go-openai reports a connection that broke as the end.
func (c *call) collect(stream *openai.ChatCompletionStream, emit func(llm.Delta) error) (llm.Response, error) {
	r := &reply{call: c, emit: emit}
	for {
		line, err := stream.RecvRaw()
		if err == nil {
			err = r.add(line)
			if err == nil {
				continue
			}
		} else if r.res.FinishReason != "" && !deliberate(err) {
			err = io.EOF // complete, whatever came after: no usage, no [DONE], a broken connection
		}
		if !errors.Is(err, io.EOF) {
			return llm.Response{}, r.failed(err)
		}
		break
	}
	return r.end()
}

// deliberate reports whether an endpoint itself said that the reply failed.
func deliberate(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	return ok && e.Kind != llm.Cut
}

// reply is a response that grows.
type reply struct {
	call  *call
	emit  func(llm.Delta) error
	res   llm.Response
	text  strings.Builder
	size  int // of the text and the arguments of tool calls
	calls []llm.ToolCall
	any   bool // a choice was seen
}

// add takes one line of data.
func (r *reply) add(line []byte) error {
	var chunk openai.ChatCompletionStreamResponse
	if err := json.Unmarshal(line, &chunk); err != nil {
		e := r.call.model.fault(llm.BadResponse, "a line of the stream is not JSON of a chat completion")
		e.Status = http.StatusOK
		return e
	}
	if chunk.Model != "" {
		r.res.Model = llm.OneLine(chunk.Model)
	}
	if chunk.Usage != nil {
		r.res.Usage = usage(chunk.Usage)
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue // one was asked for
		}
		r.any = true
		if reason := finish(choice.FinishReason); reason != "" {
			r.res.FinishReason = reason
		}
		if err := r.grow(choice.Delta); err != nil {
			return err
		}
	}
	return nil
}

// grow adds what one choice brought.
func (r *reply) grow(d openai.ChatCompletionStreamChoiceDelta) error {
	text := d.Content + d.Refusal
	r.size += len(text)
	for _, t := range d.ToolCalls {
		r.size += len(t.Function.Name) + len(t.Function.Arguments)
	}
	if r.size > r.call.model.maxReply {
		return r.call.tooLarge()
	}
	for _, t := range d.ToolCalls {
		if err := r.tool(t); err != nil {
			return err
		}
	}
	if text == "" {
		return nil
	}
	r.text.WriteString(text)
	if err := r.emit(llm.Delta{Text: text, Attempt: 1}); err != nil {
		return &emitError{err}
	}
	return nil
}

// maxTools bounds the tool calls of one reply.
const maxTools = 128

// tool adds a piece of a tool call: a new index opens one, an old one adds to its arguments.
func (r *reply) tool(t openai.ToolCall) error {
	i := len(r.calls)
	switch {
	case t.Index != nil:
		i = *t.Index
	case t.ID == "" && i > 0:
		i--
	}
	if i < 0 || i >= maxTools {
		e := r.call.model.fault(llm.BadResponse, fmt.Sprintf("tool call number %d", i))
		e.Status = http.StatusOK
		return e
	}
	for len(r.calls) <= i {
		r.calls = append(r.calls, llm.ToolCall{})
	}
	c := &r.calls[i]
	c.ID += t.ID
	c.Name += t.Function.Name
	c.Arguments += t.Function.Arguments
	return nil
}

// end returns the response of a stream that ended.
func (r *reply) end() (llm.Response, error) {
	r.res.Text, r.res.ToolCalls = r.text.String(), r.calls
	switch {
	case r.res.FinishReason != "":
		return r.call.checked(r.res)
	case !r.any && r.call.done:
		return llm.Response{}, r.call.empty(r.res, "no choices")
	}
	return llm.Response{}, r.failed(r.call.cut("the stream ended without a finish reason", nil))
}

// failed adds to an error what was counted so far.
func (r *reply) failed(err error) error {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		e.Usage = r.res.Usage
	}
	return err
}

// events is the body of a stream with nothing in it but the lines of data:
// comments, other fields and blank lines are gone (go-openai gives up after a
// number of them), an error in the place of data is an error, and no line is
// longer than the limit.
type events struct {
	call *call
	body io.Closer
	in   *bufio.Reader
	line []byte // what is left of the current line
	name string // the type of the current event
	err  error
}

func (s *events) Close() error { return s.body.Close() }

func (s *events) Read(p []byte) (int, error) {
	for len(s.line) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.next()
	}
	n := copy(p, s.line)
	s.line = s.line[n:]
	return n, nil
}

// next reads one line and keeps it if it is data.
func (s *events) next() {
	raw, err := s.read()
	raw = bytes.TrimSpace(raw)
	if err != nil {
		s.err = err
		if !errors.Is(err, io.EOF) {
			return
		}
	}
	if name, ok := bytes.CutPrefix(raw, []byte("event:")); ok {
		s.name = string(bytes.TrimSpace(name))
		return
	}
	data, ok := bytes.CutPrefix(raw, []byte("data:"))
	data = bytes.TrimSpace(data)
	if !ok || len(data) == 0 {
		return
	}
	switch {
	case string(data) == "[DONE]":
		s.call.done = true
	case s.err != nil && !json.Valid(data):
		return // half a line is no data
	case s.name == "error" || bytes.Contains(data, []byte(`"error"`)):
		if e := s.call.errorIn(data, s.name == "error"); e != nil {
			s.err = e
			return
		}
		data = withoutError(data)
	}
	s.line = append(append([]byte("data: "), data...), '\n')
	s.name = ""
}

// withoutError removes {"error": null}, for which go-openai would drop the line.
func withoutError(data []byte) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return data
	}
	delete(members, "error")
	if clean, err := json.Marshal(members); err == nil {
		return clean
	}
	return data
}

// read returns the next line, or as much of it as there is.
func (s *events) read() ([]byte, error) {
	var line []byte
	for {
		piece, err := s.in.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case len(line) > s.call.model.maxReply+envelope:
			return nil, s.call.tooLarge()
		case err == nil:
			return line, nil
		case errors.Is(err, io.EOF):
			return line, io.EOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, s.call.cut("the connection broke", err)
		}
	}
}
