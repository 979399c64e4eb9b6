package examples_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// suggested matches a command that a run suggests.
var suggested = regexp.MustCompile(`(?m)^  (runteam .+)$`)

// TestSuggestedCommandsSucceed types what a run suggests at its end.
func TestSuggestedCommandsSucceed(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("patterns/*")
	require.NoError(t, err)
	for _, dir := range append(dirs, "claims", "newsroom", "coding-team", "incident-postmortem") {
		t.Run(filepath.ToSlash(dir), func(t *testing.T) {
			t.Parallel()
			at := filepath.Join(copyOf(t, dir), "examples", dir)
			_, log, status := runteam(t, at, "run", "--offline")
			require.Zero(t, status, log)
			_, next, _ := strings.Cut(log, ". Next:\n")
			commands := suggested.FindAllStringSubmatch(next, -1)
			require.NotEmpty(t, commands, log)
			for _, c := range commands {
				said, status := shell(t, at, c[1])
				require.Zero(t, status, "%s\n%s", c[1], said)
			}
		})
	}
}
