package flowtest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/flowtest"
)

// TestConditionsGrantNothing plants canaries beside the value that decides, and in a case: no prompt
// of a case has what the router wrote, and the joined task has only the case that ran.
func TestConditionsGrantNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "team.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`
agents: [{name: router}, {name: one}, {name: two}, {name: last}]
inputs: {ticket: {text: "{\"note\": \"n\"}"}}
tasks:
  - title: Route
    assignee: router
    uses: [ticket]
    description: d
    outputSchema: {type: object, required: [team, why], properties: {team: {enum: [a, b]}, why: {type: string}}, additionalProperties: false}
  - {title: A, assignee: one, description: d, when: {task: Route, path: /team, equals: a}, outputSchema: {type: object, required: [text], properties: {text: {type: string}}}}
  - {title: B, assignee: two, description: d, when: else}
  - {title: Join, assignee: last, description: d, dependsOn: [{oneOf: [A, B]}]}
assert: [input ticket never reaches last, input ticket never reaches one]
`), 0o600))
	f := flowtest.Load(t, path)
	ticket, why, text := f.PlantInput("ticket", "/note"), f.PlantResult("Route", "/why"), f.PlantResult("A", "/text")
	f.Reaches(ticket, "router")
	f.Never(ticket, "one", "two", "last")
	f.Never(why, "one", "two", "last")
	f.Reaches(text, "last", "user")
	f.Never(text, "router", "two")
	f.Run(t)
}
