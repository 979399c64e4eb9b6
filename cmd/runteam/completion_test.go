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
	require.Equal(t, levels, completions(t, "check", "--log-level", ""))
}
