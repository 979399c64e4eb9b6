package browser

import (
	"net/url"
	"testing"
)

// runViews are the views of a run, as its page has them.
var runViews = []string{"", "/timeline", "/list", "/answer", "/flow", "/policy", "/events", "/compare"}

// taskTabs are the parts of the view of a task.
var taskTabs = []string{"prompt", "result", "handoffs", "activity"}

// walk shows each view of a run, the tasks with each part of them, an edge, and the list of runs, and calls
// look with each.
func walk(t testing.TB, p *tab, run *shownRun, look func(view string)) {
	t.Helper()
	base := "#/runs/" + run.RunID
	show := func(view string) {
		p.visit(view)
		look(view)
	}
	show("#/runs")
	for _, view := range runViews {
		show(base + view)
	}
	for i, task := range run.Tasks {
		for _, part := range taskTabs {
			if i > 2 && part == "activity" { // three of them will do
				continue
			}
			show(base + "/tasks/" + url.PathEscape(task.ID) + "?tab=" + part)
		}
	}
	p.visit(base + "/tasks/" + run.Tasks[len(run.Tasks)-1].ID + "?tab=handoffs")
	p.do(`for (const d of document.querySelectorAll("details")) d.open = true`)
	look("handoffs, open")
	p.visit(base)
	if eval[bool](p, `document.querySelector(".edge .hit") !== null`) {
		p.do(`document.querySelector(".edge .hit").dispatchEvent(new MouseEvent("click", { bubbles: true }))`)
		p.until(`location.hash.includes("/edges/")`)
		p.settle()
		look("an edge")
	}
}
