package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/runteam/runteam/internal/membudget"
	"github.com/runteam/runteam/internal/oneline"
)

// maxRedirects bounds the redirects of one request. All of them stay at the origin of the URL.
const maxRedirects = 3

// maxRefusal bounds how much of a response with an error status is read, in bytes.
const maxRefusal = 64 << 10

// client returns an HTTP client for a connection. It sends the headers, to the server's origin only.
func (s *Server) client(c *connection) *http.Client {
	headers := s.origin(headerTransport(s.Headers))
	return s.origin(&sessionTransport{conn: c, client: headers})
}

// origin returns a client that follows redirects at the server's origin only.
func (s *Server) origin(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport: transport,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if first := via[0].URL; r.URL.Scheme != first.Scheme || r.URL.Host != first.Host {
				return fmt.Errorf("redirect to another origin, %s://%s", r.URL.Scheme, r.URL.Host)
			}
			if len(via) >= maxRedirects {
				return errors.New("too many redirects")
			}
			return nil
		},
	}
}

// A headerTransport adds headers to each request.
type headerTransport map[string]string

// RoundTrip sends one request.
func (h headerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// errSessionGone reports a request in a session that the server does not know.
var errSessionGone = errors.New("the server no longer knows the session")

// A statusError is a response with an error status and without a JSON-RPC error.
type statusError struct {
	status int
	text   string // the beginning of the body
}

// Error has the status and the text.
func (e *statusError) Error() string {
	text := fmt.Sprintf("HTTP status %d %s", e.status, http.StatusText(e.status))
	if e.text != "" {
		text += ": " + e.text
	}
	return text
}

// isDenial reports whether the server refuses the credentials.
func (e *statusError) isDenial() bool {
	return e.status == http.StatusUnauthorized || e.status == http.StatusForbidden
}

// withoutRequest returns what happened to a request of HTTP without what the request was. It returns
// any other error as it is.
func withoutRequest(err error) error {
	if refused, ok := errors.AsType[*statusError](err); ok {
		return refused
	}
	if errors.Is(err, errSessionGone) {
		return errSessionGone
	}
	return err
}

// A sessionTransport keeps what happens to one request from ending the session of all: an error
// status is the error of its request, and the stream of notifications may end.
type sessionTransport struct {
	conn   *connection
	client *http.Client // without this transport
}

// RoundTrip sends one request.
func (t *sessionTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") == "" {
		return t.listen(r), nil
	}
	res, err := t.client.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if r.Method != http.MethodPost {
		res.Body = newEventBody(res.Body)
		return res, nil
	}
	scoped := context.Background() // of a session, whose first call may have ended
	if isCall(r) {
		scoped = r.Context()
	}
	res.Body = &responseBody{membudget.Reader(scoped, res.Body), res.Body, func() {}}
	switch {
	case res.StatusCode >= http.StatusBadRequest:
		return t.refused(r, res)
	case res.StatusCode < http.StatusMultipleChoices && isCall(r):
		return answered(res)
	}
	return res, nil
}

// A responseBody is what is read of a response.
type responseBody struct {
	io.Reader
	body     io.Closer
	giveBack func() // the memory for what was read last
}

// newEventBody returns a body of events that belong to no call.
func newEventBody(body io.ReadCloser) *responseBody {
	scoped, giveBack := membudget.Within(context.Background(), membudget.Attempt)
	return &responseBody{membudget.Events(scoped, body), body, giveBack}
}

// Close closes the body of the response.
func (b *responseBody) Close() error {
	b.giveBack()
	return b.body.Close()
}

// isCall reports whether a request has a call, which wants a result.
func isCall(r *http.Request) bool {
	if r.GetBody == nil {
		return false
	}
	body, err := r.GetBody()
	if err != nil {
		return false
	}
	defer body.Close()
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	return json.NewDecoder(body).Decode(&m) == nil && m.ID != nil && m.Method != ""
}

// answered returns a response to a call if it is a message or a stream of messages.
func answered(res *http.Response) (*http.Response, error) {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if kind == "text/event-stream" {
		return res, nil
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxMessage+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxMessage:
		return nil, errLarge
	}
	if _, err := jsonrpc.DecodeMessage(body); err != nil || kind != "application/json" {
		return nil, fmt.Errorf("it answered with status %d and %q, which is no JSON-RPC message", res.StatusCode, oneline.Of(string(body)))
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}

// refused returns the error of an error status. A JSON-RPC error stays in the body, for the request.
func (t *sessionTransport) refused(r *http.Request, res *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	res.Body.Close()
	if err != nil {
		return nil, err
	}
	text := strings.ToLower(string(body))
	inSession := r.Header.Get("Mcp-Session-Id") != ""
	if inSession && (res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusBadRequest && strings.Contains(text, "session")) {
		t.conn.gone.Store(true)
		return nil, errSessionGone
	}
	if m, err := jsonrpc.DecodeMessage(body); err == nil {
		if answer, ok := m.(*jsonrpc.Response); ok && answer.Error != nil {
			res.Body = io.NopCloser(bytes.NewReader(body))
			return res, nil
		}
	}
	return nil, &statusError{res.StatusCode, oneline.Of(string(body))}
}

// listen opens the stream of notifications. Servers may refuse it, answer only once they have
// something to say, or end it, and that is no reason to wait or to end the session. So the response
// is a stream that ends with the session.
func (t *sessionTransport) listen(r *http.Request) *http.Response {
	reader, writer := io.Pipe()
	t.conn.listening.Go(func() {
		res, err := t.client.Do(r)
		if err == nil {
			kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
			if res.StatusCode == http.StatusOK && kind == "text/event-stream" {
				res.Body = newEventBody(res.Body)
				_, _ = io.Copy(writer, res.Body)
				t.conn.deaf.Store(true)
			}
			res.Body.Close()
		}
		<-r.Context().Done()
		writer.CloseWithError(context.Cause(r.Context()))
	})
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: reader, ContentLength: -1, Request: r,
	}
}
