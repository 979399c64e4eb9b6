// Package slowtest separates tests that take long from those that everyone runs.
//
// `go test ./...` skips them; `make slow` runs them.
package slowtest

import (
	"os"
	"testing"
)

// Enabled reports whether slow tests run: the environment variable RUNTEAM_SLOW is 1. A test
// that has a short and a long form uses it to choose the number of its cases.
func Enabled() bool { return os.Getenv("RUNTEAM_SLOW") == "1" }

// Only skips a test unless slow tests run.
func Only(t testing.TB) {
	t.Helper()
	if !Enabled() {
		t.Skip("slow test; make slow runs it")
	}
}
