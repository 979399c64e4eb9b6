//go:build !race

package engine_test

const raceDetector = false

// settingsInTest is how many settings [TestNonInterference] looks at.
const settingsInTest = 700
