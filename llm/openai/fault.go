package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/runteam/runteam/llm"
)

// refused words a reply whose status is not a success. A 404 is looked into further.
func (c *call) refused(ctx context.Context, res *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxFault)) // a truncated error is enough
	said := parseErrorBody(body)
	e := c.model.fault(kindOf(res.StatusCode, said), c.sanitize(said.message))
	e.Status = res.StatusCode
	e.RetryAfter = retryAfter(res.Header, time.Now())
	switch {
	case res.StatusCode < 400:
		e.Message = "it redirects to " + c.sanitize(redactURL(res.Header.Get("Location")))
	case e.Kind == llm.Unauthorized && c.model.key.IsZero() && c.model.headers.Get("Authorization") == "":
		e.Message = strings.TrimSuffix("no key was sent: "+e.Message, ": ")
	case e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed:
		c.lookInto(ctx, e)
	}
	return e
}

// failure returns the error of a reply that has status 200.
func (c *call) failure(said *errorBody, u llm.Usage) error {
	kind := llm.BadResponse
	if said.status >= 400 && said.status < 600 {
		kind = kindOf(said.status, *said)
	} else if k := kindOf(0, *said); k != "" {
		kind = k
	}
	message := "an error under status 200"
	if m := c.sanitize(said.message); m != "" {
		message += ": " + m
	}
	e := c.model.fault(kind, message)
	e.Status, e.Usage = http.StatusOK, u
	return e
}

// An errorBody is the content of an error reply.
type errorBody struct {
	message string   // at most maxForeign bytes
	codes   []string // its code and type
	status  int      // a code that is a number, else 0
}

// parseErrorBody reads the forms that servers use: {"error": {message, type, code}},
// {"error": "text"}, {"message": …}, {"detail": …}, HTML, plain text.
func parseErrorBody(body []byte) errorBody {
	body = bytes.TrimSpace(body)
	var d decoder
	var outer errorBody
	var inner *errorBody
	d.open(body)
	var err error
	if d.tokens.PeekKind() != '{' {
		err = errForm
	} else {
		err = d.object(func(name []byte) error {
			if string(name) != "error" {
				return d.errorMember(&outer, name)
			}
			raw, err := d.tokens.ReadValue()
			if err == nil {
				inner = new(parseError(raw))
			}
			return err
		})
	}
	switch {
	case err != nil && bytes.HasPrefix(body, []byte("<")):
		return errorBody{message: "HTML instead of JSON"}
	case err != nil:
		return errorBody{message: string(body[:min(len(body), maxForeign)])}
	case inner != nil:
		return *inner
	}
	return outer
}

// parseError reads the member "error" of a reply, which is a text or an object. Any
// other form returns the zero value.
func parseError(raw []byte) (s errorBody) {
	var d decoder
	d.open(raw)
	if d.tokens.PeekKind() != '{' {
		s.message = d.words(maxForeign)
		return s
	}
	_ = d.object(func(name []byte) error { return d.errorMember(&s, name) }) // raw is valid JSON
	return s
}

// errorMember reads one member of an error.
func (d *decoder) errorMember(s *errorBody, name []byte) error {
	switch kind := d.tokens.PeekKind(); string(name) {
	case "message", "detail", "msg":
		if text := d.words(maxForeign); text != "" && (s.message == "" || string(name) == "message") {
			s.message = text
		}
		return nil
	case "code", "type":
		if kind == '0' {
			status, _, err := d.integer()
			if err == nil && string(name) == "code" {
				s.status = status
			}
			return nil
		}
		if text := d.words(64); text != "" {
			s.codes = append(s.codes[:min(len(s.codes), 1)], text)
		}
		return nil
	}
	return d.tokens.SkipValue()
}

// words reads a value and returns it if it is a text: at most n bytes of it. A
// syntax error is found by what is read next.
func (d *decoder) words(n int) string {
	if d.tokens.PeekKind() != '"' {
		_ = d.tokens.SkipValue()
		return ""
	}
	text, err := d.string(nil)
	if err != nil {
		return ""
	}
	return string(text[:min(len(text), n)])
}

// kindOf says which kind a status is, or what the codes say of one. Status 0 without such a code has none.
func kindOf(status int, said errorBody) llm.Kind {
	for _, code := range said.codes {
		switch code {
		case "model_not_found":
			return llm.UnknownModel
		case "insufficient_quota":
			return llm.NoCredit
		case "invalid_api_key":
			return llm.Unauthorized
		case "rate_limit_exceeded":
			return llm.RateLimited
		}
	}
	switch {
	case status == 0:
		return ""
	case status < 400:
		return llm.NotFound
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return llm.Unauthorized
	case status == http.StatusPaymentRequired:
		return llm.NoCredit
	case status == http.StatusTooManyRequests:
		return llm.RateLimited
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		return llm.ServerError
	case aboutModel.MatchString(said.message):
		return llm.UnknownModel
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return llm.NotFound
	}
	return llm.BadRequest
}

// aboutModel matches how servers without codes say that they do not know a model.
var aboutModel = regexp.MustCompile(`(?i)\bmodel\b.{0,200}(does not exist|not found|is not a valid|not available)|(not a valid|invalid|unknown|no such) model\b`)

// retryAfter reads how long a server asks to wait: Retry-After-Ms, or
// Retry-After as seconds or as a date, which counts from the server's own
// clock if it says what that shows. RFC 9110, section 10.2.3.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return duration(ms, time.Millisecond)
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return duration(s, time.Second)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return max(at.Sub(now), 0)
}

// duration returns n units, and a very long time for what is longer than any.
func duration(n float64, unit time.Duration) time.Duration {
	switch {
	case !(n > 0): // also not a number
		return 0
	case n > float64(math.MaxInt64/unit):
		return math.MaxInt64
	}
	return time.Duration(n * float64(unit))
}

// unreachable is an error of the connection. Servers, proxies and name servers
// write parts of it.
func (m *Model) unreachable(req llm.Request, err error) error {
	if stray, ok := errors.AsType[*strayError](err); ok {
		return m.fault(llm.NotFound, "it redirects to "+m.sanitize(req, stray.to)+", which is not followed")
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the URL
	}
	e := m.fault(llm.Unreachable, m.sanitize(req, reason(err)))
	e.Err = cause(err)
	return e
}

// cause returns the known condition behind an error of a connection, or nil. The
// error itself may quote a server, such as a GOAWAY frame.
func cause(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	for _, known := range [...]error{io.ErrUnexpectedEOF, io.EOF, os.ErrDeadlineExceeded, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, known) {
			return known
		}
	}
	return nil
}

// reason says in few words why a connection failed.
func reason(err error) string {
	dns, isDNS := errors.AsType[*net.DNSError](err)
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection without an answer"
	case isDNS && dns.IsNotFound:
		return fmt.Sprintf("no such host %q", dns.Name)
	case isNet && timeout.Timeout(), errors.Is(err, os.ErrDeadlineExceeded):
		return "connecting timed out"
	}
	return err.Error()
}
