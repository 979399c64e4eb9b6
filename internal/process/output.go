package process

import (
	"cmp"
	"sync"
)

// A head keeps the first bytes that were written to it.
type head struct {
	limit int
	full  func() // called once when more was written than is kept; nil for none
	kept  []byte
	cut   bool
}

// Write keeps the start of p, and drops what is above the limit.
func (h *head) Write(p []byte) (int, error) {
	room := min(len(p), h.limit-len(h.kept))
	h.kept = append(h.kept, p[:room]...)
	if room < len(p) && !h.cut {
		if h.cut = true; h.full != nil {
			h.full()
		}
	}
	return len(p), nil
}

// A tail keeps the last bytes that were written to it.
type tail struct {
	limit int // zero means tailSize

	mu   sync.Mutex // guards the fields below
	kept []byte
	cut  bool
}

// tailSize is how much of the standard error of a server is kept.
const tailSize = 2 << 10

// Write keeps the end of p.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	limit := cmp.Or(t.limit, tailSize)
	t.cut = t.cut || len(t.kept)+len(p) > limit
	t.kept = append(t.kept, p[max(0, len(p)-limit):]...)
	if len(t.kept) > 2*limit {
		t.kept = t.kept[:copy(t.kept, t.last(limit))]
	}
	return len(p), nil
}

// String returns what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.last(cmp.Or(t.limit, tailSize)))
}

// last returns the last n bytes.
func (t *tail) last(n int) []byte { return t.kept[max(0, len(t.kept)-n):] }
