package engine

import (
	"math"
	"time"
)

// maxBackoff bounds the delay before a retry.
const maxBackoff = 30 * time.Second

// Backoff returns how long to wait before retry n, counted from 1: with
// d = min(delay × factor^(n−1), 30 s) it is d/2 + random × d/2. The
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
	d := min(float64(delay)*math.Pow(factor, float64(max(n, 1)-1)), float64(maxBackoff))
	if !(random > 0) {
		random = 0
	}
	return time.Duration(d/2 + min(random, 1)*d/2)
}
