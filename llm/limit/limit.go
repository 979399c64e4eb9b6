// Package limit limits the rate and the concurrency of calls to a model endpoint.
//
// A [Group] holds the limits of endpoints. The models that it wraps share them by
// base URL, whichever agent calls them:
//
//	var limits limit.Group
//	limits.Set("https://api.example.com/v1", limit.Limits{RequestsPerMinute: 60})
//	model = limits.Model(model, 0)
//
// Calls to one endpoint begin in the order of their arrival, as soon as [Limits] allow
// it. If the endpoint reports that its rate limit is exceeded, no call begins until the
// time that it names. If it names none, the pause is 4 seconds, doubled by each further
// refusal up to 30 seconds. Then one call at a time tests the endpoint. Once a call
// succeeds, calls begin at the rate that the endpoint accepted so far. Each success
// raises the rate and each refusal lowers it by a third. A refused call waits at the end
// of the queue and is made again.
//
// A wait ends at once when the context ends. To bound the time of a call without its
// wait, set the time limit in the model that is wrapped. A Group starts no goroutine.
package limit

import (
	"sync"
	"time"

	"github.com/runteam/runteam/internal/endpoint"
)

// Limits bound the calls to one endpoint. A zero field sets no bound.
type Limits struct {
	// RequestsPerMinute bounds how many calls begin in any 60 seconds. All of them may
	// begin at once.
	RequestsPerMinute int

	// TokensPerMinute bounds the tokens of the calls that begin in any 60 seconds. A
	// call counts with its estimate until it ends, and then with the tokens that the
	// endpoint counted. A call with an estimate above the bound begins once no other
	// call began for a minute.
	TokensPerMinute int

	// MaxConcurrency bounds how many calls run at the same time.
	MaxConcurrency int
}

// A Group holds the limits that the calls of its models share. The zero value has no
// limits and is ready for use. A Group is safe for concurrent use, and must not be
// copied after its first use.
type Group struct {
	mu        sync.Mutex
	limits    map[string]Limits // by base URL
	endpoints map[string]*endpointState
	pools     []*Pool // in which the process shares its limits
	process   string  // its ID there
}

// DefaultGroup is the Group of all agents without a Group of their own. A test with a fake
// clock must not use it.
var DefaultGroup Group

// Set replaces the limits of the endpoint with this base URL. They apply to waiting
// calls too. Negative values count as zero.
func (g *Group) Set(baseURL string, l Limits) {
	l = Limits{max(l.RequestsPerMinute, 0), max(l.TokensPerMinute, 0), max(l.MaxConcurrency, 0)}
	key := endpoint.Normalize(baseURL)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.limits == nil {
		g.limits = make(map[string]Limits)
	}
	g.limits[key] = l
	if e := g.endpoints[key]; e != nil {
		e.set(l)
	}
}

// join returns the state of an endpoint for one call, which must end with part.
func (g *Group) join(key string) *endpointState {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.endpoints[key]
	if e == nil || e.isExpired(time.Now()) {
		for key, e := range g.endpoints {
			if e.isExpired(time.Now()) {
				delete(g.endpoints, key)
			}
		}
		if g.endpoints == nil {
			g.endpoints = make(map[string]*endpointState)
		}
		e = &endpointState{limits: g.limits[key], share: share{group: g, endpoint: key, news: make(chan struct{}, 1)}}
		g.endpoints[key] = e
	}
	if e.users++; e.users == 1 {
		e.startSharing(len(g.pools) > 0)
	}
	return e
}

// part ends what join began.
func (g *Group) part(e *endpointState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.users--; e.users == 0 {
		e.stopSharing()
	}
	e.used = time.Now()
}
