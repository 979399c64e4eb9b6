// Package callwait reports to the supervisor of model calls that a call waits.
//
// [Observe] puts a function into a context. The wrappers of models call it with [Notify]
// before a call waits for a rate limit, and before a failed call is made again.
package callwait

import (
	"context"
	"time"
)

// A Wait is a pause of a model call.
type Wait struct {
	For      time.Duration
	Err      error  // the failure of the attempt before; nil if the call waits for a limit
	Refused  bool   // the endpoint refused a call because of its rate limit; false means that the user's limits are reached
	Endpoint string // base URL of the endpoint that refused a call; empty if Refused is false
}

type observerKey struct{}

// Observe returns a context under which fn is called before a model call waits. fn may be
// called by several goroutines at once.
func Observe(ctx context.Context, fn func(Wait)) context.Context {
	return context.WithValue(ctx, observerKey{}, fn)
}

// Notify reports a wait to the observer of ctx, if it has one.
func Notify(ctx context.Context, w Wait) {
	if fn, ok := ctx.Value(observerKey{}).(func(Wait)); ok {
		fn(w)
	}
}
