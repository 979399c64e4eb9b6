package files

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/runteam/runteam/internal/cli/exit"
)

// Await runs f like waitOrAbandon does. If ctx ends first, the error is a fault
// with the exit status of the signal that ended it.
func Await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	value, err := waitOrAbandon(ctx, f)
	if cause := context.Cause(ctx); err != nil && errors.Is(err, cause) {
		f := &exit.Error{Kind: exit.KindRuntime, Err: cause}
		if stop, ok := errors.AsType[*exit.Interrupted](cause); ok {
			f.Status = stop.Status()
		}
		err = f
	}
	return value, err
}

// waitOrAbandon returns what f returns, or the cause of ctx if ctx ends first. A
// panic of f is an error.
//
// It is for files that the user named: opening or reading a pipe may block
// forever, and neither can be interrupted. The goroutine of f is then left
// behind, which is fine only because the process is about to end.
func waitOrAbandon[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if p := recover(); p != nil {
				o.err = &exit.Error{Kind: exit.KindInternal, Err: fmt.Errorf("this is a bug, please report it: %v\n%s", p, debug.Stack())}
			}
			done <- o
		}()
		o.value, o.err = f()
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
