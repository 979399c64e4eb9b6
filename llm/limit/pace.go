package limit

import (
	"time"

	"golang.org/x/time/rate"
)

const (
	firstPause = 4 * time.Second        // the first pause, if the endpoint names no time and its rate is unknown
	leastPause = 100 * time.Millisecond // bounds on a pause of which the endpoint names no time
	mostPause  = 30 * time.Second
	leastTrust = 100 * time.Millisecond // how long a call runs at least before it counts as accepted
	forget     = 5 * time.Minute        // without a refusal; then an endpoint is no longer slowed down

	decrease = 2.0 / 3 // factor of the rate when a call is refused
	gentle   = 40      // as many successes raise a measured rate by as much as it was
	measured = 5       // as many successes measure a rate; one success doubles a rate that is a guess
)

// A pace slows the calls to one endpoint down after it refused one. The zero value
// lets all calls begin.
type pace struct {
	accepted  window // calls that succeeded
	successes int
	next      int // number of the next call

	limiter *rate.Limiter // when calls begin; nil for no bound
	step    rate.Limit    // by how much a success raises the rate

	last     time.Time // the last refusal; zero for none
	refusing time.Time // the first refusal since the last success; zero for none
	pauses   int       // since the last success
	until    time.Time // no call begins before
	known    int       // number of the first call that began after the last pause did
	probing  bool      // one call at a time begins, to try whether the pause has ended
	probe    *admission
	quick    time.Duration // how long the endpoint took to refuse calls
}

// trust returns how long a call runs before it counts as accepted. Endpoints refuse
// calls at once, and answer them much later.
func (p *pace) trust() time.Duration { return max(leastTrust, 4*p.quick) }

// admit lets a call begin, or returns how long it has to wait at least.
func (p *pace) admit(now time.Time, a *admission) time.Duration {
	if !p.last.IsZero() && now.Sub(p.last) > forget {
		*p = pace{accepted: p.accepted, successes: p.successes, next: p.next}
	}
	if d := p.until.Sub(now); d > 0 {
		return d
	}
	if p.probing && p.probe != nil {
		if d := p.probe.begun.Add(p.trust()).Sub(now); d > 0 {
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

// refuse slows the endpoint down because it refused a call. Of calls that were made
// at the same time, the first counts.
func (p *pace) refuse(now time.Time, a *admission, after time.Duration) {
	p.last = now
	p.quick = max(now.Sub(a.begun), p.quick/2)
	if p.refusing.IsZero() {
		p.refusing = now
	}
	pause := after
	if a.number >= p.known {
		if pause == 0 || p.pauses > 0 {
			pause = max(after, p.pause())
		}
		if p.limiter != nil && !p.probing {
			p.limiter.SetLimitAt(now, p.limiter.Limit()*decrease)
			p.step = p.limiter.Limit() / gentle
		}
		p.pauses++
		p.known, p.probing, p.probe = p.next, true, nil
	}
	if until := now.Add(pause); until.After(p.until) {
		p.until = until
	}
}

// pause returns how long the next pause is if the endpoint names no time: until the
// next call is due at the present rate, and twice as long after each further refusal.
func (p *pace) pause() time.Duration {
	d := firstPause
	if p.limiter != nil {
		d = max(leastPause, time.Duration(1/float64(p.limiter.Limit())*float64(time.Second)))
	}
	return min(d<<min(p.pauses, 10), mostPause)
}

// accept takes in that a call succeeded.
func (p *pace) accept(now time.Time, a *admission) {
	p.accepted.add(now, 1)
	p.successes++
	switch {
	case a.number < p.known: // it began before the pause
		return
	case p.probing:
		p.resume(now)
	case p.limiter != nil:
		p.limiter.SetLimitAt(now, p.limiter.Limit()+p.step)
	}
	p.pauses, p.refusing = 0, time.Time{}
}

// end takes in that a call ended, whichever way.
func (p *pace) end(a *admission) {
	if p.probe == a {
		p.probe = nil
	}
}

// resume lets calls begin again after a pause. The first time, their rate is that
// of the successes in the last minute, in which the pause counts.
func (p *pace) resume(now time.Time) {
	p.probing, p.probe = false, nil
	if p.limiter == nil {
		p.accepted.expire(now)
		n, since := p.accepted.sum, p.last
		if n > 0 {
			since = p.accepted.entries[0].first
		}
		r := rate.Limit(float64(max(n, 1)) / max(now.Sub(since), leastPause).Seconds())
		p.limiter, p.step = rate.NewLimiter(r, 1), r/gentle
		if n < measured {
			p.step = r
		}
	}
	p.limiter.ReserveN(now, 1) // the call that tried
}
