package flowtest_test

import (
	"strings"
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

const loweredByApproval = `name: letters
model: none
inputs: {claim: {text: A claim., classification: confidential}}
policy:
  default: full
  declassify: [{name: team-out, from: scorer, to: writer, paths: [/team], lowerTo: internal, reason: one of two words, approve: editor}]
agents:
  - {name: scorer, accepts: confidential}
  - {name: writer}
  - {name: editor, backend: {kind: person}, accepts: confidential}
tasks:
  - title: Score
    assignee: scorer
    uses: [claim]
    description: Which team?
    outputSchema: {type: object, properties: {team: {enum: [a, b]}, why: {type: string}}, required: [team, why]}
  - title: Letters
    forEach: {input: claims, as: item, maxItems: 2}
    assignee: writer
    dependsOn: [Score]
    description: Write it.
`

// What a declassifier would deliver reaches the person who approves that, and nothing else does.
func TestApproversReadWhatIsLowered(t *testing.T) {
	t.Parallel()
	f := load(t, strings.Replace(loweredByApproval, "inputs: {", `inputs: {claims: {text: '["x", "y"]'}, `, 1))
	claim, why := f.PlantInput("claim"), f.PlantResult("Score", "/why")
	f.Never(claim, "editor")
	f.Never(why, "editor")
	f.Never(why, "writer")
	f.Run(t)
}
