package limit

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/callwait"
	"github.com/runteam/runteam/internal/quota"
	"github.com/runteam/runteam/llm"
)

// An endpointState is the state that the calls to one endpoint share.
type endpointState struct {
	users int       // waiting and running calls; guarded by Group.mu
	used  time.Time // when the last of them ended; guarded by Group.mu

	mu       sync.Mutex // guards the fields below
	limits   Limits
	queue    []*waiter // waiting calls in the order of their arrival
	running  int       // calls that have begun and not ended
	requests window
	tokens   window
	pace     pace
	refusal  llm.Error // the last refusal
	share    share
}

// A waiter is a waiting call. A value in wake makes it check again whether it may begin.
type waiter struct {
	wake     chan struct{}
	estimate int // tokens
	since    time.Time
}

// An admission is a call that was allowed to begin.
type admission struct {
	begun    time.Time
	number   int    // of the call, in the order in which calls begin
	estimate int    // tokens
	tokens   *entry // the entry that holds the estimate; nil if tokens are not limited
	ended    bool
}

// isExpired reports whether the state of an endpoint may be dropped: no call uses it, and
// none did for a while. A time of use after now is one of another test's fake clock.
func (e *endpointState) isExpired(now time.Time) bool {
	idle := now.Sub(e.used)
	return e.users == 0 && (idle > forgetAfter || idle < 0)
}

// set replaces the limits, and makes all waiting calls check again.
func (e *endpointState) set(l Limits) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.limits = l
	e.share.tell()
	e.wake(len(e.queue))
}

// wake makes the first n waiting calls check again whether they may begin.
func (e *endpointState) wake(n int) {
	for _, w := range e.queue[:min(n, len(e.queue))] {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// enter waits until a call may begin. It returns an error if the context ends, or if
// the endpoint refuses calls for longer than the call may wait.
func (e *endpointState) enter(ctx context.Context, c *call) (*admission, error) {
	a := &admission{estimate: c.estimate}
	e.mu.Lock()
	defer e.mu.Unlock()
	w := &waiter{make(chan struct{}, 1), c.estimate, time.Now()}
	e.queue = append(e.queue, w)
	defer func() {
		first := e.queue[0] == w
		e.queue = slices.DeleteFunc(e.queue, func(other *waiter) bool { return other == w })
		if first {
			e.wake(1)
		}
	}()
	for {
		if ctx.Err() != nil {
			return nil, c.canceled(ctx)
		}
		now := time.Now()
		if err := e.giveUp(now, c); err != nil {
			return nil, err
		}
		until, reported := e.pace.until, callwait.Wait{Refused: true, Endpoint: e.refusal.Endpoint}
		var wait time.Duration // zero means until it is woken
		if e.queue[0] == w {
			if wait = e.limitWait(now, a); wait > 0 {
				until, reported = now.Add(wait), callwait.Wait{}
			} else if wait == 0 {
				if wait = e.pace.admit(now, a); wait == 0 {
					e.begin(now, a)
					return a, nil
				}
			}
		}
		e.mu.Unlock()
		reported.For = until.Sub(now)
		c.notify(ctx, until, reported)
		w.sleep(ctx, wait)
		e.mu.Lock()
	}
}

// sleep waits until d has passed, the waiter is woken or ctx ends. A d of zero never passes.
func (w *waiter) sleep(ctx context.Context, d time.Duration) {
	var due <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-w.wake:
	case <-due:
	}
}

// limitWait returns the least time that a call has to wait for the limits that the
// caller set. A negative time means until another call ends, or other processes leave more.
func (e *endpointState) limitWait(now time.Time, a *admission) (wait time.Duration) {
	limits, most, ok := e.bounds(now)
	if !ok {
		e.share.tell()
		return -1
	}
	if limits[quota.Calls] > 0 && e.running >= most[quota.Calls] {
		return e.shareWait(now, -1)
	}
	counts, needed := [...]*window{quota.Requests: &e.requests, quota.Tokens: &e.tokens}, [...]int{1, a.estimate}
	for kind, w := range counts {
		needs := min(needed[kind], limits[kind])
		if needs > most[kind] {
			return e.shareWait(now, -1)
		}
		if limits[kind] > 0 {
			wait = max(wait, w.wait(now, needs, most[kind]))
		}
	}
	if wait > 0 {
		wait = e.shareWait(now, wait)
	}
	return wait
}

// begin counts a call against the limits. Those of other processes may become known later.
func (e *endpointState) begin(now time.Time, a *admission) {
	a.begun = now
	e.running++
	if e.limits.RequestsPerMinute > 0 || e.share.shared {
		e.requests.add(now, 1)
	}
	if e.limits.TokensPerMinute > 0 || e.share.shared {
		a.tokens = e.tokens.add(now, a.estimate)
	}
}

// An outcome is how a call ended, as far as it concerns the rate limit.
type outcome int

const (
	failed   outcome = iota // without evidence about the rate limit
	accepted                // the endpoint answered
	refused                 // the endpoint's rate limit is exceeded
)

// end records that a call ended with outcome o and took so many tokens. Only the first
// end of a call counts.
func (e *endpointState) end(a *admission, c *call, o outcome, tokens int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.ended {
		return
	}
	a.ended = true
	e.running--
	if a.tokens != nil {
		e.tokens.correct(a.tokens, tokens-a.estimate)
	}
	now := time.Now()
	switch o {
	case accepted:
		e.pace.accept(now, a)
	case refused:
		e.pace.refuse(now, a, c.last.RetryAfter)
		e.refusal = *c.last
		if c.last.RetryAfter > 0 {
			e.share.askedToWait(now.Add(c.last.RetryAfter))
		}
		c.count(e.pace.successes)
	}
	e.pace.end(a)
	if o == refused {
		e.wake(len(e.queue)) // calls may now exceed their longest wait
	} else {
		e.wake(1)
	}
}

// giveUp returns the error of a call that may not wait any longer, or nil.
func (e *endpointState) giveUp(now time.Time, c *call) error {
	p := &e.pace
	left := max(p.until.Sub(now), 0)
	var refusing time.Duration
	if !p.refusing.IsZero() {
		refusing = now.Sub(p.refusing)
	}
	if c.refusedAlone < maxRefusedAlone && (left == 0 || refusing+left <= c.maxWait) {
		return nil
	}
	err := &llm.Error{Kind: callfault.RateLimited, Status: e.refusal.Status, Endpoint: e.refusal.Endpoint}
	if c.last != nil {
		err = new(*c.last) // the endpoint's words about other calls may quote their prompts
	}
	err.RetryAfter, err.Err = left.Round(time.Second), &callfault.RefusedError{For: refusing, Err: err.Err}
	return err
}
