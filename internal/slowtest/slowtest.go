// Package slowtest separates tests that take long from those that everyone runs.
//
// `go test ./...` skips them; `make slow` runs them, and `make nightly` runs more cases of some.
package slowtest

import (
	"flag"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
)

// The heaps of tests are small, and a collection for every few megabytes takes a tenth of their time.
func init() {
	if os.Getenv("GOGC") == "" && !RaceDetector {
		debug.SetGCPercent(400)
	}
}

// FilesInMemory puts the temporary folders of a package's tests into memory, if the environment does not say where.
// Elsewhere journals wait for the disk, and a file takes several times as long to create.
func FilesInMemory() {
	if _, err := os.Stat("/dev/shm"); err == nil && os.Getenv("TMPDIR") == "" {
		_ = os.Setenv("TMPDIR", "/dev/shm")
	}
}

// Enabled reports whether slow tests run: the environment variable RUNTEAM_SLOW is 1 or all. A test
// that has a short and a long form uses it to choose the number of its cases.
func Enabled() bool { return os.Getenv("RUNTEAM_SLOW") == "1" || isNightly() }

// Cases returns how many cases a slow test has: so many on each commit, or with RUNTEAM_SLOW=all as many as each night.
func Cases(onCommit, nightly int) int {
	if isNightly() {
		return nightly
	}
	return onCommit
}

func isNightly() bool { return os.Getenv("RUNTEAM_SLOW") == "all" }

// Only skips a test unless slow tests run.
func Only(t testing.TB) {
	t.Helper()
	if !Enabled() {
		t.Skip("slow test; make slow runs it")
	}
}

// NotUnderRace skips a test that takes long under the race detector: one of large values or of many cases, on paths
// that other tests take under it.
func NotUnderRace(t testing.TB) {
	t.Helper()
	if RaceDetector {
		t.Skip("one goroutine: nothing to find for the race detector")
	}
}

// Every says how many cases of a table stand for one that runs: 1, and n under the race
// detector, where what it could find does not depend on which cases run.
func Every(n int) int {
	if RaceDetector {
		return n
	}
	return 1
}

// Checks sets how many cases the properties of a package draw with rapid, if neither slow tests run nor the command line
// says it. A test package that calls it in init has that number instead of 100. Each run has the same cases: some
// properties check that their cases cover a construct, which a few random cases do not always.
func Checks(n int) {
	if !Enabled() {
		_ = flag.Set("rapid.checks", strconv.Itoa(n))
		_ = flag.Set("rapid.seed", "1")
	}
}
