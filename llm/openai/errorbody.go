package openai

import (
	"bytes"
	"cmp"
	"net/http"
	"strings"
	"time"
)

// An errorBody is the content of an error reply.
type errorBody struct {
	message    string        // at most maxForeign bytes
	provider   string        // the message of the provider behind a router, at most maxForeign bytes
	codes      []string      // its code and type
	flagged    bool          // a moderation found something in the prompt
	param      string        // the setting of the request that the error is about
	status     int           // a numeric code; 0 if there is none
	retryAfter time.Duration // from a google.rpc.RetryInfo; 0 if there is none
	headers    http.Header   // of the reply of the provider behind a router; at most 32, of at most 64 bytes
}

// wait returns the wait that the error asks for, or 0.
func (b *errorBody) wait(now time.Time) time.Duration {
	return cmp.Or(b.retryAfter, retryAfter(b.headers, now))
}

// parseErrorBody reads an error, as [parseError] does. HTML, other text and JSON
// that says nothing before it ends or breaks off become the message.
func parseErrorBody(body []byte) errorBody {
	body = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(body), []byte(byteOrderMark)))
	said, err := parseError(body)
	if err != nil && said.message == "" {
		said.message = string(body[:min(len(body), maxForeign)])
		if bytes.HasPrefix(body, []byte("<")) {
			said.message = "HTML instead of JSON"
		}
	}
	return said
}

// parseError reads the forms in which servers write an error:
//
//   - {"error": {message, type, code}}: OpenAI, platform.openai.com/docs/guides/error-codes
//   - {"error": "text"}: Ollama, docs/api.md of github.com/ollama/ollama
//   - [{"error": {message, code, status, details}}]: Gemini, ai.google.dev/gemini-api/docs/openai
//   - {"message": {"detail": [{loc, msg, type}]}}: Mistral, docs.mistral.ai/api
//   - {"detail": "text"} and {"detail": [{loc, msg, type}]}: FastAPI,
//     fastapi.tiangolo.com/tutorial/handling-errors
//   - {"error": {message, code, metadata: {provider_name, raw, headers}}}: OpenRouter,
//     openrouter.ai/docs/api-reference/errors
//   - {"errors": [{message, code}]}: Cloudflare, developers.cloudflare.com/api
//
// It reads at most maxFault bytes, and returns what came before a syntax error.
func parseError(raw []byte) (said errorBody, err error) {
	var d errorReader
	d.open(raw[:min(len(raw), maxFault)])
	switch d.tokens.PeekKind() {
	case '"', '{', '[':
		return d.errorValue()
	}
	return errorBody{}, errForm
}

// An errorReader reads an error.
type errorReader struct{ valueReader }

// errorValue reads a text, an error, an object that holds one, or a list, of
// which the first item that says something counts.
func (d *errorReader) errorValue() (said errorBody, err error) {
	switch d.tokens.PeekKind() {
	case '[':
		err = d.array(func() (err error) {
			if said.message != "" {
				return d.tokens.SkipValue()
			}
			said, err = d.errorValue()
			return err
		})
		return said, err
	case '{':
		var inner errorBody
		err = d.object(func(name []byte) (err error) {
			if string(name) != "error" {
				return d.errorMember(&said, name)
			}
			inner, err = d.errorValue()
			return err
		})
		if inner.message != "" || len(inner.codes) > 0 || inner.status != 0 {
			said = inner
		}
		said.message, said.provider = joined(said.message, ": ", said.provider), ""
		return said, err
	}
	text, err := d.optional(nil)
	said.message = string(text[:min(len(text), maxForeign)])
	return said, err
}

// errorMember reads one member of an error.
func (d *errorReader) errorMember(s *errorBody, name []byte) (err error) {
	switch kind := d.tokens.PeekKind(); string(name) {
	case "message", "detail", "msg", "errors":
		text, err := d.readable("; ")
		if text != "" && (s.message == "" || string(name) == "message") {
			s.message = text
		}
		return err
	case "code", "type":
		if kind == '0' {
			status, _, err := d.integer()
			if err == nil && string(name) == "code" {
				s.status = status
			}
			return err
		}
		if text := d.words(64); text != "" {
			s.codes = append(s.codes[:min(len(s.codes), 1)], text)
		}
		return nil
	case "param":
		s.param = d.words(64)
		return nil
	case "details":
		if kind == '[' {
			s.retryAfter, err = d.retryInfo()
			return err
		}
	case "metadata":
		if kind == '{' {
			return d.errorMetadata(s)
		}
	}
	return d.tokens.SkipValue()
}

// errorMetadata reads what OpenRouter adds to the error of a provider: the
// provider's name, its own error as JSON or text, and headers of its reply.
func (d *errorReader) errorMetadata(s *errorBody) error {
	var provider string
	var raw errorBody
	err := d.object(func(name []byte) (err error) {
		switch kind := d.tokens.PeekKind(); {
		case string(name) == "provider_name":
			provider = d.words(64)
			return nil
		case string(name) == "reasons", string(name) == "flagged_input":
			s.flagged = true
		case string(name) == "headers" && kind == '{':
			s.headers = make(http.Header)
			return d.object(func(name []byte) error {
				name = bytes.Clone(name[:min(len(name), 64)])
				if value, err := d.verbatim(); err != nil {
					return err
				} else if len(value) <= 64 && len(s.headers) < 32 {
					s.headers.Set(string(name), string(value))
				}
				return nil
			})
		case string(name) == "raw" && kind == '"':
			text, err := d.string(nil)
			raw = parseErrorBody(text)
			return err
		case string(name) == "raw" && kind == '{':
			raw, err = d.errorValue()
			return err
		}
		return d.tokens.SkipValue()
	})
	if raw.message != "" {
		s.provider = joined(provider, ": ", raw.message)
	}
	s.retryAfter = cmp.Or(s.retryAfter, raw.retryAfter)
	return err
}

// retryInfo reads the details of an error of Google and returns the delay of the
// first google.rpc.RetryInfo among them, which is a google.protobuf.Duration such
// as "34s" (github.com/googleapis/googleapis, google/rpc/error_details.proto).
func (d *errorReader) retryInfo() (delay time.Duration, err error) {
	err = d.array(func() error {
		if d.tokens.PeekKind() != '{' {
			return d.tokens.SkipValue()
		}
		var kind, wait string
		err := d.object(func(name []byte) error {
			switch string(name) {
			case "@type":
				kind = d.words(maxForeign)
			case "retryDelay":
				wait = d.words(64)
			default:
				return d.tokens.SkipValue()
			}
			return nil
		})
		if delay == 0 && strings.HasSuffix(kind, "google.rpc.RetryInfo") {
			delay = parseDelay(wait)
		}
		return err
	})
	return delay, err
}

// readable returns what a value says, in at most maxForeign bytes: a string or a
// number as it is, the items of a list with sep between them, and of an object
// its message after its location in the request, or each member without one.
func (d *errorReader) readable(sep string) (said string, err error) {
	switch d.tokens.PeekKind() {
	case '"', '0':
		text, err := d.verbatim()
		return string(text[:min(len(text), maxForeign)]), err
	case '[':
		err = d.array(func() error {
			item, err := d.readable(sep)
			said = joined(said, sep, item)
			return err
		})
		return said, err
	case '{':
		var at, members string
		err = d.object(func(name []byte) (err error) {
			switch string(name) {
			case "loc":
				at, err = d.readable(".")
			case "message", "detail", "msg", "error", "errors":
				var text string
				if text, err = d.readable(sep); said == "" {
					said = text
				}
			default:
				var text string
				member := string(name[:min(len(name), maxForeign)]) // name is valid until the next read
				if text, err = d.readable(sep); text != "" {
					members = joined(members, sep, joined(member, ": ", text))
				}
			}
			return err
		})
		if said == "" {
			return members, err
		}
		return joined(at, ": ", said), err
	}
	return "", d.tokens.SkipValue()
}

// joined returns two texts with sep between them if neither is empty, cut to maxForeign bytes.
func joined(a, sep, b string) string {
	switch {
	case a == "":
		return b
	case b == "" || len(a) >= maxForeign:
		return a
	}
	text := a + sep + b
	return text[:min(len(text), maxForeign)]
}
