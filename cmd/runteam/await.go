package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// await runs f and returns what f returns, or why ctx ended if that is sooner.
//
// It is for reading files that the user named: opening or reading a pipe may
// block for ever, and neither can be interrupted. Its goroutine is then left
// behind, which is fine only because the process is about to end.
func await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if p := recover(); p != nil {
				o.err = &fault{kind: kindInternal, err: fmt.Errorf("this is a bug, please report it: %v\n%s", p, debug.Stack())}
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
		err := context.Cause(ctx)
		f := &fault{kind: kindRuntime, err: err}
		if stop, ok := errors.AsType[*interrupted](err); ok {
			f.exit = stop.status()
		}
		return none, f
	}
}
