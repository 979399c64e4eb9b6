package inspector

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/runteam/runteam/internal/naming"
)

// A Code says what is wrong with a request.
type Code string

// The codes of errors.
const (
	BadRequest   Code = "bad_request"
	Unauthorized Code = "unauthorized"
	Forbidden    Code = "forbidden"
	NotFound     Code = "not_found"
	Conflict     Code = "conflict" // the run refuses the request or has ended
	Widening     Code = "widening" // the new policy could deliver more than the current one
	Stale        Code = "stale"
	TooLarge     Code = "too_large"
	Invalid      Code = "invalid"
	Precondition Code = "precondition_required"
	TooMany      Code = "too_many"
	Unavailable  Code = "unavailable"

	methodNotAllowed Code = "method_not_allowed"
)

// statuses are the HTTP statuses of codes.
var statuses = map[Code]int{
	BadRequest: http.StatusBadRequest, Unauthorized: http.StatusUnauthorized, Forbidden: http.StatusForbidden, NotFound: http.StatusNotFound,
	Conflict: http.StatusConflict, Widening: http.StatusConflict, Stale: http.StatusPreconditionFailed, TooLarge: http.StatusRequestEntityTooLarge,
	Invalid: http.StatusUnprocessableEntity, Precondition: http.StatusPreconditionRequired, TooMany: http.StatusTooManyRequests, Unavailable: http.StatusServiceUnavailable,
	methodNotAllowed: http.StatusMethodNotAllowed,
}

// An Error is sent in place of an answer. Other errors are sent as [Unavailable] with their text.
type Error struct {
	Code     Code      `json:"code"`
	Message  string    `json:"message"`
	Hint     string    `json:"hint,omitempty"`
	Problems []Problem `json:"problems,omitempty"`
}

// A Problem is one error in a request body.
type Problem struct {
	Pointer string `json:"pointer"`          // a JSON Pointer into the body
	Line    int    `json:"line,omitempty"`   // of a text in the body, from 1; zero if the problem has no place in one
	Column  int    `json:"column,omitempty"` // from 1
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Status returns the HTTP status of the error.
func (e *Error) Status() int { return cmp.Or(statuses[e.Code], http.StatusServiceUnavailable) }

// errorOf returns the error that is sent for one.
func errorOf(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: Unavailable, Message: err.Error()}
}

// strictly decodes JSON and refuses unknown members, and members that are given twice. A policy is only looked
// through by who reads it.
func strictly(text []byte, into any) error {
	if at := givenTwice(text); at != "" {
		return &Error{Code: BadRequest, Message: "the body has a member twice", Problems: []Problem{{Pointer: at, Message: "it is given twice", Hint: "leave one of them out"}}}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = errors.New("there is more text after the object")
	}
	bad := &Error{Code: BadRequest, Message: "the body cannot be read: " + strings.TrimPrefix(err.Error(), "json: ")}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at := "/" + strings.ReplaceAll(wrong.Field, ".", "/")
		bad.Problems = []Problem{{Pointer: at, Message: fmt.Sprintf("a %s is not allowed here", wrong.Value)}}
	}
	return bad
}

// givenTwice returns a JSON Pointer to a member that an object has twice, which [encoding/json] takes the last of;
// empty if there is none. Like that package, it ignores the case of the members of the body itself.
func givenTwice(text []byte) string {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if d.PeekKind() != '{' {
		return ""
	}
	_, _ = d.ReadToken() // what is no JSON is found later
	var names []string
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			break
		}
		name := token.String()
		if slices.ContainsFunc(names, func(of string) bool { return strings.EqualFold(of, name) }) {
			return naming.Pointer(name)
		}
		names = append(names, name)
		value, err := d.ReadValue()
		if twice, is := errors.AsType[*jsontext.SyntacticError](unique(value)); err == nil && is && !strings.EqualFold(name, "policy") {
			return naming.Pointer(name) + string(twice.JSONPointer)
		}
	}
	return ""
}

// unique returns an error if an object in a JSON value has a member twice.
func unique(value jsontext.Value) error {
	d := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowInvalidUTF8(true))
	if err := d.SkipValue(); errors.Is(err, jsontext.ErrDuplicateName) {
		return err
	}
	return nil
}
