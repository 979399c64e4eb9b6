package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/connection"
	"github.com/runteam/runteam/llm"
)

// refused words a reply whose status is not a success. A 404 is looked into further.
func (c *call) refused(ctx context.Context, res *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxFault)) // a truncated error is enough
	said := parseErrorBody(body)
	e := c.model.fault(c.kindOf(res.StatusCode, said), c.sanitize(said.message))
	c.refusal = c.refusalOf(e.Kind, res.StatusCode, &said)
	e.Status = res.StatusCode
	now := time.Now()
	e.RetryAfter = cmp.Or(retryAfter(res.Header, now), said.wait(now))
	if e.RetryAfter == 0 && e.Status == http.StatusTooManyRequests {
		e.RetryAfter = cmp.Or(untilReset(res.Header, now), untilReset(said.headers, now))
	}
	switch {
	case res.StatusCode < 400:
		e.Message = "it redirects to " + c.sanitize(connection.Redact(res.Header.Get("Location")))
	case e.Kind == llm.Unauthorized && c.model.key == (Key{}) && c.model.headers.Get("Authorization") == "" && c.model.headers.Get("Api-Key") == "":
		e.Err = llm.ErrNoKey
	case (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed) && c.adaptation() < 0:
		c.lookInto(ctx, e)
	}
	return e
}

// failure returns the error of a reply that has status 200.
func (c *call) failure(said *errorBody, u llm.Usage) error {
	kind := llm.BadResponse
	if said.status >= 400 && said.status < 600 {
		kind = c.kindOf(said.status, *said)
	} else if k := c.kindOf(0, *said); k != "" {
		kind = k
	}
	if !c.emitted {
		c.refusal = c.refusalOf(kind, cmp.Or(said.status, http.StatusBadRequest), said)
	}
	message := "an error under status 200"
	if m := c.sanitize(said.message); m != "" {
		message += ": " + m
	}
	e := c.model.fault(kind, message)
	now := time.Now()
	e.Status, e.Usage, e.RetryAfter = http.StatusOK, u, said.wait(now)
	if e.RetryAfter == 0 && kind == llm.RateLimited {
		e.RetryAfter = untilReset(said.headers, now)
	}
	return e
}

// kindOf says which kind a status is, or what the codes say of one. Status 0 without such a code has none.
func (c *call) kindOf(status int, said errorBody) llm.Kind {
	if status == http.StatusRequestEntityTooLarge || status == http.StatusTooManyRequests && overLimit.MatchString(said.message) {
		return llm.PromptTooLong // Groq gives it the code of a rate limit, but the same request never succeeds
	}
	for _, code := range said.codes {
		switch code {
		case "model_not_found", "DeploymentNotFound": // the second is Azure's
			return llm.UnknownModel
		case "insufficient_quota":
			return llm.NoCredit
		case "context_length_exceeded", "string_above_max_length", "exceed_context_size_error": // the third is llama.cpp's
			return llm.PromptTooLong
		case "content_filter", "content_policy_violation", "moderation_blocked", "data_inspection_failed": // Azure, OpenAI, Alibaba
			return llm.Moderated
		case invalidJSON:
			return llm.BadResponse
		case "invalid_api_key":
			return llm.Unauthorized
		case "rate_limit_exceeded":
			return llm.RateLimited
		}
	}
	switch {
	case (status == 0 || status == http.StatusInternalServerError || status >= 400 && status < 500 && status != http.StatusTooManyRequests) && c.tooLong(said.message):
		return llm.PromptTooLong
	case status == 0:
		return ""
	case status == http.StatusForbidden && said.flagged, status == http.StatusBadRequest && said.message == "Content Exists Risk": // OpenRouter, DeepSeek
		return llm.Moderated
	case status < 400:
		return llm.NotFound
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return llm.Unauthorized
	case status == http.StatusPaymentRequired:
		return llm.NoCredit
	case status == http.StatusTooManyRequests:
		return llm.RateLimited
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == statusFlexFull:
		return llm.ServerError
	case aboutModel().MatchString(said.message), status == http.StatusNotFound && names(said.message, c.model.name):
		return llm.UnknownModel
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return llm.NotFound
	}
	return llm.BadRequest
}

// tooLong reports whether an endpoint says that the prompt exceeds the context
// window of the model. A passage of the prompt that it repeats does not count.
func (c *call) tooLong(message string) bool {
	return overContext().MatchString(message) && overContext().MatchString(c.sanitize(message))
}

// overContext matches the words of OpenAI, Azure, DeepSeek, OpenRouter, vLLM and
// SGLang (maximum context length), xAI (maximum prompt length), Anthropic (prompt is
// too long, context limit), Gemini (maximum number of tokens allowed), Mistral
// (too large for model with), Ollama and llama.cpp (context size), LM Studio (context
// length of only), Groq (reduce the length of the messages), Hugging Face
// (max_new_tokens), Cohere (too many tokens), Amazon Bedrock (Input is too long),
// Moonshot (model token limit), Zhipu (Prompt exceeds max length) and Qwen (Range of
// input length).
var overContext = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(max|maximum|available|model'?s) (context|prompt|model) (length|size|window)\b|` +
		`\b(exceed|exceeds|exceeded|exceeding|longer than|larger than|too long for|overflows?)\b.{0,60}\bcontext( (length|size|window|limit))?\b|` +
		`\bcontext (length|size|window|limit)\b.{0,40}\b(exceed|exceeds|exceeded|overflow|too small|not enough)\b|` +
		`\bwhen context the overflows\b|\bcontext length of only\b|` +
		`\b(prompt|input|request) (is )?too (long|large)\b|\bprompt exceeds\b|` +
		`\bexceeds the maximum number of tokens\b|\btoo large for model with\b|\bmodel token limit\b|\btoo many tokens: total\b|` +
		`\breduce (the length of the|your) (messages?|prompt|input)\b|\bmax_new_tokens. must be <=|\binputs. must have less than\b|\brange of input length\b`)
})

// overLimit matches the messages with which OpenAI and Groq say, under the status of a
// rate limit, that one request alone exceeds the tokens of a minute. It never succeeds.
var overLimit = regexp.MustCompile(`(?i)\brequest too large for\b|\btokens must be reduced in order to run successfully\b`)

// statusFlexFull is the status with which Groq says that its flex tier has no
// capacity left for now (console.groq.com/docs/errors).
const statusFlexFull = 498

// names reports whether a text names a model: its name, and not as a part of a longer one.
func names(text, model string) bool {
	part := func(r rune) bool { return r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	for {
		before, after, found := strings.Cut(text, model)
		if !found {
			return false
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		first, _ := utf8.DecodeRuneInString(after)
		if !part(last) && !part(first) {
			return true
		}
		text = after
	}
}

// aboutModel matches how servers without codes say that they do not know a model.
var aboutModel = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\bmodel\b.{0,200}(does not exist|not found|is not a valid|not available)|(not a valid|invalid|unknown|no such) model\b`)
})

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
