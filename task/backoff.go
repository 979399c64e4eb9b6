package task

import (
	"math"
	"time"
)

// The delays before retries when a spec names none, and their bound.
const (
	DefaultRetryDelay   = time.Second
	DefaultRetryBackoff = 2.0
	MaxBackoff          = 30 * time.Second
)

// Backoff returns how long to wait before retry n, counted from 1: with
// d = min(delay × factor^(n−1), [MaxBackoff]) it is d/2 + random × d/2. The
// random number in [0, 1) comes from the caller, who spreads retries with it.
// A delay of zero or less means no pause; a factor below 1 counts as 1.
func Backoff(delay time.Duration, factor float64, n int, random float64) time.Duration {
	if delay <= 0 {
		return 0
	}
	if !(factor > 1) { // also NaN
		factor = 1
	}
	// A power that overflows is +Inf, which min brings back.
	d := min(float64(delay)*math.Pow(factor, float64(max(n, 1)-1)), float64(MaxBackoff))
	if !(random > 0) {
		random = 0
	}
	return time.Duration(d/2 + min(random, 1)*d/2)
}
