package exit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/runteam/runteam/internal/naming"
)

// A Kind says what sort of fault ended the command, in JSON.
type Kind string

// The kinds.
const (
	KindUsage      Kind = "usage"
	KindValidation Kind = "validation"
	KindIO         Kind = "io"
	KindRuntime    Kind = "runtime"
	KindInternal   Kind = "internal"
)

// Status returns the exit status of a kind.
func (k Kind) Status() int {
	switch k {
	case KindUsage, KindValidation, KindIO:
		return StatusUsage
	case KindRuntime:
		return StatusNoRun
	}
	return StatusFailed
}

// A Error is an error that knows its kind.
type Error struct {
	Kind    Kind
	Err     error
	Ambient bool // about the environment, whichever agent met it first
	Status  int  // the exit status, if it is not that of the kind
}

// Error returns the text of the wrapped error.
func (f *Error) Error() string { return f.Err.Error() }

// Unwrap returns the wrapped error.
func (f *Error) Unwrap() error { return f.Err }

// Usagef is a fault of how the command was called.
func Usagef(format string, args ...any) error {
	return &Error{Kind: KindUsage, Err: fmt.Errorf(format, args...)}
}

// WithoutPath leaves the operation and the path out of an error, which names
// a file that the user did not name.
func WithoutPath(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	if at, ok := errors.AsType[*os.LinkError](err); ok {
		return at.Err
	}
	return err
}

// WriteError words a failure of stdout, if there is one.
func WriteError(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: KindInternal, Err: fmt.Errorf("writing the result to standard output: %w", err)}
}

// IgnoreClosedPipe is what becomes of printing something that can be printed again: a
// reader that went away, as head does, has read enough.
func IgnoreClosedPipe(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// UnknownWord refuses a value that is none of the known words.
func UnknownWord(name, word string, known []string) error {
	hint := "write " + strings.Join(known[:len(known)-1], ", ") + " or " + known[len(known)-1]
	if near, ok := naming.Nearest(word, known); ok {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return Usagef("%s %q: %s", name, word, hint)
}

// Cause makes of an error that came with the end of a context why it ended.
func Cause(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}
