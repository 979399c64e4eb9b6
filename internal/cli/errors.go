package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/llm"
)

// The exit statuses.
const (
	statusOK       = 0
	statusFailed   = 1 // the run ended without success
	statusUsage    = 2 // usage or a bad file; nothing was run
	statusNoRun    = 3 // could not run: no key, no endpoint, no model
	statusSIGINT   = 130
	statusSIGTERM  = 143
	maxProblemText = 100 // problems that are printed as text; JSON holds all
)

// A kind says what sort of fault ended the command, in JSON.
type kind string

// The kinds.
const (
	kindUsage      kind = "usage"
	kindValidation kind = "validation"
	kindIO         kind = "io"
	kindRuntime    kind = "runtime"
	kindInternal   kind = "internal"
)

// status returns the exit status of a kind.
func (k kind) status() int {
	switch k {
	case kindUsage, kindValidation, kindIO:
		return statusUsage
	case kindRuntime:
		return statusNoRun
	}
	return statusFailed
}

// A fault is an error that knows its kind.
type fault struct {
	kind    kind
	err     error
	ambient bool // about the environment, whichever agent met it first
	exit    int  // the exit status, if it is not that of the kind
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// usageError is a fault of how the command was called.
func usageError(format string, args ...any) error {
	return &fault{kind: kindUsage, err: fmt.Errorf(format, args...)}
}

// ended is the exit status of a command that has said everything itself.
type ended int

func (e ended) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// fail prints what ended the command, where the output expects it, and
// returns the exit status. A nil error is success.
func (a *app) fail(err error) int {
	if err == nil {
		return statusOK
	}
	if status, ok := errors.AsType[ended](err); ok {
		return int(status)
	}
	k := kindOf(err)
	problems := problemsOf(err)
	if !a.settings.json() || a.printJSON(document(k, err, problems)) != nil {
		a.complain(err, problems)
	}
	if f, ok := errors.AsType[*fault](err); ok && f.exit != 0 {
		return f.exit
	}
	return k.status()
}

// kindOf says what sort of fault an error is.
func kindOf(err error) kind {
	if f, ok := errors.AsType[*fault](err); ok {
		return f.kind
	}
	if _, ok := errors.AsType[*llm.Error](err); ok {
		return kindRuntime
	}
	if found, ok := errors.AsType[*specfile.Error](err); ok {
		for _, p := range found.Problems {
			if !errors.Is(p.Err, specfile.ErrNotFound) && !errors.Is(p.Err, specfile.ErrRead) {
				return kindValidation
			}
		}
		return kindIO
	}
	if _, ok := errors.AsType[*scripted.FileError](err); ok {
		return kindValidation
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return kindIO
	}
	return kindInternal
}

// problemsOf returns the places in files that an error is about.
func problemsOf(err error) []specfile.Problem {
	if found, ok := errors.AsType[*specfile.Error](err); ok {
		return found.Problems
	}
	return scriptProblems(err, nil)
}

// scriptProblems collects the problems of a script, which are joined.
func scriptProblems(err error, found []specfile.Problem) []specfile.Problem {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
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

// errorDocument is how JSON says that a command did not do what it was asked.
type errorDocument struct {
	Error struct {
		Kind    kind               `json:"kind"`
		Message string             `json:"message"`
		Details []specfile.Problem `json:"details,omitempty"`
	} `json:"error"`
}

func document(k kind, err error, problems []specfile.Problem) errorDocument {
	var d errorDocument
	d.Error.Kind, d.Error.Message, d.Error.Details = k, err.Error(), problems
	if len(problems) > 0 {
		d.Error.Message = headline(problems)
	}
	return d
}

// headline says in one line what is wrong with files.
func headline(problems []specfile.Problem) string {
	first := problems[0]
	text := first.Message
	if at := first.At(); at != "" {
		text = at + ": " + text
	}
	if more := len(problems) - 1; more > 0 {
		text += fmt.Sprintf(" (and %s)", plural(more, "more problem"))
	}
	return text
}

// complain prints an error for people.
func (a *app) complain(err error, problems []specfile.Problem) {
	if len(problems) == 0 {
		a.say("runteam: %s", clean(err.Error()))
		return
	}
	for i, p := range problems {
		if i == maxProblemText {
			a.say("… and %d more", len(problems)-i)
			break
		}
		a.say("%s", clean(p.Error()))
	}
	a.say("runteam: %s; nothing was run", plural(len(problems), "problem"))
}

// say prints a line on stderr.
func (a *app) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	_, _ = io.WriteString(a.screen, strings.TrimRight(text, "\n")+"\n") // there is nowhere left to say that this failed
}

// printJSON prints one JSON document on stdout.
func (a *app) printJSON(v any) error {
	return a.printDocument(func(w io.Writer) error { return json.NewEncoder(w).Encode(v) })
}
