//go:build race

package team_test

// settingsInTest is how many settings [TestNonInterference] looks at.
const settingsInTest = 100
