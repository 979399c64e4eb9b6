package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"

	"github.com/runteam/runteam/llm"
)

const (
	envelope = 64 << 10 // what a reply may hold beside its text, in bytes
	maxFault = 64 << 10 // how much of an error's body is read
)

// errWhole reports a reply in one piece where a stream was asked for; call.body holds it.
var errWhole = errors.New("the reply is not a stream")

// call is one request and its reply. As the HTTP client of go-openai it puts
// into the request what that leaves out, and lets only clean replies through.
type call struct {
	model  *Model
	req    llm.Request
	stream bool
	body   []byte // a reply in one piece
	done   bool   // [DONE] was seen
}

// Do sends r, patched, and returns a reply that go-openai can read, or an error.
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
	if c.stream {
		return c.streamed(res)
	}
	defer res.Body.Close()
	if c.body, err = c.read(res); err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(c.body))
	return res, nil
}

// patch writes into the body what go-openai does not send (a temperature of
// zero) or refuses to (settings that it thinks a model of that name has not).
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
	if c.req.MaxTokens > 0 {
		set(c.model.maxTokens, c.req.MaxTokens)
	}
	if c.req.Temperature != nil {
		set("temperature", *c.req.Temperature)
	}
	if c.req.TopP != nil {
		set("top_p", *c.req.TopP)
	}
	if err == nil {
		raw, err = json.Marshal(body)
	}
	if err != nil {
		return c.model.fault(llm.BadRequest, "the request cannot be written as JSON: is a setting not a number?")
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
	r.ContentLength = int64(len(raw))
	return nil
}

// sign adds the headers, and with them the key.
func (m *Model) sign(r *http.Request) {
	if !m.key.IsZero() {
		r.Header.Set("Authorization", "Bearer "+m.key.secret())
	}
	maps.Copy(r.Header, m.headers)
}

// streamed returns res with a clean body, or errWhole.
func (c *call) streamed(res *http.Response) (*http.Response, error) {
	in := bufio.NewReaderSize(res.Body, 4096)
	if !isEvents(res.Header, in) {
		defer res.Body.Close()
		whole := *res
		whole.Body = io.NopCloser(in)
		body, err := c.read(&whole)
		if err != nil {
			return nil, err
		}
		c.body = body
		return nil, errWhole
	}
	res.Body = &events{call: c, body: res.Body, in: in}
	return res, nil
}

// isEvents reports whether a reply is a stream of events, by its type or, if that lies, by how it begins.
func isEvents(h http.Header, in *bufio.Reader) bool {
	if kind, _, err := mime.ParseMediaType(h.Get("Content-Type")); err == nil && kind == "text/event-stream" {
		return true
	}
	for {
		first, err := in.Peek(1)
		if err != nil {
			return false
		}
		if first[0] > ' ' {
			break
		}
		_, _ = in.Discard(1)
	}
	start, _ := in.Peek(5)
	return bytes.HasPrefix(start, []byte("data:")) || bytes.HasPrefix(start, []byte(":")) || bytes.HasPrefix(start, []byte("event"))
}

// read returns the body of a reply in one piece: JSON, within the limit, and not an error.
func (c *call) read(res *http.Response) ([]byte, error) {
	limit := int64(c.model.maxReply) + envelope
	if res.ContentLength > limit {
		return nil, c.tooLarge()
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	switch {
	case int64(len(body)) > limit:
		return nil, c.tooLarge()
	case err != nil:
		return nil, c.cut("the connection broke", err)
	}
	return body, c.checkJSON(body)
}

// checkJSON refuses what is not a JSON object without an error in it.
func (c *call) checkJSON(body []byte) error {
	body = bytes.TrimSpace(body)
	what := ""
	switch {
	case len(body) == 0:
		what = "the body is empty"
	case body[0] == '<':
		what = "HTML instead of JSON"
	case body[0] != '{':
		what = "not a JSON object"
	}
	if what != "" {
		e := c.model.fault(llm.BadResponse, what)
		e.Status = http.StatusOK
		return e
	}
	var probe json.RawMessage
	if err := json.Unmarshal(body, &probe); err != nil {
		if s, ok := errors.AsType[*json.SyntaxError](err); ok && s.Offset >= int64(len(body)) {
			return c.cut("the JSON ends half-way", nil)
		}
		e := c.model.fault(llm.BadResponse, fmt.Sprintf("not JSON: %s", c.model.clean(c.req, err.Error())))
		e.Status = http.StatusOK
		return e
	}
	if !bytes.Contains(body, []byte(`"error"`)) {
		return nil
	}
	return c.errorIn(body, false)
}

// cut is a reply that ended too early. Its status is that of the reply.
func (c *call) cut(message string, err error) error {
	e := c.model.fault(llm.Cut, message)
	e.Status, e.Err = http.StatusOK, err
	return e
}
