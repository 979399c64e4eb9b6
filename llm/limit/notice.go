package limit

import (
	"context"
	"time"
)

// minNotice is the shortest wait that is reported.
const minNotice = time.Second

// A Notice reports that no call to an endpoint begins before Until.
type Notice struct {
	Until    time.Time
	Refused  bool   // the endpoint refused a call; false means that the limits of [Group.Set] are reached
	Endpoint string // base URL of the endpoint that refused a call; empty if Refused is false
}

type noticeKey struct{}

// WithNotice returns a context under which fn is called for each model call that has
// to wait for a second or more: before it waits, and whenever the time changes. fn may
// be called by several goroutines at once. WithNotice panics if ctx is nil.
func WithNotice(ctx context.Context, fn func(Notice)) context.Context {
	return context.WithValue(ctx, noticeKey{}, fn)
}
