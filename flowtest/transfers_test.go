package flowtest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/flowtest"
)

// desk is a team of which the first agent transfers the conversation to the second, and that to the third.
const desk = `
agents:
  - {name: first}
  - {name: second}
  - {name: third}
  - {name: reader}
edges:
  - {from: first, to: second, transfer: true}
  - {from: second, to: third, transfer: true}
inputs:
  mail: {text: mail}
  notes: {text: notes}
tasks:
  - {title: Help, assignee: first, uses: [mail], description: d}
  - {title: Read, assignee: reader, dependsOn: [Help], description: d}
policy:
  rules: []
`

func TestCanariesInTransferredConversations(t *testing.T) {
	t.Parallel()
	withRules := func(rules string) string {
		return strings.Replace(desk, "rules: []", "rules:\n"+rules, 1)
	}
	require.Empty(t, failures(t, desk, func(f *flowtest.Flow) {
		f.Reaches(f.PlantInput("mail"), "first", "second", "third", "reader")
		f.Reaches(f.PlantResult("Help", ""), "second", "third", "reader") // what a holder says
	}))
	require.Empty(t, failures(t, desk, func(f *flowtest.Flow) { f.PlantEverywhere() }))
	for _, mode := range []string{"minimal", "scoped, allow: [/nothing]"} {
		spec := withRules("    - {from: first, to: second, mode: " + mode + "}\n    - {from: first, to: third, mode: " + mode + "}\n    - {from: user, to: second, mode: minimal}\n    - {from: user, to: third, mode: minimal}")
		require.Empty(t, failures(t, spec, func(f *flowtest.Flow) {
			mail := f.PlantInput("mail")
			f.Reaches(mail, "first")
			f.Never(mail, "second", "third", "reader")
		}), mode)
	}
	requireFailure(t, failures(t, desk, func(f *flowtest.Flow) { f.Never(f.PlantInput("mail"), "third") }), "never reaches third, but it is in")
	// Readers of the result get what the rules of all holders let through.
	for _, from := range []string{"first", "second", "third"} {
		spec := withRules("    - {from: " + from + ", to: reader, mode: minimal}")
		require.Empty(t, failures(t, spec, func(f *flowtest.Flow) { f.Never(f.PlantResult("Help", ""), "reader") }), from)
	}
}
