package gate

import "time"

// Earliest returns the earlier of two expiries, where zero means never.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
