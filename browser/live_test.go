package browser

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// spring is a team of three tasks that ask a model.
const spring = `
name: spring
model: scripted
inputs:
  report: {text: "In March, 412 boxes were sold in Lisbon.", classification: confidential}
agents:
  - {name: reader, accepts: confidential, systemPrompt: You read reports.}
  - {name: writer, accepts: confidential, systemPrompt: You write summaries.}
tasks:
  - {title: Read, assignee: reader, uses: [report], description: List the figures of the report.}
  - {title: Write, assignee: writer, dependsOn: [Read], description: Write a summary.}
  - {title: Check, assignee: reader, dependsOn: [Write, Read], description: Compare the summary with the report.}
`

// A gate is opened once by a test, and waited for by a model.
type gate chan struct{}

// startRun starts a run of the first spec from the page, and shows it.
func startRun(p *tab) {
	p.t.Helper()
	p.visit("#/runs")
	p.click("button", "Start a run")
	p.click("dialog button[type=submit]", "Start")
	p.until(`/^#\/runs\/[0-9a-f-]{36}$/.test(location.hash)`)
	p.settle()
}

func TestALiveRunIsWatched(t *testing.T) {
	t.Parallel()
	begin, goOn, end := make(gate), make(gate), make(gate)
	m := newModel(t, map[string]func(*modelCall){
		"Read": func(c *modelCall) {
			c.await(begin)
			c.write("In March they sold 412 boxes, ")
			c.await(goOn)
			c.write("all of them in Lisbon, ")
			c.write("and none elsewhere.")
			c.await(end)
		},
		"Write": says("It was a good spring in Lisbon."),
		"Check": says("The summary agrees with the report."),
	})
	f := newFolder(t, map[string]string{"team.yaml": spring})
	s := f.serve(t, m.env(), "team.yaml")
	p := s.open(t, wide, "#/runs")
	p.shows("No runs yet")

	startRun(p)
	p.showsIn(".summary .status", "running")
	p.until(`document.querySelectorAll(".node").length === 4`, "three tasks and an input")
	p.until(`document.querySelector(".node.n-in_progress .title")?.textContent === "Read"`)
	require.Equal(t, 2, eval[int](p, `document.querySelectorAll(".node.n-pending, .node.n-blocked").length`))

	p.click(".node .title", "Read")
	p.shows("waits for the model")
	close(begin)
	p.showsIn(".stream", "In March they sold 412")
	require.NotContains(t, p.text(".stream"), "Lisbon", "it was not written yet")
	p.showsIn(".conn", "streaming")
	close(goOn)
	p.showsIn(".stream", "all of them in Lisbon")

	close(end)
	p.until(`document.querySelectorAll(".node.n-completed").length === 3`)
	p.showsIn(".summary .status", "ok")
	p.until(`document.querySelector(".stream").hidden`)
	p.visit(eval[string](p, `location.hash.split("/tasks")[0]`) + "/answer")
	p.shows("The summary agrees with the report.")
	require.Contains(t, p.text(".stat-tokens"), "480")
	require.Equal(t, "completed", s.newest(t).Tasks[2].Status)
}

// Once the reader has moved the graph, a plan that arrives moves neither what is looked at nor the focus.
func TestANewPlanLeavesTheGraphInPlace(t *testing.T) {
	t.Parallel()
	plan, find := make(gate), make(gate)
	m := newModel(t, map[string]func(*modelCall){
		"": func(c *modelCall) {
			if c.turn > 1 {
				c.write("The answer.")
			} else if c.await(plan) {
				c.write(`[{"title": "Find", "description": "Find.", "assignee": "finder"}, {"title": "Search", "description": "Search.", "assignee": "finder"}, {"title": "Look", "description": "Look.", "assignee": "finder"}]`)
			}
		},
		"Find": func(c *modelCall) { c.await(find); c.write("Found.") },
	})
	m.any = says("Found.")
	f := newFolder(t, map[string]string{"team.yaml": "name: planned\nmodel: scripted\ngoal: Find the facts.\nagents: [{name: finder, systemPrompt: You find.}]\n"})
	s := f.serve(t, m.env(), "team.yaml")
	p := s.open(t, wide, "#/runs")
	startRun(p)
	p.until(`document.querySelector(".node.n-in_progress")`)
	p.drag(point{X: 300, Y: 700}, point{X: 420, Y: 640})
	p.do(`document.querySelector(".node").focus()`)
	p.press("+", "+")
	p.settle()
	place := func() []float64 {
		return eval[[]float64](p, `(() => { const r = document.querySelector(".node.k-step .body").getBoundingClientRect(); return [r.x, r.y].map(Math.round); })()`)
	}
	before := place()
	close(plan)
	p.until(`document.querySelectorAll(".node.k-task").length === 3`)
	require.Equal(t, before, place())
	require.True(t, eval[bool](p, `document.activeElement.matches(".node.k-step")`))
	close(find)
	p.showsIn(".summary .status", "ok")
}

func TestATaskIsOpenedWhileItIsDrawnAgain(t *testing.T) {
	t.Parallel()
	c := theClaims(t)
	for view, row := range map[string]string{"": ".node .title", "/list": ".tr .c-title"} {
		p := c.look(t, wide, view)
		at := p.at(row, "Decide the claim")
		p.pressMouse(at)
		// As an event of the run does, between press and release.
		p.do(`(() => { for (const e of document.querySelectorAll(".node, .vl-row")) e.replaceWith(e.cloneNode(true)); })()`)
		p.releaseMouse(at)
		p.showsIn(".panel h2", "Decide the claim")
	}
}
