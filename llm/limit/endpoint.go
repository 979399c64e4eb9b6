package limit

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/runteam/runteam/llm"
)

// An endpoint is what the calls to one endpoint share.
type endpoint struct {
	users int       // calls that wait or are made; guarded by the Group
	used  time.Time // when one of them ended; guarded by the Group

	mu       sync.Mutex // guards what follows
	limits   Limits
	queue    []*waiter // calls that wait, in the order in which they came
	running  int       // calls that are made
	requests window
	tokens   window
	pace     pace
	refusal  llm.Error // the last one
}

// A waiter is a call that waits. A value in wake says that it may wait for something
// else now.
type waiter struct{ wake chan struct{} }

// An admission is a call that began.
type admission struct {
	begun    time.Time
	number   int // in the order in which calls began
	estimate int
	tokens   *entry // which holds the estimate; nil if tokens are not counted
	ended    bool
}

// isOld reports whether an endpoint that is not in use holds nothing that matters
// now. The clock of a test may be behind that of another one.
func (e *endpoint) isOld(now time.Time) bool {
	idle := now.Sub(e.used)
	return e.users == 0 && (idle > forget || idle < 0)
}

func (e *endpoint) set(l Limits) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.limits = l
	e.wake(len(e.queue))
}

// wake lets the first n calls that wait look again.
func (e *endpoint) wake(n int) {
	for _, w := range e.queue[:min(n, len(e.queue))] {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// enter waits until a call may begin. It returns an error if the context ends, or if
// the endpoint refuses calls for longer than c waits.
func (e *endpoint) enter(ctx context.Context, c *call) (*admission, error) {
	a := &admission{estimate: c.estimate}
	e.mu.Lock()
	defer e.mu.Unlock()
	w := &waiter{wake: make(chan struct{}, 1)}
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
		n := Notice{Until: e.pace.until, Refused: true, Endpoint: e.refusal.Endpoint}
		var wait time.Duration // zero: until it is woken
		if e.queue[0] == w {
			if wait = e.setLimits(now, a); wait > 0 {
				n = Notice{Until: now.Add(wait)}
			} else if wait == 0 {
				if wait = e.pace.admit(now, a); wait == 0 {
					e.begin(now, a)
					return a, nil
				}
			}
		}
		e.mu.Unlock()
		c.notify(now, n)
		w.sleep(ctx, wait)
		e.mu.Lock()
	}
}

// sleep waits for a time, or without one until the waiter is woken.
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

// setLimits returns how long a call has to wait at least for the limits that are set;
// below zero means until another call ends.
func (e *endpoint) setLimits(now time.Time, a *admission) (wait time.Duration) {
	l := &e.limits
	if l.MaxConcurrency > 0 && e.running >= l.MaxConcurrency {
		return -1
	}
	if l.RequestsPerMinute > 0 {
		wait = e.requests.wait(now, 1, l.RequestsPerMinute)
	}
	if l.TokensPerMinute > 0 {
		wait = max(wait, e.tokens.wait(now, a.estimate, l.TokensPerMinute))
	}
	return wait
}

// begin counts a call that begins.
func (e *endpoint) begin(now time.Time, a *admission) {
	a.begun = now
	e.running++
	if e.limits.RequestsPerMinute > 0 {
		e.requests.add(now, 1)
	}
	if e.limits.TokensPerMinute > 0 {
		a.tokens = e.tokens.add(now, a.estimate)
	}
}

// An outcome says how a call ended.
type outcome int

const (
	failed   outcome = iota // says nothing of limits
	accepted                // the endpoint answered
	refused                 // the rate limit of the endpoint is exceeded
)

// end ends a call that took so many tokens. Only the first end of a call counts.
func (e *endpoint) end(a *admission, c *call, o outcome, tokens int) {
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
		c.count(e.pace.successes)
	}
	e.pace.end(a)
	if o == refused {
		e.wake(len(e.queue)) // some may give up
	} else {
		e.wake(1)
	}
}

// giveUp returns the error of a call that waits no longer, or nil.
func (e *endpoint) giveUp(now time.Time, c *call) error {
	p := &e.pace
	left := max(p.until.Sub(now), 0)
	var refusing time.Duration
	if !p.refusing.IsZero() {
		refusing = now.Sub(p.refusing)
	}
	if c.unlucky < mostUnlucky && (left == 0 || refusing+left <= c.options.Patience) {
		return nil
	}
	err := &llm.Error{Kind: llm.RateLimited, Status: e.refusal.Status, Endpoint: e.refusal.Endpoint}
	if c.last != nil {
		err = new(*c.last) // what the endpoint said of other calls is not for this one
	}
	err.RetryAfter, err.Refusing = left.Round(time.Second), max(refusing, time.Nanosecond)
	return err
}
