// Package mutants_test checks that the tests notice faults in the gate. docs/mutants.md lists
// the faults: each is a change of a few lines and the test that must fail with it.
package mutants_test

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the folder of the module.
const root = "../.."

// TestMutantsFitTheSource checks that each change still fits its file.
func TestMutantsFitTheSource(t *testing.T) {
	t.Parallel()
	for _, m := range mutants(t) {
		source, err := m.changed()
		require.NoError(t, err)
		require.NotEmpty(t, source)
	}
}

// TestMutantsAreNoticed applies one change at a time, through an overlay that leaves the source
// files as they are, and runs the test that must fail.
func TestMutantsAreNoticed(t *testing.T) {
	if os.Getenv("RUNTEAM_MUTANTS") == "" {
		t.Skip("make mutants runs it")
	}
	for _, m := range sample(t, mutants(t), os.Getenv("RUNTEAM_MUTANTS")) {
		t.Run(m.title, func(t *testing.T) {
			source, err := m.changed()
			require.NoError(t, err)
			changed, overlay := filepath.Join(t.TempDir(), "changed.go"), filepath.Join(t.TempDir(), "overlay.json")
			require.NoError(t, os.WriteFile(changed, []byte(source), 0o600))
			original, err := filepath.Abs(filepath.Join(root, m.file))
			require.NoError(t, err)
			replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(overlay, replace, 0o600))

			pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(m.test), "/", "$/^") + "$"
			args := []string{"test", "-vet=off", "-overlay", overlay, "-count=1", "-run", pattern, m.pkg}
			if drawsCases(t, filepath.Join(root, m.pkg)) {
				args = append(args, "-rapid.checks=1000") // a hundred cases may miss the change
			}
			cmd := exec.CommandContext(t.Context(), "go", args...)
			cmd.Dir = root
			out, err := cmd.CombinedOutput()
			require.NotContains(t, string(out), "[build failed]")
			require.NotContains(t, string(out), "no tests to run")
			require.Error(t, err, "%s passes with this change of %s", m.test, m.file)
		})
	}
}

// sample returns all mutants, or as many as count says, at equal distances. The first depends on the source of the gate,
// so that other changes of the gate have other samples, and equal sources the same one.
func sample(t *testing.T, all []mutant, count string) (chosen []mutant) {
	if count == "all" {
		return all
	}
	n, err := strconv.Atoi(count)
	require.NoError(t, err, "RUNTEAM_MUTANTS is a number or all")
	require.True(t, 0 < n && n <= len(all), "RUNTEAM_MUTANTS=%d: there are %d", n, len(all))
	hash := crc32.NewIEEE()
	files, err := filepath.Glob(filepath.Join(root, "internal/gate/*.go"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		_, _ = hash.Write(text)
	}
	first := int(hash.Sum32()) % len(all)
	for i := range n {
		chosen = append(chosen, all[(first+i*len(all)/n)%len(all)])
	}
	return chosen
}

// drawsCases reports whether tests of a package draw their cases with rapid.
func drawsCases(t *testing.T, dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return strings.Contains(string(text), `"pgregory.net/rapid"`)
	})
}

// A mutant is one change of a source file and the test that must fail with it.
type mutant struct {
	title    string
	pkg      string // such as ./internal/gate
	test     string // such as TestSizes or TestModes/full
	file     string // from the root of the module
	old, new string // consecutive lines
}

// mutants reads docs/mutants.md: each section of level three is one.
func mutants(t *testing.T) (list []mutant) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/mutants.md"))
	require.NoError(t, err)
	section := regexp.MustCompile("(?s)^(.*?)\n+`([^`]+)` `([^`]+)`\n+```diff\n--- (\\S+)\n(.*?)```")
	_, sections, _ := strings.Cut(string(text), "\n### ")
	for part := range strings.SplitSeq(sections, "\n### ") {
		title, _, _ := strings.Cut(part, "\n")
		fields := section.FindStringSubmatch(part)
		require.NotNil(t, fields, "%s: want a line with `package` and `test`, and a diff block that begins with --- FILE", title)
		m := mutant{title: title, pkg: fields[2], test: fields[3], file: fields[4]}
		for line := range strings.Lines(fields[5]) {
			if line[0] != '+' {
				m.old += line[1:]
			}
			if line[0] != '-' {
				m.new += line[1:]
			}
		}
		list = append(list, m)
	}
	require.NotEmpty(t, list)
	return list
}

// changed returns the source file with the change.
func (m *mutant) changed() (string, error) {
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		return "", fmt.Errorf("%s: the lines to change occur %d times in %s, want once", m.title, n, m.file)
	}
	return strings.Replace(string(source), m.old, m.new, 1), nil
}
