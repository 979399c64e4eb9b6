package flowtest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/flowtest"
	"github.com/runteam/runteam/spec"
	"github.com/runteam/runteam/task"
)

// A fake is a test whose failures are collected.
type fake struct {
	testing.TB
	errors []string
}

func (f *fake) Helper()             {}
func (f *fake) Logf(string, ...any) {}
func (f *fake) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}
func (f *fake) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

// failures runs a test of a spec in its own goroutine and returns what it failed with.
func failures(t *testing.T, text string, test func(f *flowtest.Flow)) string {
	t.Helper()
	return failuresWith(t, spec.Options{Path: "-", Stdin: strings.NewReader(text)}, test)
}

// failuresWith does what failures does with a spec in a file.
func failuresWith(t *testing.T, o spec.Options, test func(f *flowtest.Flow)) string {
	t.Helper()
	tb := &fake{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f := flowtest.LoadOptions(tb, o)
		test(f)
		f.Run(tb)
	}()
	<-done
	return strings.Join(tb.errors, "\n")
}

// requireFailure requires that a failure contains each piece, or is empty without any.
func requireFailure(t *testing.T, got string, want ...string) {
	t.Helper()
	if len(want) == 0 {
		require.Empty(t, got)
	}
	for _, w := range want {
		require.Contains(t, got, w)
	}
}

// taskPath returns a path as PlantInput takes it; none if it is empty.
func taskPath(path string) []task.Path {
	if path == "" {
		return nil
	}
	return []task.Path{task.Path(path)}
}
