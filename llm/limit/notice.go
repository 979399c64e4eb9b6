package limit

import (
	"context"
	"time"
)

// leastNotice is how long a call waits at least for a notice.
const leastNotice = time.Second

// A Notice reports that no call to an endpoint begins before a time.
type Notice struct {
	Until    time.Time
	Refused  bool   // because the endpoint refused a call; else because of the limits that were set
	Endpoint string // that refused a call, as its error names it
}

type noticeKey struct{}

// WithNotice returns a context under which each call that has to wait for a second or
// more reports that to fn before it does, and again when the time changes. Calls that
// wait at the same time all report it. It panics if ctx is nil.
func WithNotice(ctx context.Context, fn func(Notice)) context.Context {
	return context.WithValue(ctx, noticeKey{}, fn)
}
