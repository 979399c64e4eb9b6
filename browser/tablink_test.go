package browser

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A link names the part of a task that is shown: a reload and a shared link show it again. Going through the parts
// adds nothing to the history.
func TestALinkNamesThePartOfATask(t *testing.T) {
	t.Parallel()
	c := theClaims(t)
	letter, decision := c.run.taskID(t, "Letter to the customer"), c.run.taskID(t, "Decide the claim")
	p := c.look(t, wide, "")
	chosen := func() string {
		return eval[string](p, `document.querySelector(".subtabs [aria-selected=true]").textContent`)
	}
	hash := func() string { return eval[string](p, `location.hash`) }
	p.click(".node .title", "Letter to the customer")
	p.until(`location.hash.endsWith("?tab=prompt")`)
	entries := eval[int](p, `history.length`)
	p.click(".subtabs button", "Result")
	p.until(`location.hash.endsWith("?tab=result")`)
	p.click(".subtabs button", "Handoffs")
	p.click(".subtabs button", "Result")
	p.settle()
	link := hash()
	require.Contains(t, link, "/tasks/"+letter+"?tab=result")
	p.click(".node .title", "Letter to the customer")
	p.settle()
	require.Equal(t, entries, eval[int](p, `history.length`))

	p.reload()
	p.showsIn(".subtabs [aria-selected=true]", "Result")
	c.look(t, wide, "/tasks/"+letter+"?tab=result").showsIn(".subtabs [aria-selected=true]", "Result")

	// Each entry of the history has the part that was shown last.
	p.click(".node .title", "Decide the claim")
	p.until(`location.hash.includes("` + decision + `?tab=result")`)
	p.click(".subtabs button", "Activity")
	p.until(`location.hash.endsWith("?tab=activity")`)
	p.do(`history.back()`)
	p.until(`location.hash === ` + quote(link))
	p.settle()
	require.Equal(t, "Result", chosen())
	p.do(`history.forward()`)
	p.until(`location.hash.includes("` + decision + `?tab=activity")`)
	p.settle()
	require.Equal(t, "Activity", chosen())
	p.do(`history.go(-2)`)
	p.until(`!location.hash.includes("/tasks/") && !document.querySelector(".subtabs")`)
}
