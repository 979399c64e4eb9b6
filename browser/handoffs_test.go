package browser

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// press is a team of two agents that work at the same time and send to each other.
const press = `
name: press
model: scripted
agents:
  - {name: reporter, systemPrompt: You report.}
  - {name: editor, systemPrompt: You edit.}
edges:
  - {from: reporter, to: editor, bidirectional: true}
tasks:
  - {title: Report, assignee: reporter, description: Report it.}
  - {title: Edit, assignee: editor, description: Edit it.}
`

// A handoff is a line between tasks, and in the inbox of its reader, while both work.
func TestHandoffsAreShownWhileAgentsWork(t *testing.T) {
	t.Parallel()
	sent, end := make(gate), make(gate)
	m := newModel(t, map[string]func(*modelCall){
		"Report": func(c *modelCall) {
			if c.turn == 1 {
				c.sendsTo("editor", "Storm hits <b>the coast</b>.")
				return
			}
			c.await(end)
			c.write("filed")
		},
		"Edit": func(c *modelCall) {
			if c.turn == 1 {
				c.await(sent)
				c.sendsTo("reporter", "Ask for the wind.")
				return
			}
			c.await(end)
			c.write("printed")
		},
	})
	f := newFolder(t, map[string]string{"team.yaml": press})
	s := f.serve(t, m.env(), "team.yaml")
	p := s.open(t, wide, "#/runs")
	startRun(p)
	p.until(`document.querySelectorAll(".node.n-in_progress").length === 2`)
	require.Zero(t, eval[int](p, `document.querySelectorAll(".way").length`))
	p.click(".node .title", "Report")
	p.click(".subtabs button", "Handoffs")
	p.showsIn(".panel .sent summary", "unread")
	close(sent)

	// The line appears, and the panel of the sender says that it was read.
	p.until(`document.querySelectorAll(".way .line").length === 1`)
	require.Equal(t, "Report → Edit (sent while working)", eval[string](p, `document.querySelector(".way title").textContent`))
	p.until(`[...document.querySelectorAll(".panel .sent summary")].some((e) => e.textContent.includes(" read") && e.textContent.includes("Storm"))`)
	p.click(".node .title", "Edit")
	p.showsIn(".panel h3", "Inbox")
	p.click(".panel .sent summary", "Storm hits")
	p.showsIn(".panel .sent .quoted", "Storm hits <b>the coast</b>.")
	require.Zero(t, eval[int](p, `document.querySelectorAll(".sent b b, .quoted b").length`))
	p.showsIn(".panel .sent .pairs", "Edit, turn 2")
	require.NotContains(t, m.seen("Edit")[0], "Storm")
	close(end)
	p.until(`document.querySelectorAll(".node.n-completed").length === 2`)

	// After the run, the same is shown from what is stored: the editor's handoff came after the last turn of the reporter.
	p.visit(eval[string](p, `location.hash.split("/tasks")[0]`))
	p.reload()
	p.until(`document.querySelectorAll(".way .line").length === 1`)
	p.click(".node .title", "Edit")
	p.click(".subtabs button", "Handoffs")
	p.until(`[...document.querySelectorAll(".panel .sent summary")].some((e) => e.textContent.includes("unread") && e.textContent.includes("Ask for the wind"))`)
	p.do(`document.querySelector(".way .hit").dispatchEvent(new MouseEvent("click", { bubbles: true }))`)
	p.showsIn(".edge-panel h3", "1 handoff")
	p.showsIn(".edge-panel .sent summary", "Storm hits")
}
