package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/callwait"
	"github.com/runteam/runteam/internal/endpoint"
)

// RetryOptions tune [Retry]. The zero value is a good default.
type RetryOptions struct {
	Extra         int           // attempts after the first; zero means 2, below zero none
	Delay         time.Duration // before the second attempt, then doubled each time up to 30 seconds, with ±50% jitter; zero means 1 second
	MaxRetryAfter time.Duration // a longer Retry-After ends the call at once; zero means 2 minutes
}

// maxRetryDelay bounds the delay before chance.
const maxRetryDelay = 30 * time.Second

// Retry returns a model that calls m again if the error is an [*Error] that is retryable.
// It waits as long as the endpoint requires, or longer each time. A call that already
// waited for a rate limit, such as a call through package limit, is not made again. Waits
// stop when ctx is done. The usage of failed attempts is added to that of the response or
// of the last error.
//
// The returned model has the Endpoint and Endpoints of m. A nil m makes every call fail
// with [ErrNoModel].
func Retry(m Model, o RetryOptions) Model {
	if m == nil {
		m = ModelFunc(nil)
	}
	return &retrier{m, o.withDefaults()}
}

// retrier is a model whose calls are made again.
type retrier struct {
	model   Model
	options RetryOptions
}

// Call makes a call with all its attempts. A nil ctx is an error.
func (r *retrier) Call(ctx context.Context, req Request, emit func(Delta) error) (Response, error) {
	if ctx == nil {
		return Response{}, errNoContext
	}
	c := &retries{model: r.model, options: r.options, req: req, emit: emit}
	return c.call(ctx)
}

// Endpoint returns the base URL of the model that is called.
func (r *retrier) Endpoint() string { return endpoint.Of(r.model) }

// Endpoints returns the base URLs that the model calls.
func (r *retrier) Endpoints() []string { return endpoint.All(r.model) }

func (o RetryOptions) withDefaults() RetryOptions {
	if o.Extra == 0 {
		o.Extra = 2
	}
	o.Extra = max(o.Extra, 0)
	o.Delay = cmp.Or(max(o.Delay, 0), time.Second)
	o.MaxRetryAfter = cmp.Or(max(o.MaxRetryAfter, 0), 2*time.Minute)
	return o
}

// retries is one call with all its attempts.
type retries struct {
	model   Model
	options RetryOptions
	req     Request
	emit    func(Delta) error

	attempt int
	refused error // what emit answered
	last    error // what the last attempt ended with
	spent   Usage // by the attempts that failed
}

func (c *retries) call(ctx context.Context) (Response, error) {
	delays := &backoff.ExponentialBackOff{
		InitialInterval: c.options.Delay, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: maxRetryDelay,
	}
	res, err := backoff.Retry(ctx, func() (Response, error) { return c.try(ctx) },
		backoff.WithBackOff(delays),
		backoff.WithMaxTries(uint(c.options.Extra)+1),
		backoff.WithMaxElapsedTime(0), // the context is the bound
		backoff.WithNotify(func(_ error, wait time.Duration) { callwait.Notify(ctx, callwait.Wait{For: wait, Err: c.last}) }),
	)
	if err == nil {
		res.Usage = res.Usage.Add(c.spent)
		return res, nil
	}
	if ctx.Err() != nil && !errors.Is(c.last, context.Cause(ctx)) {
		return Response{}, fmt.Errorf("%w while waiting to try again after: %w", context.Cause(ctx), c.failed())
	}
	return Response{}, c.failed()
}

// try makes one attempt. The type of its error tells package backoff whether to retry.
func (c *retries) try(ctx context.Context) (Response, error) {
	c.attempt++
	res, err := c.model.Call(ctx, c.req, c.streamTo())
	if err == nil {
		return res, nil
	}
	c.last = err
	e, ok := errors.AsType[*Error](err)
	if ok {
		c.spent = c.spent.Add(e.Usage)
	}
	switch {
	case !ok || !e.Retryable() || c.refused != nil || waited(e) || e.RetryAfter > c.options.MaxRetryAfter:
		return Response{}, backoff.Permanent(err)
	case e.RetryAfter > 0:
		return Response{}, &backoff.RetryAfterError{Duration: e.RetryAfter}
	}
	return Response{}, err
}

// waited reports whether a call already waited until it gave up.
func waited(e *Error) bool {
	_, refused := errors.AsType[*callfault.RefusedError](e.Err)
	return refused
}

// streamTo returns emit with the number of the attempt, or nil.
func (c *retries) streamTo() func(Delta) error {
	if c.emit == nil {
		return nil
	}
	attempt := c.attempt
	return func(d Delta) error {
		d.Attempt = attempt
		c.refused = c.emit(d)
		return c.refused
	}
}

// failed returns the last error, with the usage of all attempts.
func (c *retries) failed() error {
	e, ok := c.last.(*Error) // not errors.AsType: a wrapped error keeps its text and its own usage
	if !ok {
		return c.last
	}
	all := *e
	all.Usage = c.spent
	return &all
}
