package flowtest_test

import (
	"strings"
	"testing"

	"github.com/runteam/runteam/flowtest"
	"github.com/runteam/runteam/spec"
)

// TestNoVariableIsRequired tests a team file with keys, which needs none because no model is
// called.
func TestNoVariableIsRequired(t *testing.T) {
	t.Parallel()
	const text = "model: ${ACME_MODEL}\nbaseURL: https://llm.acme.example/${ACME_TOKEN}/v1\napiKey: ${ACME_KEY}\nagents: [{name: a}]\n" +
		"inputs: {i: {text: words}}\ntasks: [{title: T, assignee: a, description: d, uses: [i]}]\n"
	f := flowtest.LoadOptions(t, spec.Options{Path: "-", Stdin: strings.NewReader(text), Lookup: func(string) (string, bool) { return "", false }})
	f.Reaches(f.PlantInput("i"), "a")
	f.Run(t)
}
