package openai

import (
	"bytes"
	"errors"
	"io"

	"github.com/runteam/runteam/llm"
)

// Errors of a completionReader.
var (
	errForm     = errors.New("JSON of another form than a chat completion")
	errUsage    = errors.New("the token counts are negative")
	errTools    = errors.New("more than 128 tool calls, or a tool call with an index beyond that")
	errTooLarge = errors.New("the reply is above the limit")
)

// maxTools bounds the tool calls of one reply.
const maxTools = 128

// A completion is a reply as it arrives: in one piece, or in the chunks of a stream. It has
// only what the runtime uses.
type completion struct {
	limit     int // of text, reasoning and tool calls together, in bytes
	id        string
	model     string
	finish    string
	text      []byte // of the first choice: its content, else its refusal
	refusal   []byte // why the model declined to answer
	reasoning []byte // what the model wrote before its answer
	calls     []toolCall
	usage     llm.Usage
	cached    int        // prompt tokens read from or written to a cache that usage leaves out
	choices   bool       // a choice was seen
	failure   *errorBody // the error in the reply; nil if there is none
}

// A toolCall is a tool call as it arrives.
type toolCall struct {
	index               int // in a stream, the call that it is a piece of; negative if the endpoint does not say
	id, name, arguments []byte
}

// A completionReader reads chat completions. The zero value is ready for use.
type completionReader struct {
	valueReader
	piece   completion          // of the choice that is being read
	apart   [sourceCount][]byte // reasoning of the message that is being read, by source
	kind    []byte              // of the part that is being read
	thought []byte              // reasoning of the part that is being read
}

// The sources of reasoning in a message. A server that uses several repeats the text in
// each, so only the first that has a text counts.
const (
	inReasoningContent = iota // of DeepSeek, Qwen, xAI, llama.cpp and vLLM
	inReasoning               // of OpenRouter, Groq, Ollama and later versions of vLLM
	inDetails                 // reasoning_details of OpenRouter, thinking_blocks of LiteLLM
	inContent                 // parts of the content, of Mistral
	sourceCount
)

// add adds one JSON object to c: a whole reply or, if chunk is set, a chunk
// of a stream. data may be overwritten. The error is one of this file's, an
// error of JSON syntax, or io.ErrUnexpectedEOF if data ends too early.
func (d *completionReader) add(data []byte, c *completion, chunk bool) error {
	d.open(data)
	if d.tokens.PeekKind() != '{' {
		return errForm
	}
	first := true
	err := d.object(func(name []byte) error {
		switch string(name) {
		case "id":
			if kind := d.tokens.PeekKind(); c.id != "" || kind != '"' && kind != '0' {
				return nil
			}
			id, err := d.verbatim()
			c.id = string(id[:min(len(id), maxServerText)])
			return err
		case "model":
			text, err := d.optional(nil)
			if err == nil && len(text) > 0 {
				c.model = string(text[:min(len(text), maxServerText)])
			}
			return err
		case "usage":
			return d.usage(c)
		case "error":
			if kind := d.tokens.PeekKind(); kind == 'n' || kind == 'f' {
				return nil
			}
			raw, err := d.tokens.ReadValue()
			if err == nil && string(raw) != `""` {
				said := parseErrorBody(raw)
				c.failure = &said
			}
			return err
		case "choices":
			return d.array(func() error {
				if !chunk && !first {
					return nil
				}
				first = false
				return d.choice(c, chunk)
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if d.tokens.PeekKind() != 0 {
		return errTrailing
	}
	if _, err := d.tokens.ReadToken(); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

var errTrailing = errors.New("something follows the JSON object")

// choice adds one choice. In a stream, only the first of several counts.
func (d *completionReader) choice(c *completion, chunk bool) error {
	p := &d.piece
	*p = completion{text: p.text[:0], refusal: p.refusal[:0], reasoning: p.reasoning[:0], calls: p.calls[:0]}
	index, pieces := 0, false
	err := d.object(func(name []byte) (err error) {
		switch string(name) {
		case "index":
			index, _, err = d.integer()
			return err
		case "finish_reason":
			text, err := d.optional(nil)
			p.finish = string(text[:min(len(text), maxServerText)])
			return err
		case "message":
			if !pieces { // some servers also send the text so far
				return d.message(p)
			}
		case "delta":
			if chunk && d.tokens.PeekKind() == '{' {
				pieces = true
				p.text, p.refusal, p.calls = p.text[:0], p.refusal[:0], p.calls[:0]
				return d.message(p)
			}
		}
		return nil
	})
	if err != nil || chunk && index != 0 {
		return err
	}
	if chunk && !pieces {
		c.continueWith(p)
	}
	return c.add(p, chunk)
}

// continueWith reduces a choice of a stream with a message instead of a delta to what it
// adds to c. A message that begins with the text so far repeats it; any other message is
// the next piece. Tool calls without an index replace those so far.
func (c *completion) continueWith(p *completion) {
	p.text = bytes.TrimPrefix(p.text, c.text)
	p.refusal = bytes.TrimPrefix(p.refusal, c.refusal)
	p.reasoning = bytes.TrimPrefix(p.reasoning, c.reasoning)
	if len(p.calls) > 0 && p.calls[0].index < 0 {
		c.calls = c.calls[:0]
	}
}

// add adds what one choice brought.
func (c *completion) add(p *completion, chunk bool) error {
	c.choices = true
	if p.finish != "" && p.finish != "null" {
		c.finish = p.finish
	}
	c.text = append(c.text, p.text...)
	if chunk || len(p.text) == 0 {
		c.text = append(c.text, p.refusal...)
	}
	c.refusal = append(c.refusal, p.refusal...)
	c.reasoning = append(c.reasoning, p.reasoning...)
	for i := range p.calls {
		if err := c.addCall(&p.calls[i], chunk); err != nil {
			return err
		}
	}
	size := len(c.text) + len(c.reasoning)
	for i := range c.calls {
		t := &c.calls[i]
		size += len(t.id) + len(t.name) + len(t.arguments)
	}
	if size > c.limit {
		return errTooLarge
	}
	return nil
}

// addCall adds a tool call, or in a stream a piece of one: a new index opens a
// call, a known index continues it.
func (c *completion) addCall(t *toolCall, chunk bool) error {
	i := len(c.calls)
	switch {
	case !chunk:
	case t.index >= 0:
		i = t.index
	case len(t.id) == 0 && i > 0:
		i--
	}
	if i >= maxTools {
		return errTools
	}
	for len(c.calls) <= i {
		c.calls = append(c.calls, toolCall{})
	}
	of := &c.calls[i]
	of.id, of.name, of.arguments = append(of.id, t.id...), append(of.name, t.name...), append(of.arguments, t.arguments...)
	return nil
}

// message reads a message or a delta.
func (d *completionReader) message(p *completion) error {
	for i := range d.apart {
		d.apart[i] = d.apart[i][:0]
	}
	err := d.object(func(name []byte) (err error) {
		switch string(name) {
		case "content":
			d.apart[inContent] = d.apart[inContent][:0]
			p.text, err = d.content(p.text[:0])
		case "refusal":
			p.refusal, err = d.optional(p.refusal[:0])
		case "reasoning_content":
			err = d.reasoning(inReasoningContent)
		case "reasoning":
			err = d.reasoning(inReasoning)
		case "reasoning_details", "thinking_blocks":
			err = d.reasoning(inDetails)
		case "tool_calls":
			if d.tokens.PeekKind() == '[' {
				err = d.array(func() error { return d.toolCall(p) })
			}
		}
		return err
	})
	p.reasoning = p.reasoning[:0]
	for _, text := range d.apart {
		if len(text) > 0 {
			p.reasoning = append(p.reasoning, text...)
			break
		}
	}
	return err
}

// reasoning reads the reasoning of a message from a member of it.
func (d *completionReader) reasoning(source int) (err error) {
	d.apart[source], err = d.texts(d.apart[source][:0])
	return err
}

// texts appends the text of a value of reasoning: a string, an object with the text in
// one of the known members, or a list of these.
func (d *completionReader) texts(text []byte) ([]byte, error) {
	switch d.tokens.PeekKind() {
	case '[':
		err := d.array(func() (err error) {
			text, err = d.texts(text)
			return err
		})
		return text, err
	case '{':
		err := d.object(func(name []byte) (err error) {
			switch string(name) {
			case "text", "thinking", "reasoning", "summary":
				text, err = d.texts(text)
			}
			return err
		})
		return text, err
	}
	return d.optional(text)
}

// content appends a content to a text: a string, a part, or a list of parts and strings.
func (d *completionReader) content(text []byte) ([]byte, error) {
	switch d.tokens.PeekKind() {
	case '[':
		err := d.array(func() (err error) {
			if d.tokens.PeekKind() == '{' {
				text, err = d.part(text)
			} else {
				text, err = d.optional(text)
			}
			return err
		})
		return text, err
	case '{':
		return d.part(text)
	}
	return d.string(text)
}

// part appends the text of a content part of the type "text" or "output_text", or
// without a type. The text of a reasoning part (docs.mistral.ai/capabilities/reasoning)
// goes into d.apart. Other parts, such as the "reference" parts of Mistral
// (docs.mistral.ai/api/#tag/chat), are skipped.
func (d *completionReader) part(text []byte) ([]byte, error) {
	isText, isReasoning, start := true, false, len(text)
	d.thought = d.thought[:0]
	err := d.object(func(name []byte) (err error) {
		switch string(name) {
		case "type":
			d.kind, err = d.optional(d.kind[:0])
			isText = string(d.kind) == "text" || string(d.kind) == "output_text" // the second is OpenAI's Responses API
			isReasoning = string(d.kind) == "thinking" || string(d.kind) == "reasoning"
		case "text":
			text, err = d.optional(text[:start])
		case "thinking", "reasoning", "summary":
			d.thought, err = d.texts(d.thought)
		}
		return err
	})
	if isReasoning {
		d.apart[inContent] = append(append(d.apart[inContent], d.thought...), text[start:]...)
	}
	if !isText {
		text = text[:start]
	}
	return text, err
}

// toolCall reads a tool call.
func (d *completionReader) toolCall(p *completion) error {
	if len(p.calls) >= maxTools {
		return errTools
	}
	t := toolCall{index: -1}
	err := d.object(func(name []byte) (err error) {
		switch string(name) {
		case "index":
			var known bool
			if t.index, known, err = d.integer(); !known {
				t.index = -1
			} else if t.index < 0 {
				err = errTools
			}
		case "id":
			t.id, err = d.verbatim()
		case "function":
			err = d.object(func(name []byte) (err error) {
				switch string(name) {
				case "name":
					t.name, err = d.optional(nil)
				case "arguments":
					t.arguments, err = d.verbatim() // Ollama's own format has an object (docs/api.md of github.com/ollama/ollama)
				}
				return err
			})
		}
		return err
	})
	p.calls = append(p.calls, t)
	return err
}
