package browser

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A failing team, beside that of other tests.
const failing = `
name: failing
model: m
offline: script.yaml
agents: [{name: clerk, systemPrompt: You file.}]
tasks: [{title: File, assignee: clerk, description: File it., outputSchema: {type: object}}]
`

// shownRuns returns the names of the runs that the list shows.
func shownRuns(p *tab) []string {
	p.t.Helper()
	return eval[[]string](p, `[...document.querySelectorAll(".runs .c-name bdi")].map((e) => e.textContent)`)
}

func TestRunsAreSearchedAndFiltered(t *testing.T) {
	t.Parallel()
	browser(t)
	f := newFolder(t, map[string]string{"team.yaml": filing, "script.yaml": filingScript, "failing.yaml": failing})
	f.run(t, "run", "team.yaml", "--offline")
	cmd := f.command(t.Context(), "run", "failing.yaml", "--offline", "--script", "script.yaml")
	require.Error(t, cmd.Run())
	f.run(t, "run", "team.yaml", "--offline")
	s := f.serve(t, nil)
	p := s.open(t, wide, "#/runs")
	p.until(`document.querySelectorAll(".runs tbody tr").length === 3`)

	p.write(".runs-filter input[type=search]", "FAIL")
	p.until(`document.querySelectorAll(".runs tbody tr").length === 1`)
	require.Equal(t, []string{"failing"}, shownRuns(p))
	require.Contains(t, eval[string](p, `location.hash`), "search=FAIL")
	p.reload() // the address has the filter
	p.until(`document.querySelectorAll(".runs tbody tr").length === 1 && document.querySelector(".runs-filter input[type=search]").value === "FAIL"`)
	p.click(".runs-filter button", "Clear")
	p.until(`document.querySelectorAll(".runs tbody tr").length === 3`)

	p.do(`(() => { const e = document.querySelector("#runs-status"); e.value = "ok"; e.dispatchEvent(new Event("input", { bubbles: true })); })()`)
	p.until(`document.querySelectorAll(".runs tbody tr").length === 2`)
	require.Equal(t, []string{"filing", "filing"}, shownRuns(p))
	p.write(".runs-filter .spec", "failing.yaml")
	p.showsIn(".runs .empty", "No run fits")
	p.click(".runs .empty button", "Show all runs")
	p.until(`document.querySelectorAll(".runs tbody tr").length === 3`)

	// Runs of a model without a price have no cost to compare; the other one has called none.
	p.write(".runs-filter .amount", "0")
	p.until(`document.querySelectorAll(".runs tbody tr").length === 1`)
	require.Equal(t, []string{"failing"}, shownRuns(p))
}

// A page of older runs stays as it is when new runs begin.
func TestPagesOfRunsAreStable(t *testing.T) {
	t.Parallel()
	browser(t)
	f := newFolder(t, map[string]string{"team.yaml": "name: quick\nmodel: scripted\nagents: [{name: a, systemPrompt: x}]\ntasks: [{title: T, assignee: a, description: d}]\n"})
	s := f.serve(t, nil, "team.yaml", "--offline")
	start := func(n int) {
		for range n {
			status, body := s.call(t, http.MethodPost, "/api/v1/runs", `{"spec": "quick"}`)
			require.Equal(t, http.StatusAccepted, status, "%s", body)
		}
	}
	start(104)
	p := s.open(t, wide, "#/runs")
	p.click(".runs button.more", "Show older runs")
	p.until(`document.querySelectorAll(".runs tbody tr").length === 104`)
	start(3)
	p.until(`document.querySelectorAll(".runs tbody tr").length === 107`, "no run is lost between the pages")
	require.Len(t, eval[[]string](p, `[...new Set([...document.querySelectorAll(".runs tbody tr")].map((e) => e.dataset.id))]`), 107)
	var list struct {
		Runs []struct{ RunID string }
		Next string
	}
	s.get(t, fmt.Sprintf("/runs?limit=%d", 5), &list)
	require.Equal(t, list.Runs[4].RunID, list.Next)
}
