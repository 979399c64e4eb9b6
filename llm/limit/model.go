package limit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runteam/runteam/llm"
)

// DefaultPatience is how long calls wait for an endpoint that refuses all of them,
// unless told otherwise.
const DefaultPatience = 2 * time.Minute

// mostUnlucky is how often one call is refused while others succeed. The endpoint may
// never accept it, such as one with more tokens than its limit.
const mostUnlucky = 8

// Options tune [Group.Model]. The zero value is a good default.
type Options struct {
	// Endpoint is the base URL whose limits count. Empty means the one that
	// [llm.Endpoint] names.
	Endpoint string

	// Patience bounds how long calls wait for an endpoint that refuses all of them,
	// counted from the first refusal. If the next one may begin only later, all calls
	// that wait end with an error of kind [llm.RateLimited]. Zero means
	// [DefaultPatience].
	Patience time.Duration

	// Estimate returns how many tokens a call is expected to take, for
	// [Limits].TokensPerMinute. With nil, a call counts from its end.
	Estimate func(llm.Request) int
}

// Model returns a model that calls m when the limits of its endpoint allow it, and
// calls it again when the endpoint refuses a call because of its rate limit. Models
// with the same base URL share limits. A model without one shares them with no other
// model. A call that streamed a part of its reply is not made again. The returned
// model answers Endpoint as m does. A nil m makes every call fail with [llm.ErrNoModel].
func (g *Group) Model(m llm.Model, o Options) llm.Model {
	if m == nil {
		m = llm.ModelFunc(nil)
	}
	o.Patience = cmp.Or(max(o.Patience, 0), DefaultPatience)
	l := &limited{group: g, model: m, options: o, key: cmp.Or(o.Endpoint, llm.Endpoint(m))}
	if l.key = llm.NormalizeEndpoint(l.key); l.key == "" {
		l.own = &endpoint{}
	}
	return l
}

// limited is a model whose calls wait for the limits of its endpoint.
type limited struct {
	group   *Group
	model   llm.Model
	options Options
	key     string    // of the endpoint in the group
	own     *endpoint // in its place, if the endpoint has no name
}

// Endpoint returns the base URL of the model that is called.
func (l *limited) Endpoint() string { return llm.Endpoint(l.model) }

// Endpoints returns the base URLs that the model calls.
func (l *limited) Endpoints() []string { return llm.Endpoints(l.model) }

// Call makes a call when its endpoint may be called. A nil ctx is an error.
func (l *limited) Call(ctx context.Context, req llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
	if ctx == nil {
		return llm.Response{}, errors.New("limit: the context is nil; use context.Background")
	}
	e := l.own
	if e == nil {
		e = l.group.join(l.key)
		defer l.group.leave(e)
	}
	c := &call{options: &l.options}
	c.notice, _ = ctx.Value(noticeKey{}).(func(Notice))
	if l.options.Estimate != nil {
		c.estimate = l.options.Estimate(req)
	}
	for {
		a, err := e.enter(ctx, c)
		if err != nil {
			return llm.Response{}, err
		}
		res, err := l.try(ctx, e, a, c, req, emit)
		if !c.again {
			return res, err
		}
	}
}

// try makes one call. Its place is free when it returns, or when ctx ends, so that a
// model that does not heed ctx holds nobody up.
func (l *limited) try(ctx context.Context, e *endpoint, a *admission, c *call, req llm.Request, emit func(llm.Delta) error) (res llm.Response, err error) {
	o, tokens := failed, a.estimate // if the model panics
	stop := context.AfterFunc(ctx, func() { e.end(a, c, failed, a.estimate) })
	defer func() {
		stop()
		e.end(a, c, o, tokens)
	}()
	c.again = false
	emitted, given := false, emit
	if emit != nil {
		emit = func(d llm.Delta) error {
			emitted = true
			return given(d)
		}
	}
	res, err = l.model.Call(ctx, req, emit)
	used := res.Usage
	refusal, ok := errors.AsType[*llm.Error](err)
	switch {
	case err == nil:
		o = accepted
	case !ok:
	case refusal.Kind == llm.RateLimited:
		o, tokens, c.last = refused, 0, refusal
		c.again = !emitted && refusal.Usage == (llm.Usage{})
	default:
		used = refusal.Usage
	}
	if used != (llm.Usage{}) {
		tokens = used.InputTokens + used.OutputTokens
	}
	return res, err
}

// A call is one call of a model with its waiting.
type call struct {
	options  *Options
	estimate int
	notice   func(Notice) // may be nil
	notified time.Time    // Until of the last notice
	last     *llm.Error   // the last refusal; nil if there is none
	again    bool         // the call is made again
	unlucky  int          // how often it was refused although others succeeded
	seen     int          // how many had succeeded at its last refusal
}

// count takes in a refusal at which so many calls had succeeded.
func (c *call) count(successes int) {
	if successes > c.seen {
		c.unlucky++
	}
	c.seen = successes
}

// notify reports that the call waits, unless it is for a moment or was reported.
func (c *call) notify(now time.Time, n Notice) {
	if c.notice != nil && n.Until.Sub(now) >= leastNotice && n.Until.Sub(c.notified) >= leastNotice {
		c.notified = n.Until
		c.notice(n)
	}
}

// canceled returns the error of a call whose context ended while it waited.
func (c *call) canceled(ctx context.Context) error {
	if c.last != nil {
		return fmt.Errorf("%w while waiting to try again after: %w", context.Cause(ctx), c.last)
	}
	return fmt.Errorf("%w while waiting for the limits of the endpoint", context.Cause(ctx))
}
