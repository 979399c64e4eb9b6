package engine

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// callOutside calls code of the caller in a goroutine of its own. If the code panics or
// ends its goroutine, that is an error about what was called.
func callOutside(what string, call func() error) (err error) {
	err = fmt.Errorf("%s ended its goroutine", what)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%s panicked: %v", what, p)
			}
		}()
		err = call()
	}()
	<-done
	return err
}

// runOutside calls code of the program, in a goroutine of its own. If ctx ends, it leaves the
// goroutine behind. A panic is an error without its value, which may be sensitive.
func runOutside[T any](ctx context.Context, what string, log *slog.Logger, call func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		o := outcome{err: fmt.Errorf("%s ended its goroutine", what)}
		defer func() {
			if recover() != nil {
				o = outcome{err: fmt.Errorf("%s panicked", what)}
				log.Error(what+" panicked", "stack", string(debug.Stack()))
			}
			done <- o
		}()
		o.value, o.err = call()
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
