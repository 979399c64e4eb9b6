package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEachTestIsInOneStep checks where tests run: in a package that starts goroutines, in one whose test does so through a
// function, in one with a test of the same name, where a test uses package slowtest, and where
// a property is drawn less often in the fast suite.
func TestEachTestIsInOneStep(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"starts/a.go":        "package starts\nfunc f() { go f() }",
		"starts/a_test.go":   "package starts\nfunc TestA(t *testing.T) { slowtest.Only(t) }",
		"waits/a.go":         "package waits\nfunc f() {}",
		"waits/a_test.go":    "package waits\nfunc TestSeveral(t *testing.T) { several() }\nfunc TestOne(t *testing.T) {}",
		"waits/b_test.go":    "package waits_test\nfunc several() { var g sync.WaitGroup; g.Go(func() {}) }",
		"same/a_test.go":     "package same\nfunc TestSeveral(t *testing.T) {}\nfunc size() int { return slowtest.Every(2) }\nfunc TestSize(t *testing.T) { size() }",
		"code/a.go":          "package code",
		"draws/a_test.go":    "package draws\nfunc init() { slowtest.Checks(9) }\nfunc TestLaw(t *testing.T) { rapid.Check(t, nil) }\nfunc TestB(t *testing.T) {}",
		"all/a_test.go":      "package all\nfunc TestAll(t *testing.T) { rapid.Check(t, nil) }",
		"testdata/a_test.go": "package testdata\nfunc TestSeveral(t *testing.T) {}",
	} {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for step, want := range map[string]string{
		"packages":   "./starts",
		"concurrent": "-run=^(TestSeveral)$ ./same ./waits",
		"rest":       "-skip=^(TestSeveral)$ ./all ./draws ./same ./waits",
		"slow":       "-run=^(TestA|TestLaw|TestSize)$ ./draws ./same ./starts",
	} {
		got, err := arguments(root, step)
		require.NoError(t, err)
		require.Equal(t, want, got, step)
	}
	_, err := arguments(root, "fast")
	require.ErrorContains(t, err, `unknown step "fast"`)
}
