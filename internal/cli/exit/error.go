package exit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/runteam/runteam/internal/naming"
)

// A Kind classifies the error that ended the command, in JSON.
type Kind string

// The kinds of errors.
const (
	KindUsage      Kind = "usage"
	KindValidation Kind = "validation"
	KindIO         Kind = "io"
	KindRuntime    Kind = "runtime"
	KindInternal   Kind = "internal"
)

// Status returns the exit status for errors of this kind.
func (k Kind) Status() int {
	switch k {
	case KindUsage, KindValidation, KindIO:
		return StatusUsage
	case KindRuntime:
		return StatusNoRun
	}
	return StatusFailed
}

// An Error is an error with a kind.
type Error struct {
	Kind    Kind
	Err     error
	Ambient bool // the environment caused it, not the agent that met it first
	Status  int  // the exit status, if it differs from that of the kind
}

// Error returns the text of the wrapped error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an error of a kind, with a text as [fmt.Errorf] formats it.
func Errorf(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// Bug returns the error that reports a panic.
func Bug(recovered any) error {
	return Errorf(KindInternal, "this is a bug, please report it: %v\n%s", recovered, debug.Stack())
}

// Usagef returns an error about how the command was called.
func Usagef(format string, args ...any) error { return Errorf(KindUsage, format, args...) }

// FileError returns the error of an operation on a file, under the name by which the user
// knows the file.
func FileError(name string, err error) error {
	return Errorf(KindIO, "%s: %w", name, WithoutPath(err))
}

// WithoutPath removes the operation and the path from the error of a file operation, since the
// message names the file in the user's words.
func WithoutPath(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	if at, ok := errors.AsType[*os.LinkError](err); ok {
		return at.Err
	}
	return err
}

// WriteError describes a failure of stdout. It returns nil for nil, and for a pipe whose reader, such as head,
// closed it: the reader has what it wants, and the status is that of the command.
func WriteError(err error) error {
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return Errorf(KindInternal, "writing the result to standard output: %w", err)
}

// UnknownWord returns the error for a value that is not among the known words.
func UnknownWord(name, word string, known []string) error {
	hint := "write " + strings.Join(known[:len(known)-1], ", ") + " or " + known[len(known)-1]
	if near, ok := naming.Nearest(word, known); ok {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return Usagef("%s %q: %s", name, word, hint)
}
