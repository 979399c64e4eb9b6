package schema

import (
	"errors"
	"fmt"

	"github.com/runteam/runteam/internal/codes"
)

// ErrMismatch reports an answer that does not match its output schema.
const ErrMismatch = codes.Condition(codes.Schema)

// ErrGuard reports an answer of the right form with another value than a const demands.
const ErrGuard = codes.Condition(codes.Guard)

// A RejectedError reports an answer that does not match the output schema. It wraps
// [ErrMismatch] and Err. A caller can have the answer corrected, unless the error matches
// [ErrGuard]: then it has the right form and another value than a const demands.
type RejectedError struct {
	Problem string // what is wrong, in one line, for the model: it may quote the answer
	Err     error  // what is wrong, for people: it does not quote the answer
}

// Reject returns the error of an answer with this problem.
func Reject(problem error) *RejectedError {
	return &RejectedError{Problem: Problem(problem), Err: problem}
}

// Error says what is wrong without quoting the answer.
func (e *RejectedError) Error() string {
	if errors.Is(e.Err, ErrGuard) {
		return fmt.Sprintf("%v: %v", ErrGuard, e.Err)
	}
	return fmt.Sprintf("%v: %v", ErrMismatch, e.Err)
}

// Unwrap returns [ErrMismatch] and e.Err.
func (e *RejectedError) Unwrap() []error { return []error{ErrMismatch, e.Err} }
