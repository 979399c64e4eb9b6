package exit

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/llm"
)

// KindOf returns the kind of an error.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	if _, ok := errors.AsType[*llm.Error](err); ok {
		return KindRuntime
	}
	if _, ok := errors.AsType[*Interrupted](err); ok {
		return KindRuntime
	}
	if found, ok := errors.AsType[*specfile.Error](err); ok {
		for _, p := range found.Problems {
			if !errors.Is(p.Err, specfile.ErrNotFound) && !errors.Is(p.Err, specfile.ErrRead) {
				return KindValidation
			}
		}
		return KindIO
	}
	if _, ok := errors.AsType[*scripted.FileError](err); ok {
		return KindValidation
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return KindIO
	}
	return KindInternal
}

// Problems returns the problems in files that an error lists.
func Problems(err error) []specfile.Problem {
	if found, ok := errors.AsType[*specfile.Error](err); ok {
		return found.Problems
	}
	return scriptProblems(err, nil)
}

// scriptProblems appends the problems of a script, which are joined errors.
func scriptProblems(err error, found []specfile.Problem) []specfile.Problem {
	switch e := err.(type) { //nolint:errorlint // this walks the tree of errors
	case *scripted.FileError:
		return append(found, specfile.Problem{File: e.File, Line: e.Line, Column: e.Column, Message: e.Message, Excerpt: e.Excerpt})
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			found = scriptProblems(one, found)
		}
	case interface{ Unwrap() error }:
		return scriptProblems(e.Unwrap(), found)
	}
	return found
}

// A Document is the JSON that a command prints when it fails.
type Document struct {
	Error struct {
		Kind    Kind               `json:"kind"`
		Message string             `json:"message"`
		Details []specfile.Problem `json:"details,omitempty"`
	} `json:"error"`
}

// NewDocument returns the JSON form of an error.
func NewDocument(k Kind, err error) (d Document) {
	problems := Problems(err)
	d.Error.Kind, d.Error.Message, d.Error.Details = k, err.Error(), problems
	if len(problems) > 0 {
		d.Error.Message = headline(problems)
	}
	return d
}

// headline summarizes problems in one line.
func headline(problems []specfile.Problem) string {
	first := problems[0]
	text := first.Message
	if at := first.At(); at != "" {
		text = at + ": " + text
	}
	if more := len(problems) - 1; more > 0 {
		text += fmt.Sprintf(" (and %s)", format.Plural(more, "more problem"))
	}
	return text
}
