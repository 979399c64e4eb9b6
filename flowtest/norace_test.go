//go:build !race

package flowtest_test

const withRace = false
