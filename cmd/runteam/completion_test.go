package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// completions returns what a shell is offered for the last word.
func completions(t *testing.T, words ...string) []string {
	t.Helper()
	got := call{args: append([]string{"__complete"}, words...)}.run(t)
	require.Equal(t, statusOK, got.status, "%+v", got)
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	for i, line := range lines {
		lines[i], _, _ = strings.Cut(line, "\t")
	}
	return lines[:len(lines)-1] // the last says what else to offer
}

func TestCompletionsAreThoseOfTheCommand(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"text", "json", "dot", "mermaid"}, completions(t, "plan", "-o", ""))
	require.Equal(t, []string{"text", "json"}, completions(t, "run", "-o", ""))
	require.Equal(t, progressModes, completions(t, "run", "--progress", ""))
	require.Empty(t, completions(t, "init", "here", ""))
	require.Empty(t, completions(t, "run", "--goal", ""))
	for _, name := range []string{"--goal", "--coordinator", "--record", "--force", "--max-token-budget", "--team"} {
		require.Contains(t, completions(t, "run", "--"), name)
	}
	require.Contains(t, completions(t, "plan", "--"), "--save")
	require.NotContains(t, completions(t, "run", "--"), "--save")
	require.NotContains(t, completions(t, "run", "--"), "--include-messages")
	require.Subset(t, completions(t, ""), []string{"init", "schema", "plan"})
	require.Equal(t, levels, completions(t, "check", "--log-level", ""))
}
