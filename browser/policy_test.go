package browser

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// ruled is a team with a rule that a person may change while it works.
const ruled = `
name: ruled
model: scripted
inputs:
  claim: {text: "Water in the kitchen.", classification: confidential}
agents:
  - {name: intake, accepts: confidential, systemPrompt: You read claims.}
  - {name: letters, accepts: confidential, systemPrompt: You write letters.}
tasks:
  - title: Extract
    assignee: intake
    uses: [claim]
    description: Extract the facts.
    outputSchema: {type: object, properties: {event: {type: string}, internal_notes: {type: string}}, required: [event, internal_notes]}
  - {title: Write, assignee: letters, dependsOn: [Extract], description: Write the letter.}
policy:
  rules:
    - {name: notes-stay, from: intake, to: letters, block: [internal_notes]}
  assert: [internal_notes never reaches letters]
`

func TestAPolicyIsRefusedAndAnotherTaken(t *testing.T) {
	t.Parallel()
	extract := make(gate)
	m := newModel(t, map[string]func(*modelCall){
		"Extract": func(c *modelCall) {
			c.await(extract)
			c.write(`{"event": "a leak in the kitchen", "internal_notes": "NOTEOFTHEHOUSE"}`)
		},
		"Write": says("Dear customer, we pay."),
	})
	f := newFolder(t, map[string]string{"team.yaml": ruled})
	s := f.serve(t, m.env(), "team.yaml")
	p := s.open(t, wide, "#/runs")
	startRun(p)
	run := eval[string](p, `location.hash`)
	p.until(`document.querySelector(".node.n-in_progress")`)
	p.click(".tabs a", "Policy")
	p.until(`document.querySelector("#policy-json")`)
	require.Contains(t, p.text(".rules"), "internal_notes")

	// What holds for a pair, and from which rule.
	p.do(`document.querySelector("#pair-from").value = "intake"; document.querySelector("#pair-to").value = "letters"`)
	p.click(".policy button", "Show")
	p.showsIn(".pair-answer", "notes-stay")

	// Each problem is shown; nothing has changed.
	p.allow("status of 422", "status of 409", "status of 412")
	p.write("#policy-json", `{"rules": [
  {"from": "intake", "to": "nobody", "block": ["internal_notes"]},
  {"from": "strangers", "to": "letters", "block": ["internal_notes"]}
]}`)
	p.click(".policy button[type=submit]", "Replace the policy")
	p.until(`document.querySelectorAll(".policy .problems li").length >= 2`)
	problems := p.text(".policy .problems")
	require.Contains(t, problems, "/rules/0/to")
	require.Contains(t, problems, "/rules/1/from")
	p.click(".policy .problems button", "/rules/1/from")
	require.Contains(t, eval[string](p, `(() => { const a = document.querySelector("#policy-json"); return a.value.slice(a.selectionStart, a.selectionEnd); })()`), "strangers")

	// The assertions of the run hold over the new policy, too.
	p.write("#policy-json", `{"rules": []}`)
	p.click(".policy button[type=submit]", "Replace the policy")
	p.showsIn(".policy [role=alert]", "internal_notes")

	// One that withholds more is taken, and the next prompt is built by it.
	p.write("#policy-json", `{"rules": [{"name": "notes-stay", "from": "intake", "to": "letters", "block": ["internal_notes", "event"]}]}`)
	p.write("#policy-reason", "the event is not for the letter")
	p.click(".policy button[type=submit]", "Replace the policy")
	p.showsIn(".toast", "The policy holds")
	close(extract)
	p.visit(run)
	p.showsIn(".summary .status", "ok")
	require.Len(t, m.seen("Write"), 1)
	require.NotContains(t, m.seen("Write")[0], "a leak in the kitchen")
	require.NotContains(t, m.seen("Write")[0], "NOTEOFTHEHOUSE")
	p.click(".node .title", "Write")
	p.showsIn(".sources .source.withheld", "/event")
}
