package runteam_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/explanation/references.md has a row for each requirement of the reference documents. Each test
// and each file that it names exists, and each row has a test.
func TestReferencesNameTestsAndFiles(t *testing.T) {
	t.Parallel()
	known := namesOfTests(t)
	text, err := os.ReadFile("docs/explanation/references.md")
	require.NoError(t, err)
	file, rows := regexp.MustCompile("`([\\w.-]+/[\\w./-]+\\.(?:go|js))`"), 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) < 3 || strings.HasPrefix(line, "| requirement") || strings.HasPrefix(line, "| ---") {
			continue
		}
		rows++
		tests := strings.FieldsFunc(strings.Trim(cells[2], "| "), func(r rune) bool { return r == '`' || r == ',' || r == ' ' })
		for _, name := range tests {
			require.True(t, known[name], "%s names the test %s, which does not exist", cells[0], name)
		}
		require.NotEmpty(t, tests, "%s has no test", cells[0])
		for _, m := range file.FindAllStringSubmatch(cells[1], -1) {
			require.FileExists(t, m[1], cells[0])
		}
	}
	require.Greater(t, rows, 100)
}

// namesOfTests returns the names of all tests of the repository.
func namesOfTests(t *testing.T) map[string]bool {
	t.Helper()
	known, test := map[string]bool{}, regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range test.FindAllStringSubmatch(string(text), -1) {
			known[m[1]] = true
		}
		return err
	}))
	return known
}
