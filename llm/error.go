package llm

import (
	"errors"
	"time"
)

// ErrNoKey reports that a key is required and none is set. An [*Error] of kind [Unauthorized] wraps it.
var ErrNoKey = errors.New("no API key")

// Kind says in which way a call failed.
type Kind string

// The kinds of failure. The zero Kind means a failure that no endpoint explains.
const (
	Unauthorized  Kind = "unauthorized"    // 401, 403, or a key is required and missing
	RateLimited   Kind = "rate limited"    // 429
	NoCredit      Kind = "no credit"       // 402, or a 429 that says that the quota is spent
	ServerError   Kind = "server error"    // 5xx, 408, 425, 498, or a 404 of an endpoint that answered before: the same call may succeed later
	Unreachable   Kind = "unreachable"     // refused, reset, no such host, connecting timed out
	UnknownModel  Kind = "unknown model"   // the endpoint does not offer the model
	NotFound      Kind = "not found"       // no such endpoint: a wrong base URL, or /v1 is missing in it
	PromptTooLong Kind = "prompt too long" // the request exceeds the context window of the model, or another limit (413)
	Moderated     Kind = "moderated"       // a filter of the provider refused the prompt
	BadRequest    Kind = "bad request"     // another 4xx
	BadResponse   Kind = "bad response"    // HTML, unparsable JSON, an error with status 200
	Cut           Kind = "cut"             // the reply ended before it was complete
	Empty         Kind = "empty"           // no choice, or neither text nor tool calls
	TooLarge      Kind = "too large"       // the reply is above the limit
	Timeout       Kind = "timeout"         // the call took longer than its limit
)

// Known reports whether k is one of the kinds above.
func (k Kind) Known() bool {
	switch k {
	case Unauthorized, RateLimited, NoCredit, ServerError, Unreachable, UnknownModel, NotFound,
		PromptTooLong, Moderated, BadRequest, BadResponse, Cut, Empty, TooLarge, Timeout:
		return true
	}
	return false
}

// An Error is a call that failed.
//
// Its text says what is wrong and what to set. It holds neither a key nor
// text of a prompt: an implementation of [Model] keeps both out of Message,
// and passes what a server said through [OneLine].
type Error struct {
	Kind       Kind
	Status     int           // the HTTP status; 0 if none was received
	RetryAfter time.Duration // how long to wait, as the endpoint said in its headers or its error; 0 if it did not say
	Endpoint   string        // the base URL, without credentials
	Model      string        // the model that was asked for
	Models     []string      // for UnknownModel: what the endpoint offers, if it says so
	Message    string        // what the server said, or what is wrong with what it said
	Usage      Usage         // tokens that the endpoint counted although the call failed
	Err        error         // the cause, if there is one; never one that holds a body or a header

	// RefusedFor is how long the endpoint had refused all calls when a call that waited
	// for a rate limit gave up; otherwise 0. [Retry] does not repeat such a call.
	RefusedFor time.Duration
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same call may succeed if made again at once
// or after e.RetryAfter. [Retry] acts on it. A timeout is not retryable: the
// next call would take as long.
func (e *Error) Retryable() bool {
	switch e.Kind {
	case RateLimited, ServerError, Unreachable, BadResponse, Cut, Empty:
		return true
	}
	return false
}

// Terminal reports whether the same call fails until a setting
// is changed, so that another attempt at the task does not help either.
func (e *Error) Terminal() bool {
	switch e.Kind {
	case Unauthorized, NoCredit, UnknownModel, NotFound, PromptTooLong, Moderated, BadRequest, TooLarge:
		return true
	}
	return false
}

// Answered reports whether a model endpoint answered the call, if only to
// refuse it. It is false for a missing key, an endpoint that cannot be
// reached or does not answer in time, and an address where there is none.
func (e *Error) Answered() bool {
	switch e.Kind {
	case Unreachable, NotFound, Timeout:
		return false
	}
	return e.Status != 0
}
