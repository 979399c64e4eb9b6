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

// maxReset bounds the wait for the reset of a rate limit. The headers say when the whole
// window is free again; part of a limit per minute is free sooner.
const maxReset = time.Minute

// A rateLimit names the headers of one rate limit: when it resets and what remains.
type rateLimit struct{ reset, remaining string }

// The headers of the rate limits on requests and on tokens, of these providers:
//
//   - OpenAI, platform.openai.com/docs/guides/rate-limits
//   - Groq, console.groq.com/docs/rate-limits
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

// untilReset returns the time until the exceeded rate limit resets, at most maxReset.
// Limits with a remainder were not exceeded. If all have one, a limit on tokens was: too
// few remain for the request.
func untilReset(h http.Header, now time.Time) time.Duration {
	now = serverTime(h, now)
	requests, _ := longestReset(h, requestLimits, now)
	tokens, tooFew := longestReset(h, tokenLimits, now)
	if requests == 0 && tokens == 0 {
		tokens = tooFew
	}
	return min(max(requests, tokens), maxReset)
}

// longestReset returns the longest wait for the limits without a known remainder, and the
// longest for those with one.
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

// parseReset reads when a limit resets: a duration such as 20ms, 7.66s or 6m0s, a number
// of seconds, an RFC 3339 time, or a Unix time in seconds or, from OpenRouter, in
// milliseconds. Anything else, and a time in the past, is 0.
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

// parseDelay reads a duration as Go writes it, or seconds with or without a unit. Anything
// else is 0.
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

// duration returns n units, or the longest duration if that is longer.
func duration(n float64, unit time.Duration) time.Duration {
	switch {
	case !(n > 0): // also true of NaN
		return 0
	case n > float64(math.MaxInt64/unit):
		return math.MaxInt64
	}
	return time.Duration(n * float64(unit))
}
