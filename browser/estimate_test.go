package browser

import (
	"strings"
	"testing"
)

// priced is a team whose model has a price, at an endpoint that is never called.
const priced = `
name: priced
model: gpt-x
baseURL: https://llm.example/v1
prices: {gpt-x: {input: 1000, output: 2000}}
inputs: {note: {}}
agents: [{name: clerk, systemPrompt: You file., maxTokens: 500}]
tasks: [{title: File, assignee: clerk, uses: [note], description: File it.}]
`

// The form that starts a run says what that may cost with the inputs so far, before anything is called.
func TestTheStartSaysWhatARunCosts(t *testing.T) {
	t.Parallel()
	browser(t)
	f := newFolder(t, map[string]string{"priced.yaml": priced, "unpriced.yaml": strings.Replace(strings.Replace(priced, "name: priced", "name: unpriced", 1), "prices: {gpt-x", "prices: {other", 1)})
	s := f.serve(t, []string{"OPENAI_API_KEY=none"}, "priced.yaml", "unpriced.yaml")
	p := s.open(t, wide, "#/runs")
	p.click("button", "Start a run")
	p.showsIn(".estimate", "Calls a paid model: gpt-x at llm.example")
	p.showsIn(".estimate", "Costs at most about $2.")
	p.showsIn(".estimate", "Without the inputs that are missing: note")
	p.write("#in-note", strings.Repeat("x", 8000))
	p.showsIn(".estimate", "Costs at most about $10.")
	p.do(`(() => { const e = document.querySelector("#start-spec"); e.value = "unpriced"; e.dispatchEvent(new Event("change", { bubbles: true })); })()`)
	p.showsIn(".estimate", "Price unknown: the spec has none under prices for gpt-x")

	offline := f.serve(t, nil, "priced.yaml", "--offline")
	q := offline.open(t, wide, "#/runs")
	q.click("button", "Start a run")
	q.showsIn(".estimate", "a script answers, so the run costs nothing")
}
