package specfile_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/specfile"
)

func TestOutline(t *testing.T) {
	t.Parallel()
	const head = "model: m\nagents: [{name: a}]\n"
	tests := []struct {
		name, give, want string
	}{
		{
			"inputs and parameters with and without a default", `
name: claims
description: "  Settles a claim. "
model: m
params: {tone: , words: 100, empty: ""}
inputs:
  claim: {classification: confidential}
  law: {text: Pay.}
  bare:
agents: [{name: a, accepts: confidential}]
tasks: [{title: T, assignee: a, uses: [claim, law, bare], description: "${params.tone} in ${params.words}${params.empty}"}]`,
			`{"name":"claims","path":"-","description":"Settles a claim.","inputs":[
				{"name":"claim","classification":"confidential","hasDefault":false},
				{"name":"law","classification":"internal","hasDefault":true},
				{"name":"bare","classification":"internal","hasDefault":false}],
			"params":[{"name":"empty","hasDefault":true},{"name":"tone","hasDefault":false},{"name":"words","hasDefault":true}],
			"goal":false}`,
		},
		{"a team takes a goal", head + "name: t", `{"name":"t","path":"-","inputs":[],"params":[],"goal":true}`},
		{"a goal has a default", head + "name: t\ngoal: Go.", `{"name":"t","path":"-","inputs":[],"params":[],"goal":true,"goalDefault":true}`},
		{
			"a goal beside tasks is not replaced", head + "name: t\ngoal: Go.\ntasks: [{title: T, description: D.}]",
			`{"name":"t","path":"-","inputs":[],"params":[],"goal":false}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := load(t, tt.give, specfile.Options{Unbound: true})
			require.NoError(t, err)
			o := f.Outline()
			o.Path = "-"
			got, err := json.Marshal(o)
			require.NoError(t, err)
			require.JSONEq(t, tt.want, string(got))
		})
	}
}

// TestUnboundIsForOutlines: without it, what has no text or value is an error.
func TestUnboundIsForOutlines(t *testing.T) {
	t.Parallel()
	text := `
model: m
params: {x: }
inputs: {i: }
agents: [{name: a}]
tasks: [{title: T, uses: [i], description: "x ${params.x}"}]`
	_, err := load(t, text, specfile.Options{})
	require.Len(t, messages(t, err), 2, "%v", err)
}

// TestOutlineLeavesFoldersOut, since a text cannot replace one.
func TestOutlineLeavesFoldersOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "src/a.txt", "A.")
	f, err := specfile.Load(at(t, dir, "s", "model: m\ninputs: {code: {dir: src}}\nagents: [{name: a}]\ntasks: [{title: T, uses: [code], description: D.}]"))
	require.NoError(t, err)
	require.Empty(t, f.Outline().Inputs)
}
