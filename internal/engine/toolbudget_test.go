package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/pricing"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// sentTokens counts a token for each four bytes of a request: texts, definitions of tools,
// calls and results, each with its role or name.
func sentTokens(t testing.TB, r *llm.Request) int {
	t.Helper()
	n := len(r.System)
	for _, m := range r.Messages {
		n += len(m.Text) + len(m.ToolCallID)
		for _, c := range m.ToolCalls {
			raw, err := json.Marshal(c.Name + c.ID)
			require.NoError(t, err)
			n += len(raw) + len(c.Arguments)
		}
	}
	for _, f := range r.Tools {
		n += len(f.Name) + len(f.Description) + len(f.Parameters)
	}
	return (n + 3) / 4
}

// A conversation ends before it would take more than its budgets, also after a crash: each
// turn is sent whole, with the definitions of the tools.
func TestConversationDoesNotOverdraw(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{{Title: "Read", Description: "Read.", Assignee: "pager"}}
	price := llm.Price{Input: 10, Output: 40}
	for _, o := range []plan.Budget{{MaxTokenBudget: 3000}, {MaxTokenBudget: 9000}, {MaxTokenBudget: 20_000}, {MaxCostBudget: llm.Dollars(0.05)}, {MaxCostBudget: llm.Dollars(0.3)}} {
		var usages []llm.Usage // of the calls of one process
		model := namedModel{func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
			u := llm.Usage{InputTokens: sentTokens(t, &r), OutputTokens: 50}
			usages = append(usages, u)
			return llm.Response{ToolCalls: []llm.ToolCall{{ID: "1", Name: "page", Arguments: fmt.Sprintf(`{"n":%d}`, len(r.Messages))}}, Usage: u}, nil
		}}
		page, err := tool.New("page", strings.Repeat("Reads a page. ", 40), func(context.Context, struct {
			N int `json:"n"`
		}) (string, error) {
			return strings.Repeat("x", 900), nil
		}, tool.Options{Effect: tool.None})
		require.NoError(t, err)
		tm, err := engine.New(engine.Config{Prices: map[string]llm.Price{"scripted": price}, Agents: []engine.Member{
			{Name: "pager", Agent: agent.New(model, agent.Options{MaxTurns: 100, Settings: llm.Settings{MaxTokens: 50}}), Tools: []*tool.Tool{page}},
		}})
		require.NoError(t, err)
		whole := &memory{}
		res, err := tm.RunTasks(context.Background(), specs, &engine.RunOptions{RunID: "r", Budget: o, Journal: whole})
		require.NoError(t, err)
		require.Contains(t, []string{"BUDGET_EXCEEDED", "COST_BUDGET_EXCEEDED"}, res.Tasks[0].Error.Code)
		within := func(what string, usages []llm.Usage) int {
			took, cost := 0, llm.Money(0)
			for _, u := range usages {
				took, cost = took+u.InputTokens+u.OutputTokens, cost.Add(pricing.MaxCost(price, u))
			}
			require.True(t, o.MaxTokenBudget == 0 || took <= o.MaxTokenBudget, "%s: %d of %d tokens", what, took, o.MaxTokenBudget)
			require.True(t, o.MaxCostBudget == 0 || cost <= o.MaxCostBudget, "%s: %v of %v", what, cost, o.MaxCostBudget)
			return took
		}
		require.Greater(t, within("a run", usages), o.MaxTokenBudget/2, "the budget is used")

		first := usages
		for n := range whole.len() {
			past := whole.history(n)
			if past.End != nil {
				continue
			}
			asked, ended := 0, 0
			for _, e := range past.Log {
				if e.Asked != nil {
					asked++
				}
				if e.Exchange != nil || e.Turn != nil {
					ended++
				}
			}
			usages = nil
			_, err := start(context.Background(), tm, specs, &engine.RunOptions{RunID: "r", Budget: o, Journal: after(past)})
			require.NoError(t, err)
			before := append([]llm.Usage{}, first[:min(asked, len(first))]...) // no budget had enough left for the last
			if asked > ended && asked <= len(first) {                          // the call that was interrupted gave no reply
				before[asked-1].OutputTokens = 0
			}
			within(fmt.Sprintf("a run that crashed after %d commits", n), append(before, usages...))
		}
	}
}
