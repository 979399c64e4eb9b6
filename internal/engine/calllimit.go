package engine

import (
	"sync"
	"time"

	"github.com/runteam/runteam/internal/callwait"
	"github.com/runteam/runteam/internal/event"
)

// limitEventInterval is the shortest time between events about the limits that were set
// for an endpoint. Every call of a run may wait for these.
const limitEventInterval = 30 * time.Second

// A limitLog suppresses repeated events about limited endpoints, since all waiting calls
// report the same wait.
type limitLog struct {
	mu   sync.Mutex             // guards last
	last map[string]limitReport // by the name of the endpoint
}

// A limitReport is the last event about an endpoint: when it was, and its wait's end.
type limitReport struct{ at, until time.Time }

// isNews reports whether w is worth an event, and records it if so.
func (l *limitLog) isNews(endpoint string, w callwait.Wait, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.last[endpoint]
	until := now.Add(w.For)
	if until.Sub(last.until) < time.Second || !w.Refused && now.Sub(last.at) < limitEventInterval {
		return false
	}
	if l.last == nil {
		l.last = make(map[string]limitReport)
	}
	l.last[endpoint] = limitReport{now, until}
	return true
}

// reportLimit emits an event about a call of a model call that waits for its endpoint.
func (r *recorder) reportLimit(x *modelCall, w callwait.Wait) {
	name, why := w.Endpoint, "its rate limit is reached; calls wait"
	if !w.Refused { // a call that takes less than its estimate makes room earlier
		why = "the limits that are set for it are reached; calls may wait"
	}
	switch urls := x.caps.Endpoints; {
	case name != "":
	case len(urls) == 1:
		name = urls[0].URL
	default:
		name = "an endpoint of " + x.caps.Agent
	}
	now := time.Now()
	if !r.limits.isNews(name, w, now) {
		return
	}
	ev := x.eventOf(event.Limited)
	ev.Message, ev.Wait = name+": "+why, w.For
	r.bus.emit(ev)
}
