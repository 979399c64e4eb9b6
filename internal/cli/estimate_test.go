package cli

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/run"
	"github.com/stretchr/testify/require"
)

const estimatedTeam = `
name: estimated
model: gpt-x
baseURL: https://llm.example/v1
prices: {gpt-x: {input: 1000, output: 2000}}
inputs: {note: {}}
agents: [{name: clerk, systemPrompt: You file., maxTokens: 500}]
tasks: [{title: File, assignee: clerk, uses: [note], description: File it.}]
`

// estimated returns what the API says about the cost of a run of the only served spec.
func estimated(t *testing.T, s *served, body string) (e run.Estimate) {
	t.Helper()
	status, answer := s.do(http.MethodPost, "/estimates", body)
	require.Equal(t, http.StatusOK, status, answer)
	require.NoError(t, json.Unmarshal([]byte(answer), &e), answer)
	return e
}

// The estimate of a run says which model is called and how much that costs at most, for the inputs that are given.
func TestEstimateOfARun(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": estimatedTeam, "script.yaml": "replies:\n  - {task: File, text: Filed.}\n"})
	s := serveHere(t, call{dir: dir, args: []string{"team.yaml"}, env: map[string]string{"OPENAI_API_KEY": "none"}})
	none := estimated(t, s, `{"spec": "estimated"}`)
	require.False(t, none.Scripted)
	require.Equal(t, []run.EstimatedModel{{Model: "gpt-x", Endpoint: "https://llm.example", Priced: true, Agents: []string{"clerk"}}}, none.Models)
	require.Equal(t, []string{"note"}, none.Missing)
	require.Equal(t, 1, none.AtMost.Calls)
	require.Greater(t, *none.AtMost.Cost, 1.0, "500 tokens of an answer cost a dollar")

	long := estimated(t, s, `{"spec": "estimated", "inputs": {"note": "`+strings.Repeat("x", 4000)+`"}}`)
	require.Empty(t, long.Missing)
	require.Greater(t, *long.AtMost.Cost, *none.AtMost.Cost+1, "a thousand tokens of an input cost a dollar")
	require.NotContains(t, s.get("/runs"), "estimated", "nothing was started")
}

// A script costs nothing, a model without a price is named, and a budget bounds what is not bounded otherwise.
func TestEstimatesOfOtherRuns(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"team.yaml":     estimatedTeam,
		"unpriced.yaml": strings.Replace(estimatedTeam, "prices: {gpt-x", "prices: {other", 1),
		"budget.yaml":   strings.Replace(estimatedTeam, ", maxTokens: 500", "", 1) + "maxCostBudget: 2\n",
		"local.yaml":    strings.Replace(estimatedTeam, "https://llm.example/v1", "http://localhost:11434/v1", 1),
	})
	serve := func(args ...string) *served {
		return serveHere(t, call{dir: dir, args: args, env: map[string]string{"OPENAI_API_KEY": "none"}})
	}
	give := `{"spec": "estimated", "inputs": {"note": "x"}}`
	require.True(t, estimated(t, serve("team.yaml", "--offline"), give).Scripted)
	unpriced := estimated(t, serve("unpriced.yaml"), give)
	require.False(t, unpriced.Models[0].Priced)
	require.Equal(t, []string{"gpt-x"}, unpriced.AtMost.Unpriced)
	require.Nil(t, unpriced.AtMost.Cost)
	budget := estimated(t, serve("budget.yaml"), give)
	require.InDelta(t, 2, *budget.AtMost.Cost, 0)
	require.InDelta(t, 2, budget.AtMost.CostBudget, 0)
	require.True(t, estimated(t, serve("local.yaml"), give).Models[0].Local)
}
