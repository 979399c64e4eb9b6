package limit

import (
	"time"

	"golang.org/x/time/rate"
)

const (
	initialPause = 4 * time.Second        // first pause if the endpoint names no time and its rate is unknown
	minPause     = 100 * time.Millisecond // shortest pause if the endpoint names no time
	maxPause     = 30 * time.Second       // longest pause if the endpoint names no time
	minAccepted  = 100 * time.Millisecond // a call that runs for less does not count as accepted
	forgetAfter  = 5 * time.Minute        // calls are no longer slowed down so long after a refusal

	decrease    = 2.0 / 3 // factor that a refusal applies to the rate
	growthCalls = 40      // successes that double a measured rate
	minMeasured = 5       // successes that measure a rate; below that it is a guess, which one success doubles
)

// A pace slows down the calls to one endpoint after it refused one. The zero value
// lets all calls begin at once.
type pace struct {
	accepted  window // calls that succeeded
	successes int
	next      int // the number of the next call

	limiter *rate.Limiter // nil for no limit
	step    rate.Limit    // added to the rate by each success

	last        time.Time     // the last refusal; zero for none
	refusing    time.Time     // the first refusal since the last success; zero for none
	pauses      int           // since the last success
	until       time.Time     // the end of the pause: no call begins before
	resumedAt   int           // calls with a lower number began before the last refusal
	probing     bool          // one call at a time tests whether the endpoint accepts calls again
	probe       *admission    // that call, while it runs
	refusalTime time.Duration // how long the endpoint takes to refuse a call
}

// acceptedAfter returns how long a call must run before it counts as accepted: endpoints
// refuse calls at once, and answer much later.
func (p *pace) acceptedAfter() time.Duration { return max(minAccepted, 4*p.refusalTime) }

// admit returns zero and counts the call if it may begin now. Otherwise it returns the
// least time that the call has to wait.
func (p *pace) admit(now time.Time, a *admission) time.Duration {
	if !p.last.IsZero() && now.Sub(p.last) > forgetAfter {
		*p = pace{accepted: p.accepted, successes: p.successes, next: p.next}
	}
	if d := p.until.Sub(now); d > 0 {
		return d
	}
	if p.probing && p.probe != nil {
		if d := p.probe.begun.Add(p.acceptedAfter()).Sub(now); d > 0 {
			return d
		}
		p.resume(now)
	}
	if p.probing {
		p.probe = a
	} else if p.limiter != nil {
		r := p.limiter.ReserveN(now, 1)
		if d := r.DelayFrom(now); d > 0 {
			r.CancelAt(now)
			return d
		}
	}
	a.number = p.next
	p.next++
	return 0
}

// refuse slows down the calls after the endpoint refused one. after is the wait that
// the endpoint asked for, or zero. If calls ran at the same time, only the first
// refusal lowers the rate.
func (p *pace) refuse(now time.Time, a *admission, after time.Duration) {
	p.last = now
	p.refusalTime = max(now.Sub(a.begun), p.refusalTime/2)
	if p.refusing.IsZero() {
		p.refusing = now
	}
	pause := after
	if a.number >= p.resumedAt {
		if pause == 0 || p.pauses > 0 {
			pause = max(after, p.pause())
		}
		if p.limiter != nil && !p.probing {
			p.limiter.SetLimitAt(now, p.limiter.Limit()*decrease)
			p.step = p.limiter.Limit() / growthCalls
		}
		p.pauses++
		p.resumedAt, p.probing, p.probe = p.next, true, nil
	}
	if until := now.Add(pause); until.After(p.until) {
		p.until = until
	}
}

// pauseUntil lets no call begin before a time, since the endpoint has refused a call of another process.
func (p *pace) pauseUntil(now, until time.Time) {
	p.last = now
	if p.refusing.IsZero() {
		p.refusing = now
	}
	p.resumedAt, p.probing, p.probe = p.next, true, nil
	if until.After(p.until) {
		p.until = until
	}
}

// pause returns the length of the next pause if the endpoint names no time: until the
// next call is due at the current rate, doubled by each further refusal.
func (p *pace) pause() time.Duration {
	d := initialPause
	if p.limiter != nil {
		d = max(minPause, time.Duration(1/float64(p.limiter.Limit())*float64(time.Second)))
	}
	return min(d<<min(p.pauses, 10), maxPause)
}

// accept counts a call that succeeded, and raises the rate.
func (p *pace) accept(now time.Time, a *admission) {
	p.accepted.add(now, 1)
	p.successes++
	switch {
	case a.number < p.resumedAt: // it began before the pause
		return
	case p.probing:
		p.resume(now)
	case p.limiter != nil:
		p.limiter.SetLimitAt(now, p.limiter.Limit()+p.step)
	}
	p.pauses, p.refusing = 0, time.Time{}
}

// end lets another call be the probe if a was.
func (p *pace) end(a *admission) {
	if p.probe == a {
		p.probe = nil
	}
}

// resume lets calls begin again after a pause. The first time, it sets their rate to
// that of the successes within the last minute, pauses included.
func (p *pace) resume(now time.Time) {
	p.probing, p.probe = false, nil
	if p.limiter == nil {
		p.accepted.expire(now)
		n, since := p.accepted.sum, p.last
		if n > 0 {
			since = p.accepted.entries[0].first
		}
		r := rate.Limit(float64(max(n, 1)) / max(now.Sub(since), minPause).Seconds())
		p.limiter, p.step = rate.NewLimiter(r, 1), r/growthCalls
		if n < minMeasured {
			p.step = r
		}
	}
	p.limiter.ReserveN(now, 1) // for the probe
}
