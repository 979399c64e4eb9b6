package llm

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/oneline"
)

// Error says what is wrong, where, and what to set instead, in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.subject())
	b.WriteString(e.summary())
	said, hint := oneline.Of(e.Message), e.hint()
	if hint != "" {
		said = strings.TrimRight(said, ".")
	}
	if said != "" {
		b.WriteString(": " + said)
	}
	if hint != "" {
		b.WriteString("; " + hint)
	}
	return b.String()
}

// subject returns the start of a message: the model and the endpoint that were called.
func (e *Error) subject() string {
	var b strings.Builder
	if e.Model != "" {
		fmt.Fprintf(&b, "model %q", oneline.Of(e.Model))
	}
	if e.Endpoint != "" {
		if b.Len() > 0 {
			b.WriteString(" at ")
		}
		b.WriteString(oneline.Of(e.Endpoint))
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	return b.String()
}

// summary names the failure.
func (e *Error) summary() string {
	what := e.Kind
	switch e.Kind {
	case callfault.Unauthorized:
		switch {
		case e.Status == 0:
			what = "no API key"
		case errors.Is(e.Err, ErrNoKey):
			what = "the endpoint requires a key, and none was sent"
		default:
			what = "the endpoint refused the key"
		}
	case callfault.NoCredit:
		what = "the account has no credit left"
	case callfault.Unreachable:
		what = "cannot be reached"
	case callfault.UnknownModel:
		what = "the endpoint does not offer this model"
		if e.Model == "" {
			what = "no model is set"
		}
	case callfault.NotFound:
		what = "no chat completions at this address"
	case callfault.PromptTooLong:
		what = "the prompt is too long"
	case callfault.Moderated:
		what = "a filter of the provider refused the prompt"
	case callfault.BadRequest:
		what = "the endpoint refused the request"
	case callfault.Cut:
		what = "the reply was cut before its end"
	case callfault.Empty:
		what = "the reply is empty"
	case callfault.TooLarge:
		what = "the reply is too large"
	case callfault.Timeout:
		what = "no complete reply in time"
	case "":
		what = "the call failed"
	}
	if e.Status != 0 && e.Status != 200 {
		what += fmt.Sprintf(" (%d)", e.Status)
	}
	if refused, ok := errors.AsType[*callfault.RefusedError](e.Err); ok && refused.For >= time.Second {
		what += fmt.Sprintf(" for %s", refused.For.Round(time.Second))
	}
	if e.RetryAfter > 0 {
		what += fmt.Sprintf(" (retry after %s)", e.RetryAfter)
	}
	return what
}

// hint says what to set.
func (e *Error) hint() string {
	switch e.Kind {
	case callfault.Unauthorized:
		if e.Status == 0 {
			return "set OPENAI_API_KEY, or set OPENAI_BASE_URL to an endpoint that needs none"
		}
		verb := "check"
		if errors.Is(e.Err, ErrNoKey) {
			verb = "set"
		}
		return verb + " the apiKey beside its baseURL, or OPENAI_API_KEY, which is sent only to api.openai.com and the host of OPENAI_BASE_URL"
	case callfault.Unreachable:
		return "check that it is running, and its base URL (baseURL or OPENAI_BASE_URL)"
	case callfault.UnknownModel:
		if e.Model == "" {
			return "set one"
		}
		if offer, ok := errors.AsType[*callfault.OfferError](e.Err); ok {
			return "set another; the endpoint offers " + list(offer.Models)
		}
		return "set another"
	case callfault.NotFound, callfault.BadResponse:
		return e.addressHint()
	case callfault.PromptTooLong:
		return "shorten the task or what it reads, lower maxTokens, or use a model with a larger context window"
	case callfault.Moderated:
		return "change the prompt, or the filter settings at the provider"
	case callfault.TooLarge:
		return "ask for less, or raise the limit"
	case callfault.Timeout:
		return "raise the limit of the call, or use a faster model"
	}
	return ""
}

// addressHint says what the base URL lacks, or may lack if the response is bad.
func (e *Error) addressHint() string {
	u, err := url.Parse(e.Endpoint)
	versioned := err != nil || u.Host == "" || version.MatchString(u.Path)
	with := oneline.Of(strings.TrimRight(e.Endpoint, "/")) + "/v1"
	azure := err == nil && strings.HasSuffix(u.Hostname(), ".azure.com")
	switch {
	case e.Kind == callfault.NotFound && azure:
		return "for Azure, write https://NAME.openai.azure.com/openai/v1, or https://NAME.openai.azure.com/openai/deployments/DEPLOYMENT?api-version=VERSION"
	case e.Kind == callfault.NotFound && !versioned:
		return "/v1 is missing in the base URL: set baseURL or OPENAI_BASE_URL to " + with
	case e.Kind == callfault.NotFound, versioned && strings.HasPrefix(e.Message, "HTML"): // a page of another server
		return "check its base URL (baseURL or OPENAI_BASE_URL)"
	case !versioned:
		return "/v1 may be missing in the base URL: try " + with + " as baseURL or OPENAI_BASE_URL"
	}
	return ""
}

// version matches the path of a base URL with a version, such as /v1 or /api/v3/openai.
var version = regexp.MustCompile(`/v[0-9]`)

// maxNames is how many models an error names.
const maxNames = 12

// list returns the names of models, for the end of a hint.
func list(models []string) string {
	more := ""
	if n := len(models) - maxNames; n > 0 {
		models, more = models[:maxNames], fmt.Sprintf(" and %d more", n)
	}
	names := make([]string, len(models))
	for i, m := range models {
		names[i] = oneline.Of(m)
	}
	return strings.Join(names, ", ") + more
}
