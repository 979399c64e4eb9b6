package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// refusalText is the stored form of the error with which a run refuses a policy. The process that sent
// the command reads it.
type refusalText struct {
	Stale     bool      `json:"stale,omitempty"`
	Widens    bool      `json:"widens,omitempty"`
	Unchanged bool      `json:"unchanged,omitempty"`
	Message   string    `json:"message,omitempty"` // set if there are no Problems
	Problems  []problem `json:"problems,omitempty"`
}

type problem struct {
	Pointer string `json:"pointer,omitempty"`
	Line    int    `json:"line,omitempty"`
	Subject string `json:"subject,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	OfInput bool   `json:"ofInput,omitempty"` // it wraps ErrInputValue
}

// ErrInputValue marks a problem that depends on the text of an input. A viewer who may not see the input may
// not see the problem either.
var ErrInputValue = errors.New("it depends on the text of an input")

// Refusal returns the stored form of the error with which a run refuses a command. [RefusalError] reads it.
func Refusal(err error) string {
	said := strings.TrimPrefix(err.Error(), steer.ErrRefused.Error()+": ")
	out := refusalText{Stale: errors.Is(err, steer.ErrStale), Widens: errors.Is(err, steer.ErrWidens), Unchanged: errors.Is(err, steer.ErrUnchanged)}
	found, isList := errors.AsType[task.Problems](err)
	if !isList && !out.Stale && !out.Widens && !out.Unchanged {
		return said
	}
	for _, p := range found {
		out.Problems = append(out.Problems, problem{p.Pointer, p.Line, p.Subject, p.Message, p.Hint, errors.Is(p, ErrInputValue)})
	}
	if !isList {
		out.Message = said
	}
	text, err := json.Marshal(out)
	if err != nil {
		return said
	}
	return string(text)
}

// RefusalError returns the error that [Refusal] has stored. It wraps [steer.ErrRefused].
func RefusalError(text string) error {
	var in refusalText
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &in) != nil {
		return fmt.Errorf("%w: %s", steer.ErrRefused, text)
	}
	kind := steer.ErrInvalid
	switch {
	case in.Stale:
		return fmt.Errorf("%w: %w", steer.ErrRefused, restatedError{steer.ErrStale, in.Message})
	case in.Unchanged:
		return fmt.Errorf("%w: %w", steer.ErrRefused, restatedError{steer.ErrUnchanged, in.Message})
	case in.Widens:
		kind = steer.ErrWidens
	}
	var found task.Problems
	for _, p := range in.Problems {
		is := kind
		if p.OfInput {
			is = errors.Join(kind, ErrInputValue)
		}
		found = append(found, task.Problem{Pointer: p.Pointer, Line: p.Line, Subject: p.Subject, Message: p.Message, Hint: p.Hint, Err: is})
	}
	return fmt.Errorf("%w: %w", steer.ErrRefused, found)
}

// A restatedError is a sentinel error with a text of its own.
type restatedError struct {
	sentinel error
	text     string
}

func (e restatedError) Error() string { return e.text }
func (e restatedError) Unwrap() error { return e.sentinel }
