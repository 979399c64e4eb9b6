//go:build race

package engine_test

const raceDetector = true

// settingsInTest is how many settings [TestNonInterference] looks at.
const settingsInTest = 100
