package openai

import (
	"bytes"
	"errors"
	"io"
)

// Errors of a completionReader.
var (
	errForm     = errors.New("JSON of another form than a chat completion")
	errUsage    = errors.New("the token counts are negative")
	errTools    = errors.New("more than 128 tool calls")
	errName     = errors.New("a tool call changes its name half-way")
	errTooLarge = errors.New("the reply is above the limit")
)

// A completion is a reply as it arrives: in one piece, or in the chunks of a stream. It has
// only what the runtime uses.
type completion struct {
	limit   int // of text, reasoning and tool calls together, in bytes
	id      string
	model   string
	finish  string
	text    []byte    // of the first choice: its content, else its refusal
	refusal []byte    // why the model declined to answer
	apart   reasoning // what the model wrote before its answer
	calls   toolCalls
	beside  toolCalls // of the last message that came beside a piece; used if no piece had a call
	members members   // of the message
	tokens  counts
	choices bool       // a choice was seen
	failure *errorBody // the error in the reply; nil if there is none
}

// hasBegun reports whether a part of the reply, or of its reasoning, has come.
func (c *completion) hasBegun() bool {
	return len(c.text) > 0 || len(c.apart.text()) > 0 || len(c.calls.list) > 0
}

// A choicePiece is a choice of a reply, or a piece of it.
type choicePiece struct {
	text    []byte
	refusal []byte
	apart   reasoning
	calls   []callPiece
	members rawMembers
	tokens  counts
	used    bool // something was read into it
}

// reset empties the piece and keeps its memory.
func (p *choicePiece) reset() {
	if !p.used {
		return
	}
	p.apart.reset()
	*p = choicePiece{text: p.text[:0], refusal: p.refusal[:0], apart: p.apart, calls: p.calls[:0], members: p.members.reset()}
}

// A completionReader reads chat completions. The zero value is ready for use.
type completionReader struct {
	valueReader
	piece    choicePiece // the delta of the choice that is being read
	beside   choicePiece // its message
	apart    reasoning   // of the message that is being read
	word     []byte      // that was read last: a type, a reason, the name of the model
	thought  []byte      // reasoning of the part that is being read
	thoughts []byte      // the parts of the content with reasoning, as a JSON list without its end
}

// The sources of reasoning in a message.
const (
	inReasoningContent = iota // of DeepSeek, Qwen, xAI, llama.cpp and vLLM
	inReasoning               // of OpenRouter, Groq, Ollama and later versions of vLLM
	inDetails                 // reasoning_details of OpenRouter, thinking_blocks of LiteLLM
	inContent                 // parts of the content, of Mistral
	sourceCount
)

// reasoning is what the model wrote before its answer, by source. A server that uses several repeats
// the text in each, so only the first that has a text counts.
type reasoning [sourceCount][]byte

// text returns the reasoning.
func (r *reasoning) text() []byte {
	for _, text := range r {
		if len(text) > 0 {
			return text
		}
	}
	return nil
}

// size returns the bytes of the longest source.
func (r *reasoning) size() (n int) {
	for _, text := range r {
		n = max(n, len(text))
	}
	return n
}

// reset empties the sources and keeps their memory.
func (r *reasoning) reset() {
	for i := range r {
		r[i] = r[i][:0]
	}
}

// add adds one JSON object to c: a whole reply or, if chunk is set, a chunk
// of a stream. data may be overwritten. The error is one of this file's, an
// error of JSON syntax, or io.ErrUnexpectedEOF if data ends too early.
func (d *completionReader) add(data []byte, c *completion, chunk bool) error {
	d.open(data)
	if d.tokens.PeekKind() != '{' {
		return errForm
	}
	first := true
	err := d.object(func(name []byte) (err error) {
		switch string(name) {
		case "id":
			if kind := d.tokens.PeekKind(); c.id != "" || kind != '"' && kind != '0' {
				return nil
			}
			id, err := d.verbatim(nil)
			c.id = string(id[:min(len(id), maxServerText)])
			return err
		case "model":
			d.word, err = d.optional(d.word[:0])
			if err == nil && len(d.word) > 0 && string(d.word) != c.model {
				c.model = string(d.word[:min(len(d.word), maxServerText)])
			}
			return err
		case "usage":
			return d.usage(&c.tokens)
		case "x_groq": // console.groq.com/docs/api-reference
			return d.within(func(name []byte) error {
				if string(name) == "usage" {
					return d.usage(&c.tokens)
				}
				return nil
			})
		case "error":
			return d.failure(c)
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

// failure reads the error of a reply. null, false and an empty text are none.
func (d *completionReader) failure(c *completion) error {
	if kind := d.tokens.PeekKind(); kind == 'n' || kind == 'f' {
		return nil
	}
	raw, err := d.tokens.ReadValue()
	if err == nil && string(raw) != `""` {
		said := parseErrorBody(raw)
		c.failure = &said
	}
	return err
}

var errTrailing = errors.New("something follows the JSON object")

// choice adds one choice. In a stream, only the first of several counts.
func (d *completionReader) choice(c *completion, chunk bool) error {
	p, beside := &d.piece, &d.beside
	p.reset()
	beside.reset()
	index, hasDelta, hasMessage := 0, false, false
	finish, tokens := "", counts{}
	err := d.object(func(name []byte) (err error) {
		switch string(name) {
		case "index":
			index, _, err = d.integer()
			return err
		case "finish_reason":
			d.word, err = d.optional(d.word[:0])
			finish = string(d.word[:min(len(d.word), maxServerText)])
			return err
		case "usage": // Moonshot, platform.moonshot.ai/docs/api/chat
			return d.usage(&tokens)
		case "message":
			hasMessage = true
			return d.message(beside)
		case "delta":
			if chunk && d.tokens.PeekKind() == '{' {
				hasDelta = true
				return d.message(p)
			}
		}
		return nil
	})
	if err != nil || chunk && index != 0 {
		return err
	}
	c.choices = true
	c.tokens.merge(&tokens)
	c.tokens.merge(&p.tokens)
	c.tokens.merge(&beside.tokens)
	if finish != "" && finish != "null" {
		c.finish = finish
	}
	switch {
	case !chunk:
		return c.add(beside, asWhole)
	case !hasDelta:
		c.continueWith(beside)
		return c.add(beside, asMessage)
	}
	if err := c.add(p, asDelta); err != nil || !hasMessage { // some servers also send the text so far
		return err
	}
	return c.addBeside(beside)
}

// How an object is part of a reply.
type arrival int

const (
	asWhole   arrival = iota // it is the reply
	asDelta                  // it is a piece of the reply, which adds to those before
	asMessage                // it is the message of a stream: what came before may be part of it
)

// continueWith reduces a choice of a stream with a message instead of a delta to what it
// adds to c. A message that begins with the text so far repeats it; any other message is
// the next piece. Tool calls without an index replace those so far, as do equal ones.
func (c *completion) continueWith(p *choicePiece) {
	p.text = bytes.TrimPrefix(p.text, c.text)
	p.refusal = bytes.TrimPrefix(p.refusal, c.refusal)
	for i := range p.apart {
		p.apart[i] = bytes.TrimPrefix(p.apart[i], c.apart[i])
	}
	if len(p.calls) > 0 && (len(p.calls[0].index) == 0 || c.calls.areRepeatedBy(p.calls)) {
		c.calls.reset()
	}
}

// addBeside adds a message that a chunk has beside a delta. What the deltas brought counts, and
// what only the message has: the calls, and at the end the text.
func (c *completion) addBeside(p *choicePiece) error {
	if len(p.calls) > 0 {
		c.beside.reset()
		for i := range p.calls {
			if err := c.beside.add(&p.calls[i], asWhole); err != nil {
				return err
			}
		}
	}
	if c.finish != "" && len(c.text) == 0 {
		c.text = append(c.text, p.text...)
	}
	for name, raw := range p.members.all() {
		if !c.members.has(name) {
			c.members.add(name, raw, asWhole)
		}
	}
	return c.checkSize()
}

// add adds what one choice brought.
func (c *completion) add(p *choicePiece, as arrival) error {
	c.text = append(c.text, p.text...)
	if as != asWhole || len(p.text) == 0 {
		c.text = append(c.text, p.refusal...)
	}
	c.refusal = append(c.refusal, p.refusal...)
	for i := range p.apart {
		c.apart[i] = append(c.apart[i], p.apart[i]...)
	}
	for i := range p.calls {
		if err := c.calls.add(&p.calls[i], as); err != nil {
			return err
		}
	}
	for name, raw := range p.members.all() {
		c.members.add(name, raw, as)
	}
	c.members.excess = c.members.excess || p.members.excess
	return c.checkSize()
}

// checkSize refuses a reply above the limit.
func (c *completion) checkSize() error {
	size := func() int { return len(c.text) + c.apart.size() + c.calls.size + c.beside.size }
	if size() > c.limit {
		c.calls.dropRepeated()
		if size() > c.limit {
			return errTooLarge
		}
	}
	return nil
}

// message reads a message or a delta.
func (d *completionReader) message(p *choicePiece) error {
	d.apart.reset()
	p.reset()
	p.used = true
	err := d.object(func(name []byte) (err error) {
		start := d.tokens.InputOffset()
		switch string(name) {
		case "content":
			d.apart[inContent], d.thoughts = d.apart[inContent][:0], d.thoughts[:0]
			p.text, err = d.content(p.text[:0])
			if len(d.thoughts) > 0 {
				p.members.add([]byte(thoughts), append(d.thoughts, ']'))
			}
		case "refusal":
			p.refusal, err = d.optional(p.refusal[:0])
		case "usage":
			return d.usage(&p.tokens)
		case "reasoning_content":
			err = d.readReasoning(inReasoningContent)
		case "reasoning":
			err = d.readReasoning(inReasoning)
		case "reasoning_details", "thinking_blocks":
			err = d.readReasoning(inDetails)
		case "function_call":
			if d.tokens.PeekKind() == '{' && len(p.calls) == 0 {
				err = d.legacyCall(p)
			}
		case "tool_calls":
			switch d.tokens.PeekKind() {
			case '[':
				p.calls = p.calls[:0] // instead of a function_call
				err = d.array(func() error { return d.toolCall(p) })
			case '{': // some servers write a list of one as its item
				p.calls = p.calls[:0]
				err = d.toolCall(p)
			}
		}
		if err != nil || isOfProtocol(ofMessage, name) {
			return err
		}
		return d.keep(&p.members, name, start)
	})
	p.apart, d.apart = d.apart, p.apart
	return err
}

// readReasoning reads the reasoning of a message from a member of it. It is not needed if a source that
// comes before has a text.
func (d *completionReader) readReasoning(source int) (err error) {
	for _, text := range d.apart[:source] {
		if len(text) > 0 {
			return nil
		}
	}
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
	from := d.tokens.InputOffset()
	err := d.object(func(name []byte) (err error) {
		switch string(name) {
		case "type":
			d.word, err = d.optional(d.word[:0])
			isText = string(d.word) == "text" || string(d.word) == "output_text" // the second is OpenAI's Responses API
			isReasoning = string(d.word) == "thinking" || string(d.word) == "reasoning" || string(d.word) == "redacted_thinking"
		case "text":
			text, err = d.optional(text[:start])
		case "thinking", "reasoning", "summary":
			d.thought, err = d.texts(d.thought)
		}
		return err
	})
	if isReasoning {
		d.apart[inContent] = append(append(d.apart[inContent], d.thought...), text[start:]...)
		separator := byte(',')
		if len(d.thoughts) == 0 {
			separator = '['
		}
		d.thoughts = append(append(d.thoughts, separator), d.since(from)...)
	}
	if !isText {
		text = text[:start]
	}
	return text, err
}
