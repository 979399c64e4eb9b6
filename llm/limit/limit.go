// Package limit answers one question: when may an endpoint be called?
//
// A [Group] holds the limits of endpoints. The models that it wraps share them by
// base URL, whichever agent calls them:
//
//	var limits limit.Group
//	limits.Set("https://api.example.com/v1", limit.Limits{RequestsPerMinute: 60})
//	model = limits.Model(model, limit.Options{})
//
// Calls to one endpoint begin in the order in which they come, as soon as the limits
// that are set allow it. If the endpoint answers that its rate limit is exceeded, no
// call begins there until the time that it names, or for 4 seconds, and then twice
// as long each time. After that one call at a time tries. Once one succeeds, calls
// begin at the rate that the endpoint accepted so far. The rate grows with each
// success and falls by a third when a call is refused. A refused call waits like the
// others and is made again.
//
// Waiting ends at once when the context ends. It is no part of a call: a time limit
// for each call belongs into the model that is wrapped. A Group starts no goroutine.
package limit

import (
	"sync"
	"time"

	"github.com/runteam/runteam/llm"
)

// Limits bound the calls to one endpoint. A field that is zero sets no bound.
type Limits struct {
	// RequestsPerMinute bounds how many calls begin in any 60 seconds. All of them may
	// begin at once.
	RequestsPerMinute int

	// TokensPerMinute bounds the tokens of the calls that begin in any 60 seconds. A
	// call counts with its estimate until it ends, and then with the tokens that the
	// endpoint counted. A call with an estimate above the bound begins when no other
	// one began for a minute.
	TokensPerMinute int

	// MaxConcurrency bounds how many calls are made at the same time.
	MaxConcurrency int
}

// A Group holds the limits that the calls of its models share. The zero value sets no
// limits and is ready for use. A Group is safe for concurrent use, and must not be
// copied after its first use.
type Group struct {
	mu        sync.Mutex
	limits    map[string]Limits // by base URL
	endpoints map[string]*endpoint
}

// Shared is the Group of all agents that are not given another one. A test with a fake
// clock needs a Group of its own.
var Shared Group

// Set bounds the calls to the endpoint with a base URL, in place of the limits that
// it had. Calls that wait follow the new ones. A value below zero counts as zero.
func (g *Group) Set(baseURL string, l Limits) {
	l = Limits{max(l.RequestsPerMinute, 0), max(l.TokensPerMinute, 0), max(l.MaxConcurrency, 0)}
	key := llm.NormalizeEndpoint(baseURL)
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

// join returns the endpoint with a key for one more call.
func (g *Group) join(key string) *endpoint {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.endpoints[key]
	if e == nil || e.isOld(time.Now()) {
		for key, e := range g.endpoints {
			if e.isOld(time.Now()) {
				delete(g.endpoints, key)
			}
		}
		if g.endpoints == nil {
			g.endpoints = make(map[string]*endpoint)
		}
		e = &endpoint{limits: g.limits[key]}
		g.endpoints[key] = e
	}
	e.users++
	return e
}

// leave ends what join began.
func (g *Group) leave(e *endpoint) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e.users--
	e.used = time.Now()
}
