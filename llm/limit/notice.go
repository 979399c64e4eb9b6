package limit

import (
	"context"
	"time"
)

// leastNotice is how long a call waits at least for a notice.
const leastNotice = time.Second

// A Notice reports that a call waits for the limits of its endpoint.
type Notice struct {
	Until    time.Time // when it may begin; more calls may have come before it
	Refused  bool      // the endpoint refused calls; else the limits that were set make it wait
	Endpoint string    // that refused calls, as its error names it
}

type noticeKey struct{}

// WithNotice returns a context under which each call that has to wait for a second or
// more reports it to fn before it does, and again when the time changes. Calls that
// wait at the same time report it each. It panics if ctx is nil.
func WithNotice(ctx context.Context, fn func(Notice)) context.Context {
	return context.WithValue(ctx, noticeKey{}, fn)
}
