package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// Plans name the agents whose answers have no bound, and those whose calls are not known.
func TestPlansNameWhatIsNotBounded(t *testing.T) {
	t.Parallel()
	r := newTeam(t, plan.Member{Name: "writer", Agent: asksModel}, member("scanner"), member("idle"))
	tasks := []task.Spec{{Title: "A", Description: "d", Assignee: "writer"}, {Title: "B", Description: "d", Assignee: "scanner"}}
	most := atMost(t, r, tasks, nil)
	require.Equal(t, []string{"writer"}, most.UnboundedAnswers)
	require.Equal(t, []string{"scanner"}, most.NotCounted)
	require.Equal(t, [2]int{1, 0}, [2]int{most.Calls, most.Tokens})
	require.Positive(t, most.PromptTokens)

	tasks[0].MaxRetries = 1 << 40
	most = atMost(t, r, tasks, &plan.Options{Budget: plan.Budget{MaxTokenBudget: 70}})
	require.Equal(t, [2]int{70, 70}, [2]int{most.Tokens, most.TokenBudget}, "it bounds calls and answers of any number")
	require.Equal(t, 1<<40+1, most.Calls)
}

func atMost(t *testing.T, r roster, tasks []task.Spec, o *plan.Options) plan.PlannedUsage {
	t.Helper()
	p, err := r.plan(tasks, o)
	require.NoError(t, err)
	return p.AtMost
}

// A secret input does not show its size in the bound.
func TestBoundsOfAPlanHideInputs(t *testing.T) {
	t.Parallel()
	r := newTeam(t, plan.Member{Name: "writer", Accepts: label.Confidential, Agent: asksModel})
	var all []plan.PlannedUsage
	for _, n := range []int{1, 100_000} {
		all = append(all, atMost(t, r, []task.Spec{{Title: "A", Description: "d", Assignee: "writer", Uses: []task.Use{{Name: "in"}}}, {Title: "B", Description: "d", Assignee: "writer"}}, &plan.Options{Inputs: []plan.Input{{Name: "in", Text: strings.Repeat("x", n), Classification: label.Confidential}}, UserAccepts: new(label.Internal)}))
	}
	require.Equal(t, all[0], all[1])
}

// The bound on the cost is that of the dearest model, and no more than a budget allows.
func TestBoundsOfCost(t *testing.T) {
	t.Parallel()
	tasks := []task.Spec{{Title: "A", Description: "d", Assignee: "writer"}}
	prices := map[string]llm.Price{"cheap": {Input: 1, Output: 1}, "dear": {Input: 1000, Output: 3000}}
	cost := func(o *plan.Options, models ...string) plan.PlannedUsage {
		r := newTeam(t, plan.Member{Name: "writer", Agent: boundedModel{asksModel, models}})
		r.Config.Prices = prices
		return atMost(t, r, tasks, o)
	}
	cheap, dear := cost(nil, "cheap"), cost(nil, "cheap", "dear")
	require.InDelta(t, float64(cheap.Tokens)/1e6, *cheap.Cost, 1e-9)
	require.InDelta(t, (float64(dear.PromptTokens)*1000+float64(dear.Tokens-dear.PromptTokens)*3000)/1e6, *dear.Cost, 1e-9)

	unknown := cost(nil, "cheap", "other")
	require.Nil(t, unknown.Cost)
	require.Equal(t, []string{"other"}, unknown.Unpriced)

	require.InDelta(t, 0.3, *cost(&plan.Options{Budget: plan.Budget{MaxTokenBudget: 100}}, "dear").Cost, 1e-9, "a hundred tokens of answers")
	bounded := cost(&plan.Options{Budget: plan.Budget{MaxCostBudget: llm.Dollars(0.01)}}, "dear")
	require.InDelta(t, 0.01, *bounded.Cost, 1e-9)
	require.InDelta(t, 0.01, bounded.CostBudget, 1e-9)
}

// A boundedModel is an agent that calls models, whose answers have at most 50 tokens.
type boundedModel struct {
	agent.Agent
	models []string
}

func (m boundedModel) Models() []string                      { return m.models }
func (m boundedModel) CallLimits() (calls, answerTokens int) { return 1, 50 }
