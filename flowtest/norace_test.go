//go:build !race

package flowtest_test

// every is which scenarios of the corpus are tried: all of them.
const every = 1
