package team

import (
	"sync"
	"time"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/llm/limit"
)

// calmTime is how often at most subscribers learn that calls wait for limits that
// were set, which can hold for every call of a run.
const calmTime = 30 * time.Second

// A limitLog remembers what subscribers know of endpoints that may not be called now.
// All calls that wait report that.
type limitLog struct {
	mu    sync.Mutex
	known map[string]limitNews // by the name of the endpoint
}

// limitNews is what subscribers learned last of an endpoint.
type limitNews struct{ at, until time.Time }

// isNews reports whether subscribers learn of n, which is about an endpoint.
func (l *limitLog) isNews(endpoint string, n limit.Notice, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.known[endpoint]
	if n.Until.Sub(last.until) < time.Second || !n.Refused && now.Sub(last.at) < calmTime {
		return false
	}
	if l.known == nil {
		l.known = make(map[string]limitNews)
	}
	l.known[endpoint] = limitNews{now, n.Until}
	return true
}

// limited tells subscribers that the endpoint of an exchange may not be called now.
func (r *run) limited(x *exchange, n limit.Notice) {
	name, why := n.Endpoint, "its rate limit is reached"
	if !n.Refused {
		why = "the limits that are set for it are reached"
	}
	switch urls := x.caps.Endpoints; {
	case name != "":
	case len(urls) == 1:
		name = urls[0].URL
	default:
		name = "an endpoint of " + x.caps.Agent
	}
	now := time.Now()
	if !r.limitLog.isNews(name, n, now) {
		return
	}
	r.bus.emit(event.Event{Type: event.Limited, Task: x.task.ID, Title: x.task.Title, Agent: x.caps.Agent, Attempt: x.number,
		Message: name + ": " + why + "; calls wait", Wait: n.Until.Sub(now)})
}
