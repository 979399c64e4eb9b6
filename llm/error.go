package llm

import (
	"errors"
	"time"

	"github.com/runteam/runteam/internal/callfault"
)

// ErrNoKey reports that a key is required and none is set. An [*Error] of kind
// "unauthorized" wraps it.
var ErrNoKey = errors.New("no API key")

// An Error is a call that failed.
//
// Its text says what is wrong and what to set. It holds neither a key nor text of a prompt:
// an implementation of [Model] keeps both out of Message.
//
// Kind says in which way the call failed:
//
//   - "unauthorized": 401, 403, or a key is required and missing
//   - "rate limited": 429
//   - "no credit": 402, or a 429 that says that the quota is spent
//   - "server error": 5xx, 408, 425, 498, or a 404 of an endpoint that answered before
//   - "unreachable": refused, reset, no such host, connecting timed out
//   - "unknown model": the endpoint does not offer the model
//   - "not found": no such endpoint, because the base URL is wrong or lacks /v1
//   - "prompt too long": above the context window of the model, or another limit (413)
//   - "moderated": a filter of the provider refused the prompt
//   - "bad request": another 4xx
//   - "bad response": HTML, JSON that cannot be parsed, an error with status 200
//   - "cut": the reply ended before it was complete
//   - "empty": no choice, or neither text nor tool calls
//   - "too large": the reply is above the limit
//   - "timeout": the call took longer than its limit
//
// Any other Kind, such as "", is an unclassified failure.
type Error struct {
	Kind       string
	Status     int           // the HTTP status; 0 if none was received
	RetryAfter time.Duration // how long to wait, as the endpoint said in its headers or its error; 0 if it did not say
	Endpoint   string        // the base URL, without credentials
	Model      string        // the model that was requested
	Message    string        // what the server said, or what is wrong with what it said
	Usage      Usage         // tokens that the endpoint counted although the call failed
	Err        error         // the cause, if there is one; never one that holds a body or a header
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same call may succeed if made again at once or after
// e.RetryAfter. [Retry] acts on it. A timeout is not retryable: the next call would take as
// long.
func (e *Error) Retryable() bool { return callfault.IsRetryable(e.Kind) }
