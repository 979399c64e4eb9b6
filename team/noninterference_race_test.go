//go:build race

package team_test

// settingsInTest is how many settings [TestG54NonInterference] looks at.
const settingsInTest = 100
