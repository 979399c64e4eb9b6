package specfile_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/llm"
)

func TestPrices(t *testing.T) {
	t.Parallel()
	f, err := load(t, "model: small\nprices: {small: {input: 0.15, output: 0.6}, big: {input: 0, output: 10}}\nagents: [{name: a}, {name: b, model: big}]", specfile.Options{})
	require.NoError(t, err)
	require.Empty(t, f.Warnings)
	require.Equal(t, map[string]llm.Price{"small": {Input: 0.15, Output: 0.6}, "big": {Input: 0, Output: 10}}, f.Config.Prices)
	data, err := json.Marshal(f.Config.Prices["small"])
	require.NoError(t, err)
	require.JSONEq(t, `{"input": 0.15, "output": 0.6}`, string(data))

	f, err = load(t, "model: small\nagents: [{name: a}]", specfile.Options{})
	require.NoError(t, err)
	require.Nil(t, f.Config.Prices)
}

// TestUnusedPricesAreWarnings are a warning, with the model that was probably meant.
func TestUnusedPricesAreWarnings(t *testing.T) {
	t.Parallel()
	const text = "model: \"${M:-small}\"\nprices:\n  smal: {input: 1, output: 2}\n  small: {input: 1, output: 2}\n  planner: {input: 1, output: 2}\nagents: [{name: a}]\ncoordinator: {model: planner}\n"
	f, err := load(t, text, specfile.Options{})
	require.NoError(t, err)
	require.Len(t, f.Warnings, 1)
	require.Equal(t, 3, f.Warnings[0].Line)
	require.Equal(t, `prices: no agent has the model "smal"`, f.Warnings[0].Message)
	require.Equal(t, "did you mean small?", f.Warnings[0].Hint)
	require.Len(t, f.Config.Prices, 3, "Options.Models of another run may have it")

	f, err = load(t, text, specfile.Options{Models: []string{"smal"}})
	require.NoError(t, err)
	require.Len(t, f.Warnings, 2, "of the other two")
}

func TestBadPricesAndReuse(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"no mapping", "prices: 5", "1:9: prices: the number 5 where a mapping belongs"},
		{"a number", "prices: {m: 5}", `1:13: prices: "m": the number 5 where a price belongs`},
		{"nothing", "prices: {m: }", `1:12: prices: "m": nothing where a price belongs`},
		{"half", "prices: {m: {input: 1}}", `1:13: prices: "m": output: it is missing`},
		{"unknown", "prices: {m: {input: 1, output: 2, cached: 1}}", `1:35: prices: "m": unknown key "cached" in a price`},
		{"negative", "prices: {m: {input: -0.1, output: 2}}", `1:21: prices: "m": input: the number -0.1 where a number of US dollars belongs`},
		{"a text", "prices: {m: {input: \"0.1\", output: 2}}", `1:21: prices: "m": input: the text "0.1" where a number of US dollars belongs`},
		{"endless", "prices: {m: {input: .inf, output: 2}}", `1:21: prices: "m": input: the number .inf where a number of US dollars belongs`},
		{"cents of something else", "prices: {m: {input: 10000000, output: 2}}", `1:21: prices: "m": input: the number 10000000 where a number of US dollars belongs`},
		{"reuse of the spec", "reuse: never", `1:8: reuse: the text "never" where true or false belongs`},
		{"reuse of an agent", "agents: [{name: a, reuse: false}]", `1:27: agent "a": reuse: false where the word never belongs`},
		{"reuse of defaults", "taskDefaults: {reuse: always}", `1:23: taskDefaults: reuse: the text "always" where the word never belongs`},
		{"reuse of the coordinator", "coordinator: {reuse: true}", `1:22: coordinator: reuse: true where the word never belongs`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, tt.text+"\n", specfile.Options{})
			require.Contains(t, messages(t, err), tt.want)
			require.NotEmpty(t, err.(*specfile.Error).Problems[0].Hint)
		})
	}
}

func TestReuseOfDefaults(t *testing.T) {
	t.Parallel()
	f, err := load(t, "reuse: true\nagentDefaults: {reuse: never}\ntaskDefaults: {reuse: never}\ncoordinator: {reuse: never}\nagents: [{name: a}]\ntasks: [{title: T, description: d}]", specfile.Options{})
	require.NoError(t, err)
	require.True(t, f.Run.Reuse)
	require.Equal(t, "never", f.Agents[0].Member.Reuse)
	require.Equal(t, "never", f.Tasks[0].Reuse)
	require.Equal(t, "never", f.Coordinator.Reuse)
}

// TestTeamBringsPricesButNoReuse: what belongs to a run stands in its own file.
func TestTeamBringsPricesButNoReuse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "team.yaml", "prices: {m: {input: 1, output: 1}}\ntasks: [{title: T, description: d}]\n",
		"roster.yaml", "agents: [{name: a, model: m}, {name: b, model: n}]\nprices: {m: {input: 9, output: 9}, n: {input: 2, output: 2}}\n", "bad.yaml", "reuse: true\nagents: [{name: a}]\n")
	f, err := specfile.Load(specfile.Options{Path: dir, Team: filepath.Join(dir, "roster.yaml")})
	require.NoError(t, err)
	require.Equal(t, map[string]llm.Price{"m": {Input: 1, Output: 1}, "n": {Input: 2, Output: 2}}, f.Config.Prices)
	require.Len(t, f.Warnings, 1)
	require.Equal(t, `prices: "m": not used: another file has a price for it too`, f.Warnings[0].Message)
	_, err = specfile.Load(specfile.Options{Path: dir, Team: filepath.Join(dir, "bad.yaml")})
	require.ErrorContains(t, err, "reuse: the file of Options.Team brings a team only")
}
