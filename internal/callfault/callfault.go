// Package callfault lists the kinds of failed model calls, and says what follows from each.
// Field Kind of an llm.Error has one of them.
package callfault

import (
	"slices"
	"time"
)

// The kinds of failure.
const (
	Unauthorized  = "unauthorized"    // 401, 403, or a key is required and missing
	RateLimited   = "rate limited"    // 429
	NoCredit      = "no credit"       // 402, or a 429 that says that the quota is spent
	ServerError   = "server error"    // 5xx, 408, 425, 498, or a 404 of an endpoint that answered before: the same call may succeed later
	Unreachable   = "unreachable"     // refused, reset, no such host, connecting timed out
	UnknownModel  = "unknown model"   // the endpoint does not offer the model
	NotFound      = "not found"       // no such endpoint: a wrong base URL, or /v1 is missing in it
	PromptTooLong = "prompt too long" // the request exceeds the context window of the model, or another limit (413)
	Moderated     = "moderated"       // a filter of the provider refused the prompt
	BadRequest    = "bad request"     // another 4xx
	BadResponse   = "bad response"    // HTML, unparsable JSON, an error with status 200
	Cut           = "cut"             // the reply ended before it was complete
	Empty         = "empty"           // no choice, or neither text nor tool calls
	TooLarge      = "too large"       // the reply is above the limit
	Timeout       = "timeout"         // the call took longer than its limit
)

// retryable are the kinds of failure after which the same call may succeed if it is made
// again. A timeout is not among them: the next call would take as long.
var retryable = []string{RateLimited, ServerError, Unreachable, BadResponse, Cut, Empty}

// terminal are the kinds of failure after which the same call fails until a setting
// is changed.
var terminal = []string{Unauthorized, NoCredit, UnknownModel, NotFound, PromptTooLong, Moderated, BadRequest, TooLarge}

// IsKnown reports whether kind is one of the kinds above.
func IsKnown(kind string) bool {
	return kind == Timeout || slices.Contains(retryable, kind) || slices.Contains(terminal, kind)
}

// IsRetryable reports whether the same call may succeed if it is made again, at once or
// after the time that the endpoint named.
func IsRetryable(kind string) bool { return slices.Contains(retryable, kind) }

// IsTerminal reports whether the same call fails until a setting is changed, so that another
// attempt at the task does not help either.
func IsTerminal(kind string) bool { return slices.Contains(terminal, kind) }

// IsAnswered reports whether a model endpoint answered a call that failed with this kind
// and HTTP status, if only to refuse it. It is false for a missing key, an endpoint that
// cannot be reached or does not answer in time, and an address without an endpoint.
func IsAnswered(kind string, status int) bool {
	return status != 0 && kind != Unreachable && kind != NotFound && kind != Timeout
}

// A RefusedError is the cause of a call that gave up waiting, because its endpoint refused
// all calls. It is not made again.
type RefusedError struct {
	For time.Duration // how long the endpoint had refused calls
	Err error         // the cause of the last refusal; nil if it has none
}

func (e *RefusedError) Error() string { return "the endpoint refused all calls for " + e.For.String() }

// Unwrap returns e.Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// An OfferError is the cause of a call of an unknown model, if the endpoint lists its models.
type OfferError struct{ Models []string }

func (e *OfferError) Error() string { return "the endpoint offers other models" }

// What can end a call before it is answered.
const (
	TimeLimit   = "timeout"
	Canceled    = "canceled"    // with its task or its run
	Interrupted = "interrupted" // with the other calls of a turn; the agent goes on
)

// OwnLimit is the depth of a time limit of the work that made the call itself.
const OwnLimit = -1

// An EndedError says how a call ended that was given up before it was answered. A script repeats it, and the
// work that made the call ends as it did then.
type EndedError struct {
	By    string // TimeLimit, Canceled or Interrupted
	Depth int    // with TimeLimit: whose limit, zero for the task and one more for each child below it; or OwnLimit
}

func (e *EndedError) Error() string {
	if e.By == TimeLimit {
		return "when this was recorded, a time limit ended the call"
	}
	return "when this was recorded, the call was " + e.By
}
