package runteam_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLinksInDocuments checks that every relative link of a document leads to a file, and to a
// heading if it names one.
func TestLinksInDocuments(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	heading := regexp.MustCompile(`(?m)^#+ (.*)$`)
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	punctuation := regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
	american := regexp.MustCompile(`(?i)\bcanceled\b`)
	documents := 0
	require.NoError(t, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && (d.Name() == "testdata" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if err != nil || filepath.Ext(name) != ".md" {
			return err
		}
		documents++
		require.Empty(t, american.FindString(code.ReplaceAllString(read(t, name), "")), "%s: prose has cancelled, with two l's (docs/decisions/0178)", name)
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(read(t, name), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := name
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(name), m[1])
				_, err := os.Stat(target)
				require.NoError(t, err, "%s links to %s", name, m[1])
			}
			if m[2] == "" {
				continue
			}
			var slugs []string
			for _, h := range heading.FindAllStringSubmatch(read(t, target), -1) {
				slugs = append(slugs, strings.ReplaceAll(punctuation.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
			}
			require.Contains(t, slugs, m[2], "%s links to a heading of %s", name, target)
		}
		return nil
	}))
	require.Greater(t, documents, 20)
}

// TestNamedTargetsExist checks that CONTRIBUTING.md and .ci/run name targets of the Makefile, all of which are phony.
func TestNamedTargetsExist(t *testing.T) {
	t.Parallel()
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[m[1]] = true
	}
	phony := regexp.MustCompile(`(?m)^\.PHONY: (.*)$`).FindStringSubmatch(read(t, "Makefile"))
	require.NotNil(t, phony)
	require.ElementsMatch(t, slices.Collect(maps.Keys(targets)), strings.Fields(phony[1]), "no target is a file")
	for _, name := range []string{"CONTRIBUTING.md", ".ci/run"} {
		named := regexp.MustCompile(`(?m)(?:^|[`+"`"+`"]|step )make ([a-z-]+)`).FindAllStringSubmatch(read(t, name), -1)
		require.Greater(t, len(named), 5, name)
		for _, m := range named {
			require.Contains(t, targets, m[1], "%s names make %s", name, m[1])
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(b)
}
