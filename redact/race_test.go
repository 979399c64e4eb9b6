//go:build race

package redact_test

// raceEnabled says that the race detector empties pools at random, so that allocations cannot be counted.
const raceEnabled = true
