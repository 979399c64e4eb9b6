package cli

import (
	"encoding/json"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// A plan lists each way of each edge, with what it can carry, and who spawns children.
func TestPlanListsEdges(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": `
agents:
  - {name: reader, model: m, spawn: {max: 3}}
  - {name: judge, model: m, accepts: confidential}
  - {name: writer, model: m, accepts: confidential}
edges:
  - {from: reader, to: judge, bidirectional: true}
  - {from: judge, to: writer, delegate: true, maxClassification: internal}
  - {from: writer, to: reader, maxClassification: public}
  - {from: reader, to: writer, transfer: true}
tasks:
  - {title: Read, description: Read., assignee: reader}
  - {title: Judge, description: Judge., assignee: judge}
`})
	got := call{dir: dir, args: []string{"plan"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, `
edge    to      may carry     carries at most           grants
reader  judge   confidential  internal                  send_handoff
reader  writer  confidential  internal                  send_handoff, transfer_to_writer
judge   reader  internal      internal                  send_handoff
judge   writer  internal      nothing: no task uses it  send_handoff, delegate_to_agent
writer  reader  public        nothing: no task uses it  send_handoff

agent   children at a task  depth  time each  turns each
reader  at most 3           1      5m00s      20
`)
	got = call{dir: dir, args: []string{"plan", "-o", "json"}}.run(t)
	var d struct {
		Edges  []map[string]any
		Agents []struct {
			Name  string
			Spawn map[string]any
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &d))
	require.Len(t, d.Edges, 5)
	require.Equal(t, map[string]any{"from": "reader", "to": "judge", "label": "confidential", "sends": "internal", "grants": []any{"send_handoff"}}, d.Edges[0])
	require.Equal(t, map[string]any{"from": "judge", "to": "writer", "label": "internal", "grants": []any{"send_handoff", "delegate_to_agent"}}, d.Edges[3])
	require.Equal(t, map[string]any{"max": 3.0, "depth": 1.0, "timeoutMs": 300000.0, "maxTurns": 20.0}, d.Agents[0].Spawn)
	require.Nil(t, d.Agents[1].Spawn)
}

// An edge to a person is fine, and one from a person is an error that says what to write instead.
func TestPeopleSendNoHandoffs(t *testing.T) {
	t.Parallel()
	const spec = `
agents:
  - {name: writer, model: m}
  - {name: editor, backend: {kind: person}}
tasks:
  - {title: Write, description: Write., assignee: writer}
  - {title: Decide, description: Decide., assignee: editor}
edges:
`
	for edge, ok := range map[string]bool{"{from: writer, to: editor}": true, "{from: editor, to: writer}": false, "{from: writer, to: editor, bidirectional: true}": false} {
		dir := clitest.Folder(t, map[string]string{"team.yaml": spec + "  - " + edge + "\n"})
		got := call{dir: dir, args: []string{"check"}}.run(t)
		require.Equal(t, ok, got.status == exit.StatusOK, "%s %+v", edge, got)
		if !ok {
			require.Contains(t, got.stderr, `team.yaml:9:5: edge 1: "editor" is a person, who sends no handoffs`)
			require.Contains(t, got.stderr, `have a task of "writer" depend on it`)
		}
	}
}
