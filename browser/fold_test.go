package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// example returns a folder with a run of one of the examples of patterns.
func example(t testing.TB, name string) folder {
	t.Helper()
	f := newFolder(t, nil)
	require.NoError(t, os.CopyFS(string(f), os.DirFS(filepath.Join("..", "examples", "patterns", name))))
	f.run(t, "run", "--offline", "--progress", "none")
	return f
}

// exported opens an export of the newest run of a folder, or of one that args name.
func (f folder) exported(t testing.TB, args ...string) *tab {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.html")
	f.run(t, append([]string{"export", "--html", path}, args...)...)
	p := blankTab(t, wide)
	p.navigate("file://" + path)
	p.until(`document.querySelector(".node")`)
	return p
}

func TestFoldsOpenInAnExport(t *testing.T) {
	t.Parallel()
	p := example(t, "evaluator-optimizer").exported(t)
	require.Equal(t, 1, eval[int](p, `document.querySelectorAll(".node.k-loop").length`))
	p.showsIn(".node.k-loop .sub", "2 rounds")
	p.click(".node .title", "Notice")
	p.until(`[...document.querySelectorAll(".node .title")].some((e) => e.textContent === "Check#2")`)
	p.click(".folds button", "Fold Notice")
	p.until(`![...document.querySelectorAll(".node .title")].some((e) => e.textContent === "Check#2")`)
	p.do(`document.querySelector(".node.k-loop").focus()`)
	p.press(" ")
	p.until(`[...document.querySelectorAll(".node .title")].some((e) => e.textContent === "Write#1")`)
	require.Equal(t, "Write#1", eval[string](p, `document.activeElement.querySelector(".title").textContent`), "the focus stays in what was unfolded")
	p.press(" ")
	p.until(`[...document.querySelectorAll(".node .title")].every((e) => e.textContent !== "Write#1")`)
}

// nested has a loop for each item of a list, and a task that reads them all.
const nested = `
name: nested
model: scripted
offline: script.yaml
inputs: {names: {text: '["ann", "bob"]'}}
agents: [{name: solo, systemPrompt: You answer.}]
tasks:
  - title: Letters
    forEach:
      input: names
      maxItems: 5
      output: Letter
      tasks:
        - title: Letter
          repeat:
            maxRounds: 3
            until: {task: Check, path: /ok, equals: true}
            output: Draft
            tasks:
              - {title: Draft, assignee: solo, uses: [item], description: Write.}
              - {title: Check, assignee: solo, dependsOn: [Draft], description: Check., outputSchema: {type: object, properties: {ok: {type: boolean}}, required: [ok]}}
  - {title: End, assignee: solo, dependsOn: [{each: Letters}], description: End.}
`

// Of folds in folds, the outermost that is not unfolded is drawn, and has the edges of what is in it.
func TestFoldsUnfoldFromOutside(t *testing.T) {
	t.Parallel()
	f := newFolder(t, map[string]string{"team.yaml": nested, "script.yaml": "replies:\n  - {task: Check, text: '{\"ok\": true}'}\n  - {text: Done.}\n"})
	f.run(t, "run", "--offline", "--progress", "none")
	p := f.exported(t)
	drawn := func(nodes string, edges ...string) {
		t.Helper()
		p.until(`[...document.querySelectorAll(".node .title")].map((e) => e.textContent).sort().join(", ") === ` + quote(nodes))
		require.ElementsMatch(t, edges, eval[[]string](p, `[...document.querySelectorAll(".edge title")].map((e) => e.textContent)`))
	}
	drawn("End, Letter, names", "names → Letter (input)", "Letter → End")
	p.showsIn(".node.k-list .sub", "2 items")
	p.click(".node .title", "Letter")
	drawn("End, Letter[1], Letter[2], names", "names → Letter[1] (input)", "names → Letter[2] (input)", "Letter[1] → End", "Letter[2] → End")
	p.showsIn(".node.k-loop .sub", "1 rounds")
	p.do(`[...document.querySelectorAll(".node.k-loop")].find((n) => n.querySelector(".title").textContent === "Letter[2]").focus()`) // nodes out of sight may be drawn later
	p.press(" ")
	drawn("Check[2]#1, Draft[2]#1, End, Letter[1], Letter[2], names",
		"names → Letter[1] (input)", "names → Draft[2]#1 (input)", "Draft[2]#1 → Check[2]#1", "Draft[2]#1 → Letter[2]", "Check[2]#1 → Letter[2] (condition)", "Letter[1] → End", "Letter[2] → End")
	p.click(".folds button", "Fold Letter")
	drawn("End, Letter, names", "names → Letter (input)", "Letter → End")
}

// While a run works, a fold says how many items there may be, and how many there are once the list is there.
func TestFoldsOfALiveRun(t *testing.T) {
	t.Parallel()
	begin, end := make(gate), make(gate)
	m := newModel(t, map[string]func(*modelCall){
		"Plan":   func(c *modelCall) { c.await(begin); c.write(`{"list": ["a", "b", "c"]}`) },
		"Report": says("Done."),
	})
	m.any = func(c *modelCall) { c.await(end); c.write("Found.") }
	f := newFolder(t, map[string]string{"team.yaml": `
name: live
model: scripted
agents: [{name: solo, systemPrompt: You answer.}]
tasks:
  - {title: Plan, assignee: solo, description: List., outputSchema: {type: object, properties: {list: {type: array, items: {type: string}}}, required: [list]}}
  - {title: Search, assignee: solo, description: Search., forEach: {task: Plan, path: /list, as: query, maxItems: 10}}
  - {title: Report, assignee: solo, dependsOn: [{each: Search, optional: true}], description: Report.}
`})
	s := f.serve(t, m.env(), "team.yaml")
	p := s.open(t, wide, "#/runs")
	startRun(p)
	p.showsIn(".node.k-list .sub", "0 of at most 10 items")
	close(begin)
	p.showsIn(".node.k-list .sub", "3 of at most 10 items")
	close(end)
	p.showsIn(".summary .status", "ok")
	p.until(`document.querySelector(".node.k-list .sub").textContent === "3 items"`)
}

func TestAnEdgeOfAFoldOffersItsTasks(t *testing.T) {
	t.Parallel()
	f := example(t, "map-reduce")
	s := f.serve(t, nil)
	run := s.newest(t)
	p := s.open(t, wide, "#/runs/"+run.RunID)
	edge := func(name string) {
		p.until(`[...document.querySelectorAll(".edge title")].some((e) => e.textContent.startsWith(` + quote(name) + `))`)
		p.do(`[...document.querySelectorAll(".edge title")].find((e) => e.textContent.startsWith(` + quote(name) + `)).parentElement.dispatchEvent(new MouseEvent("click", { bubbles: true }))`)
	}
	edge("Plan → Search")
	p.showsIn(".edge-panel h2", "Plan → Search")
	p.showsIn(".edge-panel", "The handoffs to one of 3 tasks")
	p.click(".members button", "Search[2]")
	p.showsIn(".edge-panel h2", "Plan → Search[2]")
	p.showsIn(".edge-panel .decision", "Contract")

	edge("Search → Report")
	p.showsIn(".edge-panel h2", "Search → Report")
	p.until(`document.querySelectorAll(".edge-panel .handoff").length === 3`, "what the report has of each search")
	p.until(`document.querySelectorAll(".edge-panel .decision").length === 1`, "a decision is drawn once it is opened")

	q := f.exported(t)
	q.visit(eval[string](q, `location.hash`) + "/edges/fold%3ASearch/" + run.taskID(t, "Report"))
	q.until(`document.querySelectorAll(".edge-panel .handoff").length === 3`)
}

// The handoffs of an export say which fields were left out, without a size of anything.
func TestAnExportListsWhatWasLeftOut(t *testing.T) {
	t.Parallel()
	c := theClaims(t)
	p := folder(filepath.Join(scratch, "claims")).exported(t, c.run.RunID)
	p.visit(eval[string](p, `location.hash`) + "/tasks/" + c.run.taskID(t, "Letter to the customer") + "?tab=handoffs")
	p.until(`document.querySelector(".panel .handoff")`)
	p.do(`for (const d of document.querySelectorAll(".panel .handoff")) d.open = true`)
	p.showsIn(".panel .excluded", "/internal_notes")
	require.Zero(t, eval[int](p, `document.querySelectorAll(".panel .sizes, .panel .ho-size").length`))
}
