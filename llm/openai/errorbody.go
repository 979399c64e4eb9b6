package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// An errorBody is the content of an error reply.
type errorBody struct {
	message    string        // at most maxServerText bytes
	provider   string        // the message of the provider behind a router, at most maxServerText bytes
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
		said.message = clip(string(body), maxServerText)
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
// It reads at most maxErrorBody bytes, and returns what came before a syntax error.
func parseError(raw []byte) (errorBody, error) {
	var d valueReader
	d.open(raw[:min(len(raw), maxErrorBody)])
	switch d.tokens.PeekKind() {
	case '"', '{', '[':
		v, err := d.value()
		return errorOf(v), err
	}
	return errorBody{}, errForm
}

// errorOf reads a text, an error, an object that holds one, or a list. In a list, the
// first item with a message counts.
func errorOf(v any) (said errorBody) {
	switch v := v.(type) {
	case string:
		said.message = clip(v, maxServerText)
	case []any:
		for i := 0; i < len(v) && said.message == ""; i++ {
			said = errorOf(v[i])
		}
	case object:
		said = errorMembers(v)
		if inner := errorOf(v.get("error")); inner.message != "" || len(inner.codes) > 0 || inner.status != 0 {
			said = inner
		}
		said.message, said.provider = joined(said.message, ": ", said.provider), ""
	}
	return said
}

// errorMembers reads the members of an error.
func errorMembers(o object) (s errorBody) {
	for _, name := range [...]string{"message", "detail", "msg", "errors"} {
		if s.message == "" {
			s.message = readable(o.get(name), "; ")
		}
	}
	for _, name := range [...]string{"code", "type"} {
		if text := textOf(o.get(name), 64); text != "" {
			s.codes = append(s.codes, text)
		}
	}
	if code, ok := o.get("code").(json.Number); ok {
		s.status, _ = strconv.Atoi(string(code))
	}
	s.param = textOf(o.get("param"), 64)
	s.retryAfter = retryInfo(o.get("details"))
	if metadata, ok := o.get("metadata").(object); ok {
		s.addMetadata(metadata)
	}
	return s
}

// addMetadata adds what OpenRouter adds to the error of a provider: the provider's name, its
// own error as JSON or text, and headers of its reply.
func (b *errorBody) addMetadata(o object) {
	b.flagged = o.get("reasons") != nil || o.get("flagged_input") != nil
	if headers, ok := o.get("headers").(object); ok {
		b.headers = make(http.Header)
		for _, h := range headers {
			if value := readable(h.value, ","); len(value) <= 64 && len(b.headers) < 32 {
				b.headers.Set(clip(h.name, 64), value)
			}
		}
	}
	raw := errorOf(o.get("raw"))
	if text, ok := o.get("raw").(string); ok {
		raw = parseErrorBody([]byte(text))
	}
	if raw.message != "" {
		b.provider = joined(textOf(o.get("provider_name"), 64), ": ", raw.message)
	}
	b.retryAfter = cmp.Or(b.retryAfter, raw.retryAfter)
}

// retryInfo reads the details of an error of Google and returns the delay of the
// first google.rpc.RetryInfo among them, which is a google.protobuf.Duration such
// as "34s" (github.com/googleapis/googleapis, google/rpc/error_details.proto).
func retryInfo(details any) time.Duration {
	list, _ := details.([]any)
	for _, item := range list {
		o, _ := item.(object)
		if strings.HasSuffix(textOf(o.get("@type"), maxServerText), "google.rpc.RetryInfo") {
			if delay := parseDelay(textOf(o.get("retryDelay"), 64)); delay != 0 {
				return delay
			}
		}
	}
	return 0
}

// readable returns what a value says, in at most maxServerText bytes: a string or a number as
// it is, the items of a list with sep between them, and of an object its message after its
// location in the request, or each member without one.
func readable(v any, sep string) (said string) {
	switch v := v.(type) {
	case string:
		return clip(v, maxServerText)
	case json.Number:
		return clip(string(v), maxServerText)
	case []any:
		for _, item := range v {
			said = joined(said, sep, readable(item, sep))
		}
	case object:
		for _, name := range [...]string{"message", "detail", "msg", "error", "errors"} {
			if text := readable(v.get(name), sep); text != "" {
				return joined(readable(v.get("loc"), "."), ": ", text)
			}
		}
		for _, m := range v {
			switch m.name {
			case "message", "detail", "msg", "error", "errors", "loc": // read above: twice for each level would be exponential
				continue
			}
			if text := readable(m.value, sep); text != "" {
				said = joined(said, sep, joined(clip(m.name, maxServerText), ": ", text))
			}
		}
	}
	return said
}

// textOf returns at most n bytes of a value that is a text, else "".
func textOf(v any, n int) string {
	text, _ := v.(string)
	return clip(text, n)
}

// clip returns at most n bytes of a text.
func clip(text string, n int) string { return text[:min(len(text), n)] }

// joined returns two texts with sep between them if neither is empty, cut to maxServerText bytes.
func joined(a, sep, b string) string {
	switch {
	case a == "":
		return b
	case b == "" || len(a) >= maxServerText:
		return a
	}
	text := a + sep + b
	return clip(text, maxServerText)
}
