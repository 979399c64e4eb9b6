package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
)

// TestStoredEventsAreThoseOfTheRun checks for examples with each construct that the events which are derived from a
// stored run are exactly those that its subscribers got while it worked, in their order. A run that failed is resumed.
func TestStoredEventsAreThoseOfTheRun(t *testing.T) {
	t.Parallel()
	for _, example := range []string{
		"code-review", "customer-service", "failure", "human-approval", "incident-postmortem", "newsroom", "research", "patterns/guard", "patterns/judges",
		"patterns/lead-scoring", "patterns/map-reduce", "patterns/orchestrator-workers", "patterns/plan-execute-replan", "patterns/planned-handoffs",
	} {
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("../../examples", example))))
			var emitted, derived []string
			works := func(args ...string) int {
				got := call{dir: dir, args: append(args, "--progress", "none", "--events", args[0]+".jsonl")}.run(t)
				for line := range strings.Lines(clitest.Contents(t, filepath.Join(dir, args[0]+".jsonl"))) {
					emitted = append(emitted, withoutDetails(t, []byte(line)))
				}
				return got.status
			}
			if works("run", "team.yaml", "--offline") == exit.StatusFailed {
				works("resume")
			}
			for _, e := range storedEvents(t, filepath.Join(dir, journals.FolderName, journals.FileName)) {
				data, err := json.Marshal(e)
				require.NoError(t, err)
				derived = append(derived, withoutDetails(t, data))
			}
			require.NotEmpty(t, derived)
			require.Equal(t, emitted, derived)
		})
	}
}

// withoutDetails returns an event without what other documents have of it.
func withoutDetails(t *testing.T, line []byte) string {
	var e map[string]any
	require.NoError(t, json.Unmarshal(line, &e))
	delete(e, "receipt")
	delete(e, "call")
	data, err := json.Marshal(e)
	require.NoError(t, err)
	return string(data)
}

// storedEvents returns the events of the newest run of a journal.
func storedEvents(t *testing.T, path string) (list []event.Event) {
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	found, err := j.Find(t.Context(), "")
	require.NoError(t, err)
	tail, err := j.Tail(t.Context(), found.Run)
	require.NoError(t, err)
	for state := journal.TailReads; state == journal.TailReads; {
		var events []event.Event
		events, state, err = tail.Next(t.Context())
		require.NoError(t, err)
		list = append(list, events...)
	}
	return list
}

// The endpoint quotes personal data in an error, and events have it redacted wherever they are read.
func TestStoredEventsHaveNoPersonalData(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"team.yaml": `
name: errors
model: m
offline: script.yaml
agents: [{name: reader, systemPrompt: You read.}]
tasks: [{title: Read, assignee: reader, description: Read it.}]
`,
		"script.yaml": `
replies:
  - {status: 400, body: '{"error": {"message": "no account for ann.smith@example.com"}}'}
`,
	})
	require.Equal(t, exit.StatusFailed, call{dir: dir, args: []string{"run", "team.yaml", "--offline", "--progress", "none"}}.run(t).status)
	var messages []string
	for _, e := range storedEvents(t, filepath.Join(dir, journals.FolderName, journals.FileName)) {
		if e.Type == event.AgentComplete {
			messages = append(messages, e.Message)
		}
	}
	require.Len(t, messages, 1)
	require.Contains(t, messages[0], "no account for [REDACTED:email]")
}
