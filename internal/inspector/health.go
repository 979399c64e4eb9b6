package inspector

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// The paths on which anyone learns whether the server works, and nothing else.
const (
	healthPath = "/healthz" // the process serves
	readyPath  = "/readyz"  // and it can read its journal, and is not stopping
)

// The times of readiness.
const (
	readyTime  = time.Second     // for how long an answer counts, so that strangers cannot load the journal
	readyLimit = 5 * time.Second // after which a journal that does not answer counts as away
)

// readiness is whether the server is ready, as it was found last. It is safe for concurrent use.
type readiness struct {
	look  func(context.Context) error // as [Options].Ready
	drain <-chan struct{}

	mu    sync.Mutex // guards the rest
	until time.Time
	err   error
}

// check returns why the server is not ready.
func (x *readiness) check(ctx context.Context) error {
	select {
	case <-x.drain:
		return errors.New("the server is stopping")
	default:
	}
	if x.look == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if now := time.Now(); now.After(x.until) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyLimit)
		defer cancel()
		x.err = x.look(ctx)
		x.until = time.Now().Add(readyTime)
	}
	return x.err
}

// answer says whether the server works. It reports false for other requests.
func (x *readiness) answer(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != healthPath && r.URL.Path != readyPath || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if r.URL.Path == readyPath && x.check(r.Context()) != nil {
		w.Header().Set("Retry-After", retryAfter)
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "not ready\n") // the client may be gone
		return true
	}
	_, _ = io.WriteString(w, "ok\n") // the client may be gone
	return true
}
