package agent

import (
	"context"
	"time"

	"github.com/runteam/runteam/llm"
)

// A RetryNotice is told that a model call failed and will be made again after
// a wait; call counts from 1.
type RetryNotice func(call int, err error, wait time.Duration)

type noticeKey struct{}

// NoticeRetries returns a context under which every [LLM] tells fn of the
// model calls that it makes again, before it waits. It panics if ctx is nil.
func NoticeRetries(ctx context.Context, fn RetryNotice) context.Context {
	return context.WithValue(ctx, noticeKey{}, fn)
}

// noticing adds the context's notice, if there is one, to what is told of retries anyway.
func noticing(ctx context.Context, o llm.RetryOptions) llm.RetryOptions {
	notice, ok := ctx.Value(noticeKey{}).(RetryNotice)
	if !ok {
		return o
	}
	told := o.OnRetry
	o.OnRetry = func(call int, err error, wait time.Duration) {
		notice(call, err, wait)
		if told != nil {
			told(call, err, wait)
		}
	}
	return o
}
