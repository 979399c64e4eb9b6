package openai

import (
	"bytes"
	"context"
	"encoding/json"
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
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxFault)) // what is missing of an error is not needed
	said := saidIn(body)
	e := c.model.fault(kindOf(res.StatusCode, said), c.model.clean(c.req, said.message))
	e.Status = res.StatusCode
	e.RetryAfter = retryAfter(res.Header, time.Now())
	switch {
	case res.StatusCode < 400:
		e.Message = "it redirects to " + c.model.clean(c.req, redactURL(res.Header.Get("Location")))
	case e.Kind == llm.Unauthorized && c.model.key.IsZero() && c.model.headers.Get("Authorization") == "":
		e.Message = strings.TrimSuffix("no key was sent: "+e.Message, ": ")
	case e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed:
		c.model.lookInto(ctx, e)
	}
	return e
}

// errorIn returns the error that stands in JSON under status 200, or nil if
// there is none: {"error": null}, or the word in another place. If certain,
// any data is an error.
func (c *call) errorIn(data []byte, certain bool) error {
	var probe struct {
		Error json.RawMessage `json:"error"`
	}
	err := json.Unmarshal(data, &probe)
	none := err != nil || len(probe.Error) == 0 || string(probe.Error) == "null"
	if none && !certain {
		return nil
	}
	said := saidIn(data)
	kind := llm.BadResponse
	if said.status >= 400 && said.status < 600 {
		kind = kindOf(said.status, said)
	} else if k := kindOf(0, said); k != "" {
		kind = k
	}
	message := "an error under status 200"
	if m := c.model.clean(c.req, said.message); m != "" {
		message += ": " + m
	}
	e := c.model.fault(kind, message)
	e.Status = http.StatusOK
	return e
}

// saying is what the body of an error says.
type saying struct {
	message string
	codes   []string // its code and type
	status  int      // a code that is a number, else 0
}

// saidIn reads the forms that servers use: {"error": {message, type, code}},
// {"error": "text"}, {"message": …}, {"detail": …}, HTML, plain text.
func saidIn(body []byte) saying {
	body = bytes.TrimSpace(body)
	var outer map[string]json.RawMessage
	if json.Unmarshal(body, &outer) != nil {
		if bytes.HasPrefix(body, []byte("<")) {
			return saying{message: "HTML instead of JSON"}
		}
		return saying{message: string(body)}
	}
	inner := outer
	if raw, ok := outer["error"]; ok {
		if text, ok := textOf(raw); ok {
			return saying{message: text}
		}
		inner = nil
		_ = json.Unmarshal(raw, &inner) // another form: nothing is known of it
	}
	var s saying
	for _, key := range []string{"message", "detail", "msg"} {
		if text, ok := textOf(inner[key]); ok && s.message == "" {
			s.message = text
		}
	}
	for _, key := range []string{"code", "type"} {
		if text, ok := textOf(inner[key]); ok {
			s.codes = append(s.codes, text)
		}
	}
	if code, err := strconv.Atoi(strings.TrimSpace(string(inner["code"]))); err == nil {
		s.status = code
	}
	return s
}

func textOf(raw json.RawMessage) (string, bool) {
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil && s != ""
}

// kindOf says which kind a status is, or what the codes say of one. Status 0 without such a code has none.
func kindOf(status int, said saying) llm.Kind {
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

// unreachable words an error of the connection.
func (m *Model) unreachable(err error) error {
	if stray, ok := errors.AsType[*strayError](err); ok {
		return m.fault(llm.NotFound, stray.Error()+", which is not followed")
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the URL
	}
	e := m.fault(llm.Unreachable, m.clean(llm.Request{}, reason(err)))
	e.Err = err
	return e
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
