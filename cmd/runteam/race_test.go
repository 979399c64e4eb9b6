//go:build race

package main

// raced reports whether the race detector makes all of it slow.
const raced = true
