package browser

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// filing is a team whose agent calls tools, and its script.
const filing = `
name: filing
model: m
offline: script.yaml
agents:
  - {name: clerk, systemPrompt: You file., tools: [file_write, file_read], allowUntrusted: [file_write, file_read]}
tasks:
  - {title: File, assignee: clerk, description: File it.}
`

const filingScript = `
replies:
  - {task: File, toolCalls: [{name: file_write, arguments: {path: note.txt, content: Mail ann@example.com}}]}
  - {task: File, toolCalls: [{name: file_read, arguments: {path: note.txt}}]}
  - {task: File, toolCalls: [{name: file_read, arguments: {path: "<b>other</b>"}}]}
  - {task: File, text: Filed.}
`

// The graph names the tools that a task has called, and the activity of the task has their arguments and results, of a
// stored run as of an exported one.
func TestToolsAreInTheGraphAndTheActivity(t *testing.T) {
	t.Parallel()
	browser(t)
	f := newFolder(t, map[string]string{"team.yaml": filing, "script.yaml": filingScript})
	f.run(t, "run", "team.yaml", "--offline")
	f.run(t, "export", "--html", "run.html")
	look := func(p *tab, mail string) {
		p.showsIn(".node .tools", "calls file_write, file_read ×2")
		p.click(".node .title", "File")
		p.click(".subtabs button", "Activity")
		p.until(`document.querySelectorAll(".panel .tool-call").length === 3`)
		p.until(`[...document.querySelectorAll(".panel .tool-call .tv")].every((e) => e.querySelector(".tv-row")?.innerText)`)
		got := eval[[]string](p, `[...document.querySelectorAll(".panel .tool-call")].map((e) => e.innerText)`)
		require.Contains(t, got[0], "complete")
		require.Contains(t, got[0], "file_write")
		require.Contains(t, got[0], `"content": "Mail `+mail+`"`)
		require.Contains(t, got[0], "bytes to note.txt.")
		require.Contains(t, got[1], "[REDACTED:email]")
		require.Contains(t, got[2], "failed")
		require.Contains(t, got[2], `"path": "<b>other</b>"`)
	}
	s := f.serve(t, nil)
	p := s.open(t, wide, "#/runs/"+s.newest(t).RunID)
	look(p, "ann@example.com")
	p.press("Escape")
	p.click(".tabs a", "Events")
	p.click(".ev-tool_start .ev-type", "")
	p.showsIn(".subtabs [aria-selected=true]", "Activity")

	q := blankTab(t, wide)
	q.navigate("file://" + f.path("run.html"))
	q.settle()
	look(q, "[REDACTED:email]") // an export redacts what its user may see, too
}
