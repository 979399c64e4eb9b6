package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"

	"github.com/runteam/runteam/llm"
)

const (
	envelope = 64 << 10 // what a reply may hold beside its text, in bytes
	maxFault = 64 << 10 // how much of an error's body is read
)

// errTaken ends go-openai's part of a call: it makes the request, and this
// package reads the reply, which is then in call.reply.
var errTaken = errors.New("the reply is read elsewhere")

// A call is one request and its reply. As the HTTP client of go-openai it adds
// to the request what that leaves out, and keeps the reply for itself.
type call struct {
	model    *Model
	req      llm.Request
	streamed bool     // the request asks for a stream
	changes  changes  // how the request differs from the usual form
	warnings []string // what was left out of the request or changed
	format   format   // the JSON that the request asks for
	refusal  *refusal // the error, if it may refuse a part of the request; else nil
	emitted  bool     // a part of the reply was emitted
	reply    *http.Response
	decode   decoder
}

// Do sends r, patched, and keeps a successful reply. It always returns an error.
func (c *call) Do(r *http.Request) (*http.Response, error) {
	if err := c.patch(r); err != nil {
		return nil, err
	}
	c.model.sign(r)
	res, err := c.model.client.Do(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode < 200 || res.StatusCode >= 300 {
		defer res.Body.Close()
		return nil, c.refused(r.Context(), res)
	}
	c.reply = res
	return nil, errTaken
}

// patch adds to the body what go-openai cannot send: the messages, which it would encode
// twice, a temperature of zero, and settings that it refuses by the name of the model.
func (c *call) patch(r *http.Request) error {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	body := make(map[string]json.RawMessage)
	if err := json.Unmarshal(raw, &body); err != nil {
		return err
	}
	set := func(key string, value any) {
		if err == nil {
			body[key], err = json.Marshal(value)
		}
	}
	set("model", c.model.name)
	set("messages", c.messages())
	c.writeSettings(set)
	if format := c.responseFormat(); format != nil {
		set("response_format", format)
	}
	if err != nil {
		return c.model.fault(llm.BadRequest, "the request cannot be written as JSON: is a setting not a number?")
	}
	raw = join(body)
	r.Body = io.NopCloser(bytes.NewReader(raw))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
	r.ContentLength = int64(len(raw))
	return nil
}

// join returns the JSON object with these members, whose names need no escapes.
// json.Marshal would check and copy each value once more.
func join(members map[string]json.RawMessage) []byte {
	size := len("{}")
	for name, value := range members {
		size += len(name) + len(`"":,`) + len(value)
	}
	object := append(make([]byte, 0, size), '{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			object = append(object, ',')
		}
		object = append(object, '"')
		object = append(object, name...)
		object = append(object, '"', ':')
		object = append(object, members[name]...)
	}
	return append(object, '}')
}

// A message is one message of a request.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// sign adds the query and the headers, and with them the key.
func (m *Model) sign(r *http.Request) {
	r.URL.RawQuery = m.query
	switch {
	case m.key == (Key{}):
	case m.azure:
		r.Header.Set("Api-Key", m.key.secret())
	default:
		r.Header.Set("Authorization", "Bearer "+m.key.secret())
	}
	maps.Copy(r.Header, m.headers)
}

// byteOrderMark begins the texts of some servers. RFC 8259, section 8.1, lets a
// reader ignore it before JSON; the HTML standard, section 9.2.6, before a stream of events.
const byteOrderMark = "\ufeff"

// isEvents reports whether a reply is a stream of events, by how it begins or, if
// that does not tell, by its type: servers label either form as the other. It
// skips a byte order mark and white space.
func isEvents(h http.Header, in *bufio.Reader) bool {
	for range envelope {
		start, err := in.Peek(1)
		if err != nil {
			break
		}
		switch b := start[0]; {
		case b <= ' ':
			_, _ = in.Discard(1)
			continue
		case b == byteOrderMark[0]:
			if start, _ = in.Peek(len(byteOrderMark)); string(start) == byteOrderMark {
				_, _ = in.Discard(len(byteOrderMark))
				continue
			}
		case b == '{', b == '[', b == '<':
			return false
		case b == ':':
			return true
		case b == 'd', b == 'e':
			start, _ = in.Peek(len("data:"))
			if string(start) == "data:" || string(start) == "event" {
				return true
			}
		}
		return isEventType(h)
	}
	return isEventType(h)
}

// isEventType reports whether the type of a reply is that of a stream of events.
func isEventType(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && kind == "text/event-stream"
}

// read returns the body of a reply in one piece, within the limit.
func (c *call) read(in io.Reader, announced int64) ([]byte, error) {
	limit := int64(c.model.maxReply) + envelope
	if announced > limit {
		return nil, c.tooLarge()
	}
	var body bytes.Buffer
	if announced > 0 {
		body.Grow(int(announced) + bytes.MinRead)
	}
	_, err := body.ReadFrom(io.LimitReader(in, limit+1))
	switch {
	case int64(body.Len()) > limit:
		return nil, c.tooLarge()
	case err != nil:
		return nil, c.cut("the connection broke", err)
	}
	return body.Bytes(), nil
}

// whole reads a reply in one piece.
func (c *call) whole(in io.Reader, announced int64) (llm.Response, error) {
	body, err := c.read(in, announced)
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
			return llm.Response{}, c.failure(&said, llm.Usage{})
		}
		what = "not a JSON object"
	}
	if what != "" {
		return llm.Response{}, c.bad(what)
	}
	all := completion{limit: c.model.maxReply}
	if err := c.decode.decode(body, &all, false); err != nil {
		return llm.Response{}, c.unreadable(err)
	}
	switch {
	case all.failure != nil:
		return llm.Response{}, c.failure(all.failure, all.usage)
	case !all.choices:
		return llm.Response{}, c.empty(c.response(&all), "no choices")
	}
	return c.checked(c.response(&all))
}

// unreadable returns the error of a call for one of a decoder.
func (c *call) unreadable(err error) error {
	switch {
	case errors.Is(err, errTooLarge):
		return c.tooLarge()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return c.cut("the JSON ends half-way", nil)
	case errors.Is(err, errForm), errors.Is(err, errUsage), errors.Is(err, errTools):
		return c.bad(err.Error())
	}
	return c.bad("not JSON: " + c.sanitize(err.Error()))
}

// bad returns the error of a reply that cannot be used.
func (c *call) bad(message string) error {
	e := c.model.fault(llm.BadResponse, message)
	e.Status = http.StatusOK
	return e
}

// cut is a reply that ended too early. Its status is that of the reply.
func (c *call) cut(message string, err error) error {
	e := c.model.fault(llm.Cut, message)
	e.Status, e.Err = http.StatusOK, cause(err)
	return e
}
