package browser

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// canaries is a team in which a word is known only with a clearance.
const canaries = `
name: canaries
model: scripted
offline: script.yaml
inputs:
  open: {text: "The harbour is public.", classification: internal}
  closed: {text: "CANARYINPUT has a debt.", classification: confidential}
agents:
  - {name: clerk, accepts: confidential, systemPrompt: You read.}
  - {name: desk, systemPrompt: You answer.}
tasks:
  - {title: Read, assignee: clerk, uses: [closed, open], description: Read it.}
  - {title: Quote, assignee: clerk, dependsOn: [Read], description: Quote it.}
  - {title: Fail, assignee: clerk, dependsOn: [Read], description: Fail.}
  - {title: Answer, assignee: desk, uses: [open], description: Answer.}
policy:
  rules: [{from: clerk, to: clerk, maxClassification: confidential}]
`

const canaryScript = `
replies:
  - {task: Read, text: "CANARYRESULT of CANARYINPUT"}
  - {task: Quote, text: "Quoted CANARYRESULT, CANARYQUOTE"}
  - {task: Fail, status: 400, body: '{"error": {"message": "CANARYERROR because of CANARYRESULT"}}'}
  - {task: Answer, text: The harbour.}
`

// Only viewers who are cleared for the label of a run see it.
func TestAViewerSeesARunWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	f := newFolder(t, map[string]string{"team.yaml": canaries, "script.yaml": canaryScript})
	_ = f.command(t.Context(), "run", "team.yaml", "--offline").Run() // a task fails
	all := f.serve(t, nil)
	run := all.newest(t)
	require.Contains(t, run.Tasks[1].Result, "CANARYQUOTE", "someone with the clearance sees it")

	s := f.serve(t, nil, "--accepts", "internal")
	p := s.open(t, wide, "#/runs")
	p.shows("internal")
	require.NotContains(t, eval[string](p, `document.documentElement.outerHTML`), run.RunID[:8])
}
