package openai

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retryAfter reads how long a server asks to wait: Retry-After-Ms of Azure
// (learn.microsoft.com/azure/ai-services/openai/how-to/quota), or
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
	return max(at.Sub(serverTime(h, now)), 0)
}

// serverTime returns what the clock of the server shows, or now if it does not say.
func serverTime(h http.Header, now time.Time) time.Time {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		return date
	}
	return now
}

// maxReset bounds what the reset of a rate limit is waited for. The headers say
// when the whole window is free again, and a limit for each minute frees a part of it sooner.
const maxReset = time.Minute

// A rateLimit is a pair of headers that describe one rate limit: when it is reset, and
// how much of it remains.
type rateLimit struct{ reset, remaining string }

// The rate limits on requests and on tokens, as their headers are called by
//
//   - OpenAI, platform.openai.com/docs/guides/rate-limits, and Groq, console.groq.com/docs/rate-limits
//   - Anthropic, docs.anthropic.com/en/api/rate-limits
//   - Cerebras, inference-docs.cerebras.ai/support/rate-limits
//   - OpenRouter, openrouter.ai/docs/api-reference/limits
//   - Mistral, docs.mistral.ai/deployment/laplateforme/tier
//   - others after draft-ietf-httpapi-ratelimit-headers-06
var (
	requestLimits = []rateLimit{
		{"X-Ratelimit-Reset-Requests", "X-Ratelimit-Remaining-Requests"},
		{"Anthropic-Ratelimit-Requests-Reset", "Anthropic-Ratelimit-Requests-Remaining"},
		{"X-Ratelimit-Reset-Requests-Day", "X-Ratelimit-Remaining-Requests-Day"},
		{"X-Ratelimit-Reset", "X-Ratelimit-Remaining"},
		{"Ratelimit-Reset", "Ratelimit-Remaining"},
	}
	tokenLimits = []rateLimit{
		{"X-Ratelimit-Reset-Tokens", "X-Ratelimit-Remaining-Tokens"},
		{"Anthropic-Ratelimit-Tokens-Reset", "Anthropic-Ratelimit-Tokens-Remaining"},
		{"Anthropic-Ratelimit-Input-Tokens-Reset", "Anthropic-Ratelimit-Input-Tokens-Remaining"},
		{"Anthropic-Ratelimit-Output-Tokens-Reset", "Anthropic-Ratelimit-Output-Tokens-Remaining"},
		{"X-Ratelimit-Reset-Tokens-Minute", "X-Ratelimit-Remaining-Tokens-Minute"},
		{"Ratelimitbysize-Reset", "Ratelimitbysize-Remaining"},
	}
)

// untilReset returns how long the rate limit that was hit lasts, at most maxReset.
// A limit of which something remains was not the one, unless every limit says that:
// then it is one on tokens, of which too few remain.
func untilReset(h http.Header, now time.Time) time.Duration {
	now = serverTime(h, now)
	requests, _ := longestReset(h, requestLimits, now)
	tokens, tooFew := longestReset(h, tokenLimits, now)
	if requests == 0 && tokens == 0 {
		tokens = tooFew
	}
	return min(max(requests, tokens), maxReset)
}

// longestReset returns the longest wait for the limits of which nothing is known to
// remain, and the longest for the others.
func longestReset(h http.Header, limits []rateLimit, now time.Time) (spent, left time.Duration) {
	for _, l := range limits {
		wait := parseReset(h.Get(l.reset), now)
		if n, err := strconv.ParseFloat(h.Get(l.remaining), 64); err == nil && n > 0 {
			left = max(left, wait)
		} else {
			spent = max(spent, wait)
		}
	}
	return spent, left
}

// parseReset reads when a limit is reset: as a duration such as 20ms, 7.66s or 6m0s,
// in seconds, as a time of RFC 3339, or as a Unix time in seconds or, as OpenRouter
// writes it, milliseconds. Anything else, and a time gone by, is 0.
func parseReset(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		return max(at.Sub(now), 0)
	}
	if n, err := strconv.ParseFloat(value, 64); err == nil {
		switch { // no window is three years long
		case n > 1e11 && n < 1e14:
			return max(time.UnixMilli(int64(n)).Sub(now), 0)
		case n > 1e8 && n < 1e11:
			return max(time.UnixMilli(int64(n*1e3)).Sub(now), 0)
		}
	}
	return parseDelay(value)
}

// parseDelay reads a duration as Go writes it, or seconds with or without a unit. Anything else is 0.
func parseDelay(value string) time.Duration {
	value = strings.TrimSpace(value)
	if d, err := time.ParseDuration(value); err == nil {
		return max(d, 0)
	}
	s, err := strconv.ParseFloat(strings.TrimSuffix(value, "s"), 64)
	if err != nil {
		return 0
	}
	return duration(s, time.Second)
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
