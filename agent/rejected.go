package agent

import (
	"errors"
	"fmt"

	"github.com/runteam/runteam/internal/schema"
)

// A RejectedError reports an answer that does not match the output schema. It wraps
// [ErrSchema] and Err. A caller can have the answer corrected, unless the error matches
// [ErrGuard]: then it has the right form and another value than a const demands.
type RejectedError struct {
	Problem string // what is wrong, in one line, for the model: it may quote the answer
	Err     error  // what is wrong, for people: it does not quote the answer
}

// reject returns the error of an answer with this problem.
func reject(problem error) *RejectedError {
	return &RejectedError{Problem: schema.Problem(problem), Err: problem}
}

// Error says what is wrong without quoting the answer.
func (e *RejectedError) Error() string {
	if errors.Is(e.Err, ErrGuard) {
		return fmt.Sprintf("%v: %v", ErrGuard, e.Err)
	}
	return fmt.Sprintf("%v: %v", ErrSchema, e.Err)
}

// Unwrap returns [ErrSchema] and e.Err.
func (e *RejectedError) Unwrap() []error { return []error{ErrSchema, e.Err} }
