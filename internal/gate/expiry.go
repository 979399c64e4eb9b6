package gate

import (
	"time"

	"github.com/runteam/runteam/envelope"
)

// Earliest returns the earlier of two expiries, where zero means never.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// WithoutExpiry returns an envelope that does not expire, for a replay, which reads what its run read.
func WithoutExpiry(e *envelope.Envelope) *envelope.Envelope {
	h := e.Header()
	h.ExpiresAt = time.Time{}
	fresh, err := envelope.New(h, e.Open())
	if err != nil {
		return e
	}
	return fresh
}
