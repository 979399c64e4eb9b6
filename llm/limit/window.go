package limit

import (
	"time"

	"github.com/runteam/runteam/internal/quota"
)

// period is how long a window counts a call.
const period = quota.Period

// resolution is the time within which calls share an entry.
const resolution = 50 * time.Millisecond

// A window is a sliding sum over the last period.
type window struct {
	entries []*entry // oldest first
	sum     int
}

// An entry counts the calls within one resolution. It expires a period after last.
type entry struct {
	first, last time.Time
	n           int
	expired     bool
}

// expire drops the entries that are a period old.
func (w *window) expire(now time.Time) {
	i := 0
	for ; i < len(w.entries) && now.Sub(w.entries[i].last) >= period; i++ {
		w.sum -= w.entries[i].n
		w.entries[i].expired = true
	}
	clear(w.entries[:i])
	w.entries = w.entries[i:]
}

// add counts n more and returns the entry that holds them.
func (w *window) add(now time.Time, n int) *entry {
	w.expire(now)
	w.sum += n
	if i := len(w.entries) - 1; i >= 0 && now.Sub(w.entries[i].first) < resolution {
		e := w.entries[i]
		e.last, e.n = now, e.n+n
		return e
	}
	e := &entry{first: now, last: now, n: n}
	w.entries = append(w.entries, e)
	return e
}

// correct adds n, which may be negative, to e.
func (w *window) correct(e *entry, n int) {
	if !e.expired {
		e.n += n
		w.sum += n
	}
}

// wait returns how long it takes until n more fit into the window under a limit. An n
// above the limit fits into an empty window.
func (w *window) wait(now time.Time, n, limit int) time.Duration {
	w.expire(now)
	excess := w.sum + min(n, limit) - limit
	for _, e := range w.entries {
		if excess <= 0 {
			break
		}
		if excess -= e.n; excess <= 0 {
			return period - now.Sub(e.last)
		}
	}
	return 0
}
