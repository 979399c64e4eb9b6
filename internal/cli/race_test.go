//go:build race

package cli

// raced reports whether the race detector makes all of it slow.
const raced = true
