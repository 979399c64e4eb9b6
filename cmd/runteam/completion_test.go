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

// TestCompletionsNameRunsAndTasks holds that shells complete what commands take
// from the journal, and nothing where there is none.
func TestCompletionsNameRunsAndTasks(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"team.yaml": "agents: [{name: a}]\ntasks:\n  - {title: Read all, assignee: a, description: d}\n  - {title: Tell, assignee: a, description: d, dependsOn: [Read all]}\n"})
	complete := func(words ...string) []string {
		got := call{dir: dir, bare: true, args: append([]string{"__complete"}, words...)}.run(t)
		require.Equal(t, statusOK, got.status, "%+v", got)
		var all []string
		for line := range strings.Lines(got.stdout) {
			if word, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); !strings.HasPrefix(word, ":") {
				all = append(all, word)
			}
		}
		return all
	}
	require.Empty(t, complete("show", ""))
	got := call{dir: dir, args: []string{"run", "--offline", "-o", "json"}}.run(t)
	require.Equal(t, statusOK, got.status, "%+v", got)
	id := object(t, got.stdout)["runId"].(string)[:8]

	for _, words := range [][]string{{"resume", ""}, {"replay", ""}, {"audit", "verify", ""}, {"replay", "--diff", ""}, {"resume", "--journal", ".runteam/runs.db", id[:3]}} {
		require.Equal(t, []string{id}, complete(words...), "%v", words)
	}
	for _, words := range [][]string{{"show", id, ""}, {"explain", id[:4], ""}, {"resume", "--fresh", ""}, {"replay", id, "--without", ""}} {
		require.Equal(t, []string{"Read all", "Tell"}, complete(words...), "%v", words)
	}
	require.Equal(t, []string{id, "Read all", "Tell"}, complete("show", ""))
	require.Empty(t, complete("show", id, "Tell", ""))
	require.Empty(t, complete("resume", "--journal", "nowhere.db", ""))

	got = call{dir: dir, args: []string{"run", "--offline", "--goal", "Compare."}}.run(t)
	require.Equal(t, statusOK, got.status, "%+v", got)
	require.Contains(t, strings.Join(complete("resume", "--fresh", ""), "\n"), "Compare.", "a task that the coordinator planned")
}
