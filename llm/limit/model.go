package limit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/callwait"
	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/internal/tokencount"
	"github.com/runteam/runteam/llm"
)

// defaultMaxWait bounds how long calls wait for an endpoint that refuses all of them.
const defaultMaxWait = 2 * time.Minute

// maxRefusedAlone is how often one call may be refused while others succeed. The endpoint
// may never accept it, for instance if it has more tokens than the limit.
const maxRefusedAlone = 8

// Model returns a model that calls m when the limits of its endpoint allow it, and
// calls it again when the endpoint refuses a call because of its rate limit. Models
// with the same base URL share limits: that of their method Endpoint() string. A model
// without a base URL has limits of its own. A call that streamed a part of its reply is
// not made again. The returned model has the Endpoint of m. A nil m makes every call fail
// with [llm.ErrNoModel].
//
// maxWait bounds how long calls wait for an endpoint that refuses all of them, counted
// from the first refusal; zero means 2 minutes. If no call may begin before that time, all
// waiting calls end with an error of kind "rate limited".
func (g *Group) Model(m llm.Model, maxWait time.Duration) llm.Model {
	if m == nil {
		m = llm.ModelFunc(nil)
	}
	l := &limited{group: g, model: m, maxWait: cmp.Or(max(maxWait, 0), defaultMaxWait), key: endpoint.Normalize(endpoint.Of(m))}
	if l.key == "" {
		l.own = &endpointState{}
	}
	return l
}

// limited is a model whose calls wait for the limits of its endpoint.
type limited struct {
	group   *Group
	model   llm.Model
	maxWait time.Duration
	key     string         // normalized base URL
	own     *endpointState // used if the model has no base URL
}

// Endpoint returns the base URL of the model that is called.
func (l *limited) Endpoint() string { return endpoint.Of(l.model) }

// Endpoints returns the base URLs that the model calls.
func (l *limited) Endpoints() []string { return endpoint.All(l.model) }

// Call waits until the endpoint may be called, and calls it. A nil ctx is an error.
func (l *limited) Call(ctx context.Context, req llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
	if ctx == nil {
		return llm.Response{}, errors.New("limit: the context is nil; use context.Background")
	}
	e := l.own
	if e == nil {
		e = l.group.join(l.key)
		defer l.group.part(e)
	}
	expected := tokencount.Estimate(&req)
	c := &call{maxWait: l.maxWait, estimate: expected.InputTokens + expected.OutputTokens}
	for {
		a, err := e.enter(ctx, c)
		if err != nil {
			return llm.Response{}, err
		}
		res, err := l.try(ctx, e, a, c, req, emit)
		if !c.retry {
			return res, err
		}
	}
}

// try makes one call. The call counts as ended when it returns or when ctx ends, so
// that a model that ignores ctx does not block other calls.
func (l *limited) try(ctx context.Context, e *endpointState, a *admission, c *call, req llm.Request, emit func(llm.Delta) error) (res llm.Response, err error) {
	o, tokens := failed, a.estimate // if the model panics
	stop := context.AfterFunc(ctx, func() { e.end(a, c, failed, a.estimate) })
	defer func() {
		stop()
		e.end(a, c, o, tokens)
	}()
	c.retry = false
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
	case refusal.Kind == callfault.RateLimited:
		o, tokens, c.last = refused, 0, refusal
		c.retry = !emitted && refusal.Usage == (llm.Usage{})
	default:
		used = refusal.Usage
	}
	if used != (llm.Usage{}) {
		tokens = used.InputTokens + used.OutputTokens
	}
	return res, err
}

// A call is one call of a model, with all its attempts.
type call struct {
	maxWait      time.Duration
	estimate     int        // tokens
	notified     time.Time  // the end of the wait that was reported last
	last         *llm.Error // the last refusal; nil if there is none
	retry        bool       // the call is to be made again
	refusedAlone int        // how often it was refused although other calls succeeded
	seen         int        // successes of the endpoint at its last refusal
}

// count counts a refusal. successes are those of the endpoint so far.
func (c *call) count(successes int) {
	if successes > c.seen {
		c.refusedAlone++
	}
	c.seen = successes
}

// minNotice is the shortest wait that is reported.
const minNotice = time.Second

// notify reports that the call waits until a time, unless the wait is short or was
// reported before.
func (c *call) notify(ctx context.Context, until time.Time, w callwait.Wait) {
	if w.For >= minNotice && until.Sub(c.notified) >= minNotice {
		c.notified = until
		callwait.Notify(ctx, w)
	}
}

// canceled returns the error of a call whose context ended while it waited.
func (c *call) canceled(ctx context.Context) error {
	if c.last != nil {
		return fmt.Errorf("%w while waiting to try again after: %w", context.Cause(ctx), c.last)
	}
	return fmt.Errorf("%w while waiting for the limits of the endpoint", context.Cause(ctx))
}
