//go:build race

package flowtest_test

// every is which scenarios of the corpus are tried: with the race detector, of
// which they need no more, every eighth.
const every = 8
