package files

import (
	"context"

	"github.com/runteam/runteam/internal/cli/exit"
)

// Await returns what f returns, or the cause of ctx if ctx ends first. A panic of f is an error.
//
// It is for work that cannot be interrupted, such as opening or reading a pipe that the user
// named. When ctx ends, the goroutine of f is left behind, which is fine only because the process
// is about to end.
func Await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if p := recover(); p != nil {
				o.err = exit.Bug(p)
			}
			done <- o
		}()
		o.value, o.err = f()
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		return *new(T), context.Cause(ctx)
	}
}
