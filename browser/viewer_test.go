package browser

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
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

func TestAViewerSeesNothingAboveTheirClearance(t *testing.T) {
	t.Parallel()
	f := newFolder(t, map[string]string{"team.yaml": canaries, "script.yaml": canaryScript})
	_ = f.command(t.Context(), "run", "team.yaml", "--offline").Run() // a task fails
	all := f.serve(t, nil)
	run := all.newest(t)
	require.Contains(t, run.Tasks[1].Result, "CANARYQUOTE", "someone with the clearance sees it")

	s := f.serve(t, nil, "--accepts", "internal")
	p := s.open(t, wide, "#/runs")
	p.shows("internal")
	walk(t, p, &run, func(view string) {
		p.do(`for (const d of document.querySelectorAll("details")) d.open = true`)
		require.NotContains(t, eval[string](p, `document.documentElement.outerHTML`), "CANARY", view)
	})
	p.visit("#/runs/" + run.RunID + "/tasks/" + run.Tasks[0].ID + "?tab=result")
	p.showsIn(".panel", "withheld")
	p.visit("#/runs/" + run.RunID + "/tasks/" + run.Tasks[3].ID + "?tab=result")
	p.showsIn(".panel", "The harbour.")

	// A search does not say where the word is, and the export has it neither.
	for _, path := range []string{"/receipts?contains=CANARYQUOTE", "/export", "/events", "/usage", "/graph"} {
		_, body := s.call(t, http.MethodGet, "/api/v1/runs/"+run.RunID+path, "", "Accept", "application/json, text/html")
		require.NotContains(t, strings.ReplaceAll(string(body), "contains=CANARYQUOTE", ""), "CANARYINPUT", path)
		require.NotContains(t, string(body), "CANARYRESULT", path)
	}
	file := filepath.Join(t.TempDir(), "run.html")
	f.run(t, "export", run.RunID, "--html", file, "--accepts", "internal")
	exported, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(exported), "CANARY")
}
