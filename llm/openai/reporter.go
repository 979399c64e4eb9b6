package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/connection"
	"github.com/runteam/runteam/internal/membudget"
	"github.com/runteam/runteam/llm"
)

// A reporter makes the errors of one call. No text of an endpoint enters them before it is
// sanitized.
type reporter struct {
	model *Model
	clean *sanitizer
}

// error returns the error of a reply with status 200.
func (p *reporter) error(kind string, message string) *llm.Error {
	e := p.model.fault(kind, message)
	e.Status = http.StatusOK
	return e
}

// bad returns the error of a reply that cannot be used.
func (p *reporter) bad(message string) *llm.Error { return p.error(callfault.BadResponse, message) }

// unread returns the error of a reply that could not be read to its end.
func (p *reporter) unread(err error) error {
	if errors.Is(err, membudget.ErrFull) {
		return p.error(callfault.TooLarge, err.Error())
	}
	return p.cut("the connection broke", err)
}

// cut returns the error of a reply that ended too early.
func (p *reporter) cut(message string, err error) *llm.Error {
	e := p.error(callfault.Cut, message)
	e.Err = cause(err)
	return e
}

// tooLarge returns the error of a reply above the limit.
func (p *reporter) tooLarge() *llm.Error {
	return p.error(callfault.TooLarge, fmt.Sprintf("the limit is %d bytes", p.model.maxReply))
}

// ofStatus returns the error of a reply whose status is not a success. For a 404 that
// refuses no part of the request, it reads the list of models.
func (p *reporter) ofStatus(ctx context.Context, r *request, res *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody)) // a truncated error is enough
	said := parseErrorBody(body)
	e := p.model.fault(p.kindOf(res.StatusCode, said), p.clean.sanitize(said.message))
	e.Status = res.StatusCode
	refused := asRefusal(e, e.Status, &said, p.clean)
	now := time.Now()
	e.RetryAfter = cmp.Or(retryAfter(res.Header, now), said.wait(now))
	if e.RetryAfter == 0 && e.Status == http.StatusTooManyRequests {
		e.RetryAfter = cmp.Or(untilReset(res.Header, now), untilReset(said.headers, now))
	}
	switch {
	case res.StatusCode < 400:
		e.Message = "it redirects to " + p.clean.sanitize(connection.Redact(res.Header.Get("Location")))
	case e.Kind == callfault.Unauthorized && p.model.key == (Key{}) && p.model.headers.Get("Authorization") == "" && p.model.headers.Get("Api-Key") == "":
		e.Err = llm.ErrNoKey
	case e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed:
		if f, ok := refused.(*refusedError); !ok || f.adaptation(r) < 0 {
			p.explainNotFound(ctx, e)
		}
	}
	return refused
}

// ofBody returns the error in a reply with status 200, and the status that it corresponds
// to.
func (p *reporter) ofBody(said *errorBody, u llm.Usage) (e *llm.Error, status int) {
	kind := callfault.BadResponse
	if said.status >= 400 && said.status < 600 {
		kind = p.kindOf(said.status, *said)
	} else if k := p.kindOf(0, *said); k != "" {
		kind = k
	}
	message := "an error under status 200"
	if m := p.clean.sanitize(said.message); m != "" {
		message += ": " + m
	}
	e = p.error(kind, message)
	now := time.Now()
	e.Usage, e.RetryAfter = u, said.wait(now)
	if e.RetryAfter == 0 && kind == callfault.RateLimited {
		e.RetryAfter = untilReset(said.headers, now)
	}
	return e, cmp.Or(said.status, http.StatusBadRequest)
}

// kindOf returns the kind of an error by its codes, its message and its status. An error
// with status 0 has no kind unless its code or message gives one.
func (p *reporter) kindOf(status int, said errorBody) string {
	if status == http.StatusRequestEntityTooLarge || status == http.StatusTooManyRequests && overLimit.MatchString(said.message) {
		return callfault.PromptTooLong // Groq gives it the code of a rate limit, but the same request never succeeds
	}
	for _, code := range said.codes {
		switch code {
		case "model_not_found", "DeploymentNotFound": // the second is Azure's
			return callfault.UnknownModel
		case "insufficient_quota":
			return callfault.NoCredit
		case "context_length_exceeded", "string_above_max_length", "exceed_context_size_error": // the third is llama.cpp's
			return callfault.PromptTooLong
		case "content_filter", "content_policy_violation", "moderation_blocked", "data_inspection_failed": // Azure, OpenAI, Alibaba
			return callfault.Moderated
		case invalidJSON:
			return callfault.BadResponse
		case "invalid_api_key":
			return callfault.Unauthorized
		case "rate_limit_exceeded":
			return callfault.RateLimited
		}
	}
	switch {
	case (status == 0 || status == http.StatusInternalServerError || status >= 400 && status < 500 && status != http.StatusTooManyRequests) && p.tooLong(said.message):
		return callfault.PromptTooLong
	case status == 0:
		return ""
	case status == http.StatusForbidden && said.flagged, status == http.StatusBadRequest && said.message == "Content Exists Risk": // OpenRouter, DeepSeek
		return callfault.Moderated
	case status < 400:
		return callfault.NotFound
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return callfault.Unauthorized
	case status == http.StatusPaymentRequired:
		return callfault.NoCredit
	case status == http.StatusTooManyRequests:
		return callfault.RateLimited
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == statusFlexFull:
		return callfault.ServerError
	case aboutModel().MatchString(said.message), status == http.StatusNotFound && names(said.message, p.model.name):
		return callfault.UnknownModel
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return callfault.NotFound
	}
	return callfault.BadRequest
}

// tooLong reports whether an endpoint says that the prompt exceeds the context
// window of the model. A passage of the prompt that it repeats does not count.
func (p *reporter) tooLong(message string) bool {
	return overContext().MatchString(message) && overContext().MatchString(p.clean.sanitize(message))
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
