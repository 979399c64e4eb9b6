//go:build race

package slowtest

// RaceDetector reports whether the race detector is on. It makes code some ten times as slow and
// changes what code allocates.
const RaceDetector = true
