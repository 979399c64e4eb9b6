package limit

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/quota"
	"github.com/runteam/runteam/llm"
)

// A Pool is where processes share the limits of endpoints, such as a journal. It stores a text for each endpoint.
type Pool interface {
	// UpdateLimits replaces the text of an endpoint by what update returns, in one transaction, unless it is the same.
	// update gets the time of the pool, and the text, which is empty at first. It may be called again, and the last call
	// counts.
	UpdateLimits(ctx context.Context, endpoint string, update func(now time.Time, stored []byte) []byte) error
}

const (
	lookInterval = 500 * time.Millisecond // between looks at the pool while an endpoint is used
	minInterval  = 100 * time.Millisecond // the same, if there is news
	lookTime     = 2 * time.Second        // limits one look
)

// Share makes the limits hold for all processes together that share them with the same pool, until leave is called. So does
// the wait that an endpoint asks one of them for. Each process may use a part of the limits: as much as any other, but no more
// than it needs while others need more. Of the limits that several processes set for an endpoint, the lowest holds, also for
// processes that set none.
//
// leave gives the part of this process back, and takes up to 4 seconds if the pool cannot be reached. The part of a process that
// ends otherwise is given back after 5 seconds. What a process has used counts on for a minute. If the pool cannot be reached, the process keeps the part that it
// had last, and calls wait if it never had one.
//
// Share applies to endpoints that no call uses then. While calls use an endpoint, a goroutine looks at the pool twice each
// second. Of several pools, the one counts that was given first. A group shared with two journals of one database has one
// part of its limits.
func (g *Group) Share(pool Pool) (leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.process == "" {
		g.process = uuid.NewString()
	}
	one := &pool
	g.pools = append(g.pools, one)
	return sync.OnceFunc(func() { g.leave(one) })
}

// leave ends the use of a pool.
func (g *Group) leave(pool *Pool) {
	g.mu.Lock()
	g.pools = slices.DeleteFunc(g.pools, func(p *Pool) bool { return p == pool })
	var all []*endpointState
	if len(g.pools) == 0 {
		for _, e := range g.endpoints {
			all = append(all, e)
		}
	}
	g.mu.Unlock()
	var wg sync.WaitGroup
	for _, e := range all {
		wg.Go(func() { e.leave(*pool) })
	}
	wg.Wait()
}

// pool returns the pool that counts; nil if there is none.
func (g *Group) pool() Pool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.pools) == 0 {
		return nil
	}
	return *g.pools[0]
}

// A share is what a pool lets the process use of one endpoint.
type share struct {
	group    *Group
	endpoint string        // normalized
	news     chan struct{} // makes the process look at once

	looks sync.Mutex // held during a look

	// The fields below are guarded by endpointState.mu.
	shared  bool      // the process shares the limits of the endpoint
	looking bool      // a goroutine looks at the pool
	idle    bool      // no call uses the endpoint
	begun   time.Time // the last look
	taken   time.Time // the last look that succeeded; zero for none
	failed  bool      // the last look did not
	free    bool      // what the process does not use was given back
	told    bool      // the pool knows that calls wait
	now     quota.Share
	asked   time.Time // until when the endpoint asked this process to wait
	until   time.Time // the same, of all processes
}

// startSharing begins to look at the pool, since a call uses the endpoint.
func (e *endpointState) startSharing(shared bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &e.share
	s.shared, s.idle = shared, false
	if shared && !s.looking {
		s.looking = true
		go e.look()
	}
}

// stopSharing makes the next look at the pool the last one.
func (e *endpointState) stopSharing() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.share.idle = true
}

// leave gives the share back.
func (e *endpointState) leave(pool Pool) {
	e.mu.Lock()
	shared, idle := e.share.shared, e.share.idle
	e.share.idle = true
	e.mu.Unlock()
	if shared {
		e.exchange(pool)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.share.shared, e.share.idle = false, idle
	e.share.tell()
	e.wake(len(e.queue))
}

// look looks at the pool until no call uses the endpoint.
func (e *endpointState) look() {
	for again := true; again; {
		e.share.sleep(e.lastLook())
		pool := e.share.group.pool()
		if pool != nil {
			e.exchange(pool)
		}
		again = e.keepsLooking(pool)
	}
}

// lastLook returns when the process has looked at the pool.
func (e *endpointState) lastLook() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.share.begun
}

// keepsLooking reports whether to look again.
func (e *endpointState) keepsLooking(pool Pool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &e.share
	s.looking = pool != nil && s.shared && !(s.idle && (s.free || s.failed))
	return s.looking
}

// sleep waits until the pool is to be looked at, for the first time after the last look.
func (s *share) sleep(last time.Time) {
	for _, part := range []struct {
		after time.Duration
		news  <-chan struct{}
	}{{minInterval, nil}, {lookInterval, s.news}} {
		timer := time.NewTimer(time.Until(last.Add(part.after)))
		select {
		case <-part.news:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// tell makes the process look at the pool soon, if it does.
func (s *share) tell() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// askedToWait makes other processes learn that the endpoint asked for a wait.
func (s *share) askedToWait(until time.Time) {
	s.asked, s.until = until, until
	s.tell()
}

// exchange looks at the pool once.
func (e *endpointState) exchange(pool Pool) {
	s := &e.share
	s.looks.Lock()
	defer s.looks.Unlock()
	e.mu.Lock()
	s.begun = time.Now()
	r := e.report(s.begun)
	s.free = r.Last
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	var got quota.Share
	err := pool.UpdateLimits(ctx, s.endpoint, func(now time.Time, stored []byte) []byte {
		var text []byte
		text, got = quota.Exchange(stored, now, s.group.process, &r)
		return text
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.wake(1)
	if s.failed = err != nil; s.failed {
		return
	}
	s.taken, s.told = s.begun, r.Waiting != quota.Amounts{}
	if !r.Last {
		s.now = got
	}
	now := time.Now()
	if until := now.Add(got.Refused); got.Refused > 0 && until.Sub(s.until) > minInterval {
		s.until = until
		e.pace.pauseUntil(now, until)
		defer e.wake(len(e.queue)) // calls may now exceed their longest wait
		if e.refusal.Endpoint == "" {
			e.refusal = llm.Error{Kind: callfault.RateLimited, Status: http.StatusTooManyRequests, Endpoint: s.endpoint}
		}
	}
}

// counted is within which time calls count as one in a report.
const counted = 5 * time.Second

// report returns what the process says of the endpoint.
func (e *endpointState) report(now time.Time) quota.Report {
	e.requests.expire(now)
	e.tokens.expire(now)
	s := &e.share
	r := quota.Report{Limits: amounts(e.limits), Used: quota.Amounts{e.requests.sum, e.tokens.sum, e.running}, Refused: s.asked.Sub(now), Last: s.idle}
	if s.isUsable(now) {
		r.Share = s.now.Most
	}
	for i, w := range e.queue {
		needs := quota.Amounts{1, w.estimate, 1}
		if i == 0 {
			r.Next, r.Waited = needs, now.Sub(w.since)
		}
		for kind, n := range needs {
			r.Waiting[kind] += n
		}
	}
	r.Began = make([]quota.Began, period/counted+1)
	for kind, w := range []*window{&e.requests, &e.tokens} {
		for _, c := range w.entries {
			ago := now.Sub(c.last)
			b := &r.Began[len(r.Began)-1-int(ago/counted)]
			b.Ago = ago // those after it were later
			b.Used[kind] += c.n
		}
	}
	return r
}

func amounts(l Limits) quota.Amounts {
	return quota.Amounts{l.RequestsPerMinute, l.TokensPerMinute, l.MaxConcurrency}
}

// isUsable reports whether the share counts: it was taken lately, or the pool cannot be reached.
func (s *share) isUsable(now time.Time) bool {
	return !s.taken.IsZero() && (s.failed || !s.free && now.Sub(s.taken) <= quota.ShareTime)
}

// bounds returns the limits of all processes together, and what this one may use of them. ok is false if that is not known.
func (e *endpointState) bounds(now time.Time) (limits, most quota.Amounts, ok bool) {
	if !e.share.shared {
		return amounts(e.limits), amounts(e.limits), true
	}
	return e.share.now.Limits, e.share.now.Most, e.share.isUsable(now)
}

// shareWait returns how long a call waits, unless other processes leave more: so long, or if that is negative, about as long
// as the pool says.
func (e *endpointState) shareWait(now time.Time, wait time.Duration) time.Duration {
	s := &e.share
	if !s.shared {
		return wait
	}
	if !s.told {
		s.tell()
	}
	if left := s.taken.Add(s.now.Wait).Sub(now); wait < 0 && left > 0 {
		return left
	}
	return wait
}
