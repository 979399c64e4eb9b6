//go:build !race

package engine_test

// settingsInTest is how many settings [TestNonInterference] looks at.
const settingsInTest = 700
