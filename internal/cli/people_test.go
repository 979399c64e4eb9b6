package cli

import (
	"encoding/json"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// approvalSpec has tasks of a person between those of commands.
const approvalSpec = `
name: approval
agents:
  - {name: writer, backend: {kind: process, command: cat}}
  - {name: editor, backend: {kind: person}, accepts: confidential}
tasks:
  - {title: Draft, key: d, assignee: writer, description: Write the letter.}
  - title: Decide
    key: ok
    assignee: editor
    dependsOn: [Draft]
    description: May this letter be sent?
    outputSchema:
      type: object
      properties: {choice: {enum: [send, stop]}, urgent: {type: boolean}, pages: {type: integer}, note: {type: string}}
      required: [choice]
  - {title: Review, assignee: editor, dependsOn: [Draft], description: Say what is wrong.}
  - {title: Send, assignee: writer, dependsOn: [Decide, Review], description: Send it.}
`

// suspendedRun runs the spec away from a terminal, and returns its folder and the ID of the run.
func suspendedRun(t *testing.T) (dir, run string) {
	t.Helper()
	dir = clitest.Folder(t, map[string]string{"team.yaml": approvalSpec})
	got := call{dir: dir, args: []string{"run", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusWaiting, got.status, got.stderr)
	var doc struct {
		RunID  string
		Status string
		Tasks  []struct{ Title, Status, WaitingFor string }
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &doc))
	require.Equal(t, "suspended", doc.Status)
	require.Equal(t, "in_progress", doc.Tasks[1].Status)
	require.Equal(t, "editor", doc.Tasks[1].WaitingFor)
	require.Equal(t, "blocked", doc.Tasks[3].Status)
	require.Contains(t, got.stderr, "1 of 4 tasks completed, 2 waiting for a person")
	require.Regexp(t, "runteam answer "+doc.RunID[:8]+` Decide --question [0-9a-f]{8} --set choice=send\n`, got.stderr)
	require.Regexp(t, "runteam answer "+doc.RunID[:8]+` Review --question [0-9a-f]{8} '…'\n`, got.stderr)
	require.Contains(t, got.stderr, "runteam resume "+doc.RunID[:8]+"\n")
	return dir, doc.RunID
}
