package flowtest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/flowtest"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/prompt"
)

// press is a team of which the reporter may send to the editor and the checker. Nobody's result depends on that of the
// reporter, except the archive's.
const press = `
agents:
  - {name: reporter}
  - {name: editor}
  - {name: checker}
  - {name: archive}
edges:
  - {from: reporter, to: editor}
  - {from: reporter, to: checker}
inputs:
  go: {text: go}
tasks:
  - {title: Report, assignee: reporter, uses: [go], description: d}
  - {title: Keep, assignee: archive, dependsOn: [Report], description: d}
  - {title: Edit, assignee: editor, dependsOn: [Keep], description: d}
  - {title: Check, assignee: checker, dependsOn: [Keep], description: d}
`

func TestCanariesInHandoffs(t *testing.T) {
	t.Parallel()
	require.Empty(t, failures(t, press, func(f *flowtest.Flow) {
		tip := f.PlantHandoff("Report")
		f.Reaches(tip, "editor", "checker", "user")
		f.Never(tip, "archive") // the result of the task has no handoffs
	}))
	require.Empty(t, failures(t, press, func(f *flowtest.Flow) {
		f.Reaches(f.PlantHandoff("Report"), "editor")
		f.PlantEverywhere()
	}))
	requireFailure(t, failures(t, press, func(f *flowtest.Flow) { f.Never(f.PlantHandoff("Report"), "checker") }),
		`asserted that the handoffs of "Report"`, "never reaches checker, but it is in")
	requireFailure(t, failures(t, press, func(f *flowtest.Flow) { f.Reaches(f.PlantHandoff("Report"), "archive") }), "reaches archive, but nothing that was delivered to archive has it")
	requireFailure(t, failures(t, press, func(f *flowtest.Flow) { f.Reaches(f.PlantHandoff("Edit"), "checker") }), `"editor" sends no handoffs; add an edge`)
	requireFailure(t, failures(t, press, func(f *flowtest.Flow) {
		f.Reaches(f.PlantHandoff("Report"), "editor")
		f.Agent("reporter", engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) {
			return agent.Reply{Text: "sends nothing"}, nil
		}))
	}), "was not sent: no agent called send_handoff with it")
}
