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
	p.click(".node .title", "Notice")
	p.until(`[...document.querySelectorAll(".node .title")].some((e) => e.textContent === "Check#2")`)
	p.click(".folds button", "Fold Notice")
	p.until(`![...document.querySelectorAll(".node .title")].some((e) => e.textContent === "Check#2")`)
	p.do(`document.querySelector(".node.k-loop").focus()`)
	p.press(" ")
	p.until(`[...document.querySelectorAll(".node .title")].some((e) => e.textContent === "Write#1")`)

	// Without the drawing, the page lists what the fold consists of.
	p.reload()
	p.until(`document.querySelector(".node")`)
	p.visit(eval[string](p, `location.hash`) + "/folds/Notice")
	p.click(".members button", "Write#2")
	p.showsIn(".panel h2", "Write#2")
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
