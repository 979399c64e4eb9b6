package specfile_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
)

func TestDeclare(t *testing.T) {
	t.Parallel()
	const head = "name: t\nmodel: m\nagents: [{name: a}]\n"
	tests := []struct {
		name, give string
		want       specfile.Declared
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
  code: {dir: src}
agents: [{name: a}]
tasks: [{title: T, assignee: a, uses: [claim, law, bare, code], description: "${params.tone} in ${params.words}${params.empty}"}]`,
			specfile.Declared{
				Name: "claims", Description: "Settles a claim.", Tasks: []string{"T"},
				Inputs: []specfile.DeclaredInput{{"claim", label.Confidential, false}, {"law", label.Internal, true}, {"bare", label.Internal, false}},
				Params: []specfile.DeclaredParam{{"empty", true}, {"tone", false}, {"words", true}},
			},
		},
		{"a team takes a goal", head, specfile.Declared{Name: "t", Goal: true}},
		{"a goal is a default", head + "goal: Go.", specfile.Declared{Name: "t", Goal: true, GoalDefault: true}},
		{"a goal beside tasks is not replaced", head + "goal: Go.\ntasks: [{title: T, description: D.}]", specfile.Declared{Name: "t", Tasks: []string{"T"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "src/a.txt", "A.")
			o := at(t, dir, "spec", tt.give)
			got, err := specfile.Declare(t.Context(), o)
			require.NoError(t, err)
			require.Equal(t, filepath.Join(dir, "spec.yaml"), got.Path)
			got.Path = ""
			got.File = nil
			require.Equal(t, tt.want, *got)
		})
	}
}

// TestDeclareReportsWhatIsWrong but not what is only missing, which [specfile.Load] does.
func TestDeclareReportsWhatIsWrong(t *testing.T) {
	t.Parallel()
	const good = "model: m\nparams: {x: }\ninputs: {i: }\nagents: [{name: a}]\ntasks: [{title: T, uses: [i], description: 'x ${params.x}'}]\n"
	dir := t.TempDir()
	_, err := specfile.Declare(t.Context(), at(t, dir, "good", good))
	require.NoError(t, err)
	_, err = specfile.Load(at(t, dir, "good", good))
	require.Len(t, messages(t, err), 2)
	_, err = specfile.Declare(t.Context(), at(t, dir, "bad", good+"bogus: 1"))
	require.Len(t, messages(t, err), 1)
}
