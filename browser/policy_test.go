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

	// YAML is read by the server, which names the lines of problems.
	p.write("#policy-json", "# a comment\nrules:\n  - {from: intake, to: letters, block: [internal_notes]}\n  - {from: intake, to: nobody, block: [internal_notes]}\n")
	p.click(".policy button[type=submit]", "Replace the policy")
	p.click(".policy .problems button", "line 4")
	require.Contains(t, eval[string](p, `(() => { const a = document.querySelector("#policy-json"); return a.value.slice(a.selectionStart, a.selectionEnd); })()`), "nobody")
	p.write("#policy-json", "rules: [\n")
	p.click(".policy button[type=submit]", "Replace the policy")
	p.showsIn(".policy .problems", "line")

	// One that withholds more is taken, and the next prompt is built by it.
	p.write("#policy-json", "rules:\n  - name: notes-stay\n    from: intake\n    to: letters\n    block: [internal_notes, event]\n")
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

// A goal has no flow until its coordinator has planned; then the matrix is that of its tasks, by the policy that holds.
func TestAGoalHasAFlowOnceItIsPlanned(t *testing.T) {
	t.Parallel()
	plan, write := make(gate), make(gate)
	m := newModel(t, map[string]func(*modelCall){
		"": func(c *modelCall) {
			if c.turn > 1 {
				c.write("The answer.")
			} else if c.await(plan) {
				c.write(`[{"title": "Find", "description": "Find the facts.", "assignee": "finder"}, {"title": "Write", "description": "Write them.", "assignee": "writer", "dependsOn": ["Find"]}]`)
			}
		},
		"Find":  says("A fact."),
		"Write": func(c *modelCall) { c.await(write); c.write("Written.") },
	})
	f := newFolder(t, map[string]string{"team.yaml": `
name: planned
model: scripted
goal: Find the facts and then write them down.
agents: [{name: finder, systemPrompt: You find.}, {name: writer, systemPrompt: You write.}]
`})
	s := f.serve(t, m.env(), "team.yaml")
	p := s.open(t, wide, "#/runs")
	p.allow("status of 404")
	startRun(p)
	p.until(`document.querySelector(".node.n-in_progress")`)
	p.click(".tabs a", "Flow")
	p.showsIn(".flow .failure", "the run has no plan: the coordinator has not made one yet")
	close(plan)
	p.until(`document.querySelector(".matrix") || (document.querySelector(".flow .failure button")?.click(), false)`)
	p.click(`.matrix button[aria-label^="Find to writer"]`, "●")
	p.showsIn("dialog .way", "Find")
	p.do(`document.querySelector("dialog").close()`)
	digest := p.text(".flow code")

	p.click(".tabs a", "Policy")
	p.until(`document.querySelector("#policy-json")`)
	p.write("#policy-json", `{"rules": [{"name": "nothing", "from": "finder", "to": "writer", "mode": "minimal"}]}`)
	p.click(".policy button[type=submit]", "Replace the policy")
	p.showsIn(".policy", "This policy holds.")
	require.Contains(t, p.text(".rules"), "minimal")
	p.click(".policy button", digest)
	p.showsIn(".policy", "This policy was replaced.")
	p.showsIn(".policy", "No rules")
	require.False(t, eval[bool](p, `!!document.querySelector("#policy-json")`), "an earlier policy is not edited")
	p.click(".policy button", "Show the newest policy")
	p.until(`document.querySelector("#policy-json")`)
	p.click(".tabs a", "Flow")
	p.until(`document.querySelector(".matrix")`)
	p.click(`.matrix button[aria-label^="Find to writer: never"]`, "·")
	require.NotEqual(t, digest, p.text(".flow code"))
	close(write)
}
