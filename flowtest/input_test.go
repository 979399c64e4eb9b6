package flowtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/flowtest"
)

// ticket is a spec with a JSON input. Two agents are granted different parts of it. A note
// reaches the second one only if the first one is careless.
const ticket = `name: ticket
model: none
inputs:
  ticket: {text: '{"customer":{"name":"Jo"},"lines":[{"note":"a"},{"note":"b"}],"number":7}'}
agents:
  - {name: sorter, systemPrompt: You sort.}
  - {name: payer, systemPrompt: You pay.}
  - {name: reply, systemPrompt: You reply.}
tasks:
  - title: Sort
    assignee: sorter
    uses: [{name: ticket, need: [/lines/*/note]}]
    description: Sort it.
    outputSchema: {type: object, required: [kind, remark], properties: {kind: {enum: [bill, fault]}, remark: {type: string}}}
  - {title: Pay, assignee: payer, uses: [{name: ticket, need: [/customer/name]}], description: Pay.}
  - {title: Reply, assignee: reply, dependsOn: [{task: Sort, need: [/remark]}], description: Reply.}
`

func TestPlantInputAtPath(t *testing.T) {
	t.Parallel()
	require.Empty(t, failures(t, ticket, func(f *flowtest.Flow) {
		name, note := f.PlantInput("ticket", "/customer/name"), f.PlantInput("ticket", "/lines/1/note")
		f.Never(name, "sorter", "reply")
		f.Reaches(name, "payer")
		f.Never(note, "payer", "reply")
		f.Reaches(note, "sorter")
	}))
	for path, want := range map[string]string{
		"":             "it is one JSON value; give the path of a text in it",
		"/customer":    "the value there is not a text",
		"/number":      "the value there is not a text",
		"/lines/2":     `the value has nothing at "2"`,
		"/nobody/name": `the value has nothing at "nobody"`,
	} {
		requireFailure(t, failures(t, ticket, func(f *flowtest.Flow) { f.PlantInput("ticket", taskPath(path)...) }), want)
	}
}

func TestPathsBeginWithASlash(t *testing.T) {
	t.Parallel()
	requireFailure(t, failures(t, ticket, func(f *flowtest.Flow) {
		f.PlantInput("ticket", "number")
		f.PlantInput("ticket", "/lines/**")
		f.PlantResult("Sort", "remark")
		f.PlantText("Pay", "lines/0/note", "a text of six")
	}),
		`input "ticket": "number" is not a path, because it lacks the first slash; write "/number"`,
		`input "ticket": "/lines/**" is not the path of one value`,
		`the result of "Sort": "remark" is not a path, because it lacks the first slash; write "/remark"`,
		`the result of "Pay": "lines/0/note" is not a path, because it lacks the first slash; write "/lines/0/note"`,
	)
}

// TestCarelessAgentsRepeatTheirPrompts checks that only the schema of a result protects a
// part of an input once agents repeat what they read.
func TestCarelessAgentsRepeatTheirPrompts(t *testing.T) {
	t.Parallel()
	got := failures(t, ticket, func(f *flowtest.Flow) {
		f.Careless()
		f.Never(f.PlantInput("ticket", "/lines/1/note"), "reply")
	})
	requireFailure(t, got, `asserted that /lines/1/note of input "ticket"`, `task "Sort"`, `→ task "Reply" [-:16] → reply`, "narrow or cut what -:16 grants")
	require.Empty(t, failures(t, ticket, func(f *flowtest.Flow) {
		f.Careless()
		f.PlantEverywhere()
	}))
}
