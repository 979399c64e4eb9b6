package record

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrAnswerer reports an answer by somebody who may not give it. An [*AnswererError] wraps it.
var ErrAnswerer = errors.New("another person must answer")

// An AnswererError says why somebody may not answer a question, and who may.
type AnswererError struct {
	By    string
	Why   string   // such as "bob started the run"
	Users []string // of the question, without By; none if anybody else may answer
}

// NewAnswererError returns the error of an answer to a question by somebody.
func NewAnswererError(q *Question, by, why string) *AnswererError {
	return &AnswererError{by, why, slices.DeleteFunc(slices.Clone(q.Users), func(name string) bool { return name == by })}
}

func (e *AnswererError) Error() string {
	if len(e.Users) == 0 {
		return fmt.Sprintf("%s; %v", e.Why, ErrAnswerer)
	}
	return fmt.Sprintf("%s; %v: %s", e.Why, ErrAnswerer, OneOf(e.Users))
}

// Unwrap returns [ErrAnswerer].
func (e *AnswererError) Unwrap() error { return ErrAnswerer }

// OneOf returns names as alternatives: "ann, bob or eve".
func OneOf(names []string) string {
	last := len(names) - 1
	if last <= 0 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// CheckUser returns an [*AnswererError] if the question names who may answer it, and somebody is not among them.
func (q *Question) CheckUser(by string) error {
	if len(q.Users) == 0 || slices.Contains(q.Users, by) {
		return nil
	}
	return NewAnswererError(q, by, fmt.Sprintf("%s may not answer as %s", by, q.Agent))
}
