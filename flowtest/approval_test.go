package flowtest_test

import (
	"testing"
)

const approved = `name: pages
model: none
tools: {file_write: {approve: editor}}
inputs: {notes: {text: Be brief.}}
agents:
  - {name: writer, toolPreset: readwrite}
  - {name: editor, backend: {kind: person}}
  - {name: other}
tasks:
  - {title: Write, assignee: writer, uses: [notes], outputFiles: ["*.txt"], description: Write the page.}
  - {title: Other, assignee: other, description: Do something else.}
`

// What an agent passes to a tool reaches the person who approves its calls.
func TestApproversReadArguments(t *testing.T) {
	t.Parallel()
	f := load(t, approved)
	notes := f.PlantInput("notes")
	f.Reaches(notes, "editor")
	f.Never(notes, "other")
	f.Run(t)
}
