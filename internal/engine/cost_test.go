package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/pricing"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// mills are the prices of models: a thousandth of a dollar for each token of m,
// and parts or multiples of that for those of the others.
var mills = map[string]llm.Price{
	"m":     {Input: 1000, Output: 1000},
	"apart": {Input: 1000, Output: 1000, CachedInput: new(100.0), Reasoning: new(3000.0)},
	"dear":  {Input: 10_000, Output: 10_000},
	"free":  {},
}

// pricedTeam has members whose model is m unless they say another.
func pricedTeam(t require.TestingT, members ...engine.Member) *engine.Team {
	for i := range members {
		if members[i].Model == "" {
			members[i].Model = "m"
		}
	}
	tm, err := engine.New(engine.Config{Agents: members, Prices: mills})
	require.NoError(t, err)
	return tm
}

// counts is a model that takes a usage for each call.
func counts(u llm.Usage) llm.ModelFunc {
	return func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: "ok", CallInfo: llm.CallInfo{FinishReason: "stop"}, Usage: u}, nil
	}
}

func TestCostBudgetEndsARun(t *testing.T) {
	t.Parallel()
	var heard audience
	o := heard.options()
	o.MaxCostBudget, o.MaxConcurrency = llm.Dollars(0.29), 1
	res := run(t, pricedTeam(t, asks("a", takes(20, 80)), asks("b", takes(20, 80)), asks("c", takes(20, 80)), asks("d", takes(20, 80))), o,
		spec("a"), spec("b", "a"), spec("c", "b"), spec("d"))
	require.Equal(t, engine.StatusBudget, res.Status)
	require.Equal(t, []task.Status{task.Completed, task.Completed, task.Failed, task.Skipped}, statuses(res), "what is done is returned")
	require.Equal(t, "Skipped: cost budget spent.", res.Tasks[3].Result)
	require.Equal(t, "COST_BUDGET_EXCEEDED", res.Errors[0].Code)
	require.Regexp(t, `^cost budget exceeded: \$0\.20 of \$0\.29 spent, and a call of "c" costs \$0\.\d+ with a short reply; raise maxCostBudget of the run$`, res.Errors[0].Message)
	require.ErrorIs(t, res.Err(), engine.ErrCostBudget)
	require.NotErrorIs(t, res.Err(), engine.ErrBudget)
	told := heard.only(event.Budget)
	require.Len(t, told, 1)
	require.Equal(t, "COST_BUDGET_EXCEEDED", told[0].Code)
	require.False(t, told[0].OwnBudget)
}

// Cached input and reasoning tokens have their own prices. A call is admitted by
// what it may cost at most, and charged what it cost.
func TestCostBudgetPricesCachedAndReasoningTokensApart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		took  llm.Usage
		limit float64
		calls int
	}{
		{"nothing cached", llm.Usage{InputTokens: 100, OutputTokens: 100}, 0.79, 3}, // 0.20 each, and about 0.31 reserved for each
		{"most of it cached", llm.Usage{InputTokens: 100, CachedTokens: 90, OutputTokens: 10}, 0.79, 17},
		{"all of it reasoning", llm.Usage{InputTokens: 100, OutputTokens: 100, ReasoningTokens: 100}, 0.79, 2},
		{"an endpoint that claims more cached tokens than there are", llm.Usage{InputTokens: 100, CachedTokens: 1_000_000, OutputTokens: 100}, 0.79, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			m := llm.ModelFunc(func(ctx context.Context, r llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
				calls++
				return counts(tt.took)(ctx, r, emit)
			})
			one := asks("a", m)
			one.Model = "apart"
			specs := make([]task.Spec, 20)
			for i := range specs {
				specs[i] = by("a", spec(fmt.Sprint("task ", i)))
			}
			res := run(t, pricedTeam(t, one), &engine.RunOptions{Budget: plan.Budget{MaxCostBudget: llm.Dollars(tt.limit)}, MaxConcurrency: 1}, specs...)
			require.Equal(t, engine.StatusBudget, res.Status)
			require.Equal(t, tt.calls, calls)
			require.Equal(t, tt.calls*tt.took.ReasoningTokens, res.Usage.ReasoningTokens)
			require.Equal(t, tt.calls*tt.took.CachedTokens, res.Usage.CachedTokens)
		})
	}
}

// Free models are not refused by a cost budget that others have spent.
func TestFreeModelCostsNothing(t *testing.T) {
	t.Parallel()
	free := asks("b", takes(5000, 5000))
	free.Model, free.MaxCostBudget = "free", 1
	heavy := asks("a", takes(20, 9000))
	heavy.MaxCostBudget = llm.Dollars(0.3)
	res := run(t, pricedTeam(t, heavy, free), &engine.RunOptions{MaxConcurrency: 1}, spec("a"), spec("b", "a"), by("b", spec("c", "b")))
	require.NoError(t, res.Err())
}

// A model without a price is an error before the run, at the agent, and said once.
func TestUnpricedModelIsAnErrorUnderACostBudget(t *testing.T) {
	t.Parallel()
	named := func(name, model string) engine.Member {
		m := asks(name, takes(1, 1))
		m.Model = model
		return m
	}
	own := named("a", "other")
	own.MaxCostBudget = llm.Dollars(1)
	lead := &engine.Coordinator{Agent: agent.New(takes(1, 1), agent.Options{}), Backend: plan.Backend{Model: "planner"}}
	for _, tt := range []struct {
		name string
		cfg  engine.Config
		goal bool
		cost llm.Money
		want []fault
	}{
		{"no budget", engine.Config{Agents: []engine.Member{named("a", "other")}}, false, 0, nil},
		{"a budget of the run", engine.Config{Agents: []engine.Member{named("a", "m"), named("b", "other"), named("c", "other")}}, false, 1,
			[]fault{{"/agents/1/model", `agent "b": the model "other" has no price`, plan.ErrNoPrice}}},
		{"a budget of the agent", engine.Config{Agents: []engine.Member{own, named("b", "another")}}, false, 0,
			[]fault{{"/agents/0/model", `the model "other" has no price`, plan.ErrNoPrice}}},
		{"a model without a name", engine.Config{Agents: []engine.Member{asks("a", takes(1, 1))}}, false, 1,
			[]fault{{"/agents/0/model", "its model has no name", plan.ErrNoPrice}}},
		{"a model that names itself", engine.Config{Agents: []engine.Member{{Name: "a", Agent: agent.New(&placed{base: "https://h.example"}, agent.Options{})}}}, false, 1, nil},
		{"an agent that calls no model", engine.Config{Agents: []engine.Member{member("a", says("x"))}}, false, 1, nil},
		{"a coordinator that is not asked", engine.Config{Agents: []engine.Member{named("a", "m")}, Coordinator: lead}, false, 1, nil},
		{"a coordinator", engine.Config{Agents: []engine.Member{named("a", "m")}, Coordinator: lead}, true, 1,
			[]fault{{"/coordinator/model", `the model "planner" has no price`, plan.ErrNoPrice}}},
		{"a price that is none", engine.Config{Agents: []engine.Member{named("a", "m")}, Prices: map[string]llm.Price{"m": {Input: -1}}}, false, 0,
			[]fault{{"/prices/m", "a price is not between 0 and 1000000", task.ErrInvalid}}},
		{"a budget below zero", engine.Config{Agents: []engine.Member{named("a", "m")}}, false, -1,
			[]fault{{"/maxCostBudget", "negative", task.ErrInvalid}}},
		{"budgets of agents below zero", engine.Config{Agents: []engine.Member{{Name: "a", Agent: agent.New(takes(1, 1), agent.Options{}), Budget: plan.Budget{MaxTokenBudget: -1, MaxCostBudget: -1}}}}, false, 0,
			[]fault{{"/agents/0/maxTokenBudget", "negative", task.ErrInvalid}, {"/agents/0/maxCostBudget", "negative", task.ErrInvalid}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.cfg.Prices == nil {
				tt.cfg.Prices = mills
			}
			tm, err := engine.New(tt.cfg)
			if err == nil && tt.goal {
				_, err = tm.RunTeam(t.Context(), engine.Goal{Text: "x"}, &engine.RunOptions{Budget: plan.Budget{MaxCostBudget: tt.cost}})
			} else if err == nil {
				_, err = tm.Plan([]task.Spec{spec("a")}, &engine.RunOptions{Budget: plan.Budget{MaxCostBudget: tt.cost}})
			}
			if len(tt.want) == 0 {
				require.NoError(t, err)
				return
			}
			requireFaults(t, err, tt.want...)
		})
	}
}

// The issue's own case: an agent written in Go that calls a model eight times for
// 5,000 tokens each, under a budget of 5,000.
func TestBudgetHoldsForAnAgentThatCallsAModel(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*engine.RunOptions{
		"tokens": {Budget: plan.Budget{MaxTokenBudget: 5000}}, "cost": {Budget: plan.Budget{MaxCostBudget: llm.Dollars(5)}},
		"both": {Budget: plan.Budget{MaxTokenBudget: 1_000_000, MaxCostBudget: llm.Dollars(5)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			m := llm.ModelFunc(func(ctx context.Context, r llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
				calls++
				return takes(4900, 100)(ctx, r, emit)
			})
			greedy := func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
				for range 8 {
					if _, err := agent.Metered(ctx, m).Call(ctx, llm.Request{Messages: []llm.Message{{Role: llm.User, Text: p.Text()}}, Settings: llm.Settings{MaxTokens: 100}}, nil); err != nil {
						return agent.Reply{}, err
					}
				}
				return agent.Reply{Text: "done"}, nil
			}
			res := run(t, pricedTeam(t, member("a", greedy)), o, spec("a"))
			require.Equal(t, 1, calls)
			require.Equal(t, engine.StatusBudget, res.Status)
			require.Equal(t, llm.Usage{InputTokens: 4900, OutputTokens: 100}, res.Usage, "what it took is recorded")
			require.Regexp(t, "BUDGET_EXCEEDED$", res.Errors[0].Code)
		})
	}
}

// Without a budget metered calls are counted all the same, and an agent that
// reports them itself is not counted twice.
func TestMeteredCallsAreCountedOnce(t *testing.T) {
	t.Parallel()
	each := llm.Usage{InputTokens: 30, OutputTokens: 10, CachedTokens: 20, ReasoningTokens: 4}
	twice := each.Add(each)
	for _, tt := range []struct {
		name     string
		reported llm.Usage
		want     llm.Usage
	}{
		{"reports nothing", llm.Usage{}, twice},
		{"reports the calls", twice, twice},
		{"reports more than the calls", twice.Add(llm.Usage{InputTokens: 5, OutputTokens: 7}), twice.Add(llm.Usage{InputTokens: 5, OutputTokens: 7})},
		{"reports less than the calls", each, twice},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			calls := func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
				m := agent.Metered(ctx, counts(each))
				_, err := m.Call(ctx, llm.Request{Settings: llm.Settings{MaxTokens: 10}}, nil)
				require.NoError(t, err)
				inner, err := agent.New(m, agent.Options{Settings: llm.Settings{MaxTokens: 10}}).Run(ctx, p) // an LLM over a metered model pays once
				return agent.Reply{Text: inner.Text, Usage: tt.reported}, err
			}
			journal, most := &memory{}, tt.want.InputTokens+tt.want.OutputTokens
			res := run(t, pricedTeam(t, member("a", calls)), &engine.RunOptions{RunID: "r", Journal: journal}, spec("a"))
			require.NoError(t, res.Err())
			require.Equal(t, tt.want, res.Usage)
			require.True(t, res.Answered, "a model answered")
			kept := journal.exchanges()[0]
			require.Equal(t, tt.want, kept.Usage())
			require.Equal(t, mills["m"].Cost(tt.want), kept.Cost)
			require.Equal(t, 2, kept.Turns)

			// The budget counts the same: what is left after it is left, to the token.
			tail := asks("b", takes(1, 0))
			for more, want := range map[int]engine.Status{99: engine.StatusBudget, 300: engine.StatusOK} {
				res = run(t, pricedTeam(t, member("a", calls), tail), &engine.RunOptions{Budget: plan.Budget{MaxTokenBudget: most + more}}, spec("a"), spec("b", "a"))
				require.Equal(t, want, res.Status, "%d", more)
			}
		})
	}
}

// What an agent reports without a price cannot be counted by a cost budget, and
// neither can a call of a model without one.
func TestUsageWithoutAPriceEndsTheTask(t *testing.T) {
	t.Parallel()
	reports := func(context.Context, prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: "x", Usage: llm.Usage{InputTokens: 1}}, nil
	}
	names := func(model llm.Model) agentFunc {
		return func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
			_, err := agent.Metered(ctx, model).Call(ctx, llm.Request{}, nil)
			return agent.Reply{Text: "x"}, err
		}
	}
	for _, tt := range []struct {
		name  string
		agent agentFunc
		want  string
	}{
		{"it reports tokens", reports, `agent "a" called a model without a name; set Model of the agent`},
		{"it calls a model without a name", names(takes(1, 1)), `agent "a" called a model without a name`},
		{"it calls a model without a price", names(&called{name: "unknown"}), `agent "a" called "unknown", which a cost budget cannot count; add it to prices`},
		{"it calls a model with a price", names(&called{name: "dear"}), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tm, err := engine.New(engine.Config{Agents: []engine.Member{member("a", tt.agent)}, Prices: mills})
			require.NoError(t, err)
			res := run(t, tm, &engine.RunOptions{Budget: plan.Budget{MaxCostBudget: llm.Dollars(20)}}, spec("a"))
			if tt.want == "" {
				require.NoError(t, res.Err())
				return
			}
			require.Equal(t, codes.NoPrice, of(t, res, "a").Error.Code)
			require.ErrorIs(t, res.Err(), plan.ErrNoPrice)
			require.Contains(t, of(t, res, "a").Error.Message, tt.want)
			require.NoError(t, run(t, tm, nil, spec("a")).Err(), "no budget, no price")
		})
	}
}

// A called model names itself and takes one token each way.
type called struct{ name string }

func (c *called) Name() string { return c.name }

func (c *called) Call(ctx context.Context, r llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
	return takes(1, 1)(ctx, r, emit)
}

// The budget of an agent ends the tasks of that agent and not the run.
func TestBudgetOfAnAgentEndsItsOwnTasks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		set  func(*engine.Member)
		code string
		text string
	}{
		{"tokens", func(m *engine.Member) { m.MaxTokenBudget = 290 }, codes.Budget, `does not fit into what is left of its 290 tokens`},
		{"cost", func(m *engine.Member) { m.MaxCostBudget = llm.Dollars(0.29) }, codes.CostBudget, `^cost budget exceeded: \$0\.20 of \$0\.29 of agent "a" spent, .*; raise maxCostBudget of the agent$`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var heard audience
			bound := asks("a", takes(20, 80))
			tt.set(&bound)
			o := heard.options()
			o.MaxConcurrency = 1
			res := run(t, pricedTeam(t, bound, asks("b", takes(20, 80))), o,
				by("a", spec("one")), by("a", spec("two", "one")), by("a", spec("three", "two")), by("b", spec("four")), by("b", spec("five")), by("b", spec("six", "three")))
			require.Equal(t, []task.Status{task.Completed, task.Completed, task.Failed, task.Completed, task.Completed, task.Failed}, statuses(res))
			require.Equal(t, engine.StatusError, res.Status, "the run had no budget")
			require.Equal(t, tt.code, of(t, res, "three").Error.Code)
			require.Regexp(t, tt.text, of(t, res, "three").Error.Message)
			require.Equal(t, codes.Dependency, of(t, res, "six").Error.Code)
			told := heard.only(event.Budget)
			require.Len(t, told, 1)
			require.True(t, told[0].OwnBudget)
		})
	}
}

// A run whose only call was refused says nothing of its endpoint.
func TestRefusedCallDoesNotBlameTheEndpoint(t *testing.T) {
	t.Parallel()
	one := asks("a", takes(1, 1))
	one.MaxTokenBudget = 10
	res := run(t, pricedTeam(t, one), nil, spec("a"))
	require.Equal(t, codes.Budget, of(t, res, "a").Error.Code)
	require.True(t, res.Answered)
}

// A call must fit both the run's budget and its agent's.
func TestBothBudgetsAdmitACall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		run, own int
		done     int
		status   engine.Status
	}{
		{1000, 350, 3, engine.StatusError},
		{350, 1000, 3, engine.StatusBudget},
		{350, 350, 3, engine.StatusBudget},
		{1000, 1000, 5, engine.StatusOK},
	} {
		one := asks("a", takes(20, 80))
		one.MaxTokenBudget = tt.own
		var specs []task.Spec
		for i := range 5 {
			specs = append(specs, by("a", spec(fmt.Sprint("task ", i))))
		}
		res := run(t, newTeam(t, one), &engine.RunOptions{Budget: plan.Budget{MaxTokenBudget: tt.run}, MaxConcurrency: 1}, specs...)
		require.Equal(t, tt.status, res.Status, "%+v", tt)
		require.Equal(t, tt.done, res.Outcomes().Completed, "%+v", tt)
	}
}

// The coordinator has its own budget too, which ends its steps and not the tasks.
func TestBudgetOfTheCoordinatorItself(t *testing.T) {
	t.Parallel()
	planning := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: `[{"title": "A", "description": "a", "assignee": "a"}]`, CallInfo: llm.CallInfo{FinishReason: "stop"}, Usage: llm.Usage{InputTokens: 900, OutputTokens: 100}}, nil
	})
	worker := asks("a", takes(20, 80))
	worker.Model = "m"
	tm, err := engine.New(engine.Config{
		Agents: []engine.Member{worker}, Prices: mills,
		Coordinator: &engine.Coordinator{Agent: agent.New(planning, agent.Options{Settings: llm.Settings{MaxTokens: 100}}), Backend: plan.Backend{Model: "m"}, Budget: plan.Budget{MaxCostBudget: llm.Dollars(1.2)}},
	})
	require.NoError(t, err)
	res, err := tm.RunTeam(t.Context(), engine.Goal{Text: "x"}, nil)
	require.NoError(t, err)
	require.Equal(t, engine.StatusError, res.Status)
	require.Equal(t, task.Completed, of(t, res, "A").Status)
	require.Equal(t, codes.Synthesis, res.Errors[0].Code)
	require.Equal(t, codes.CostBudget, res.Errors[0].Reason)
	require.Contains(t, res.Errors[0].Message, `$1.00 of $1.20 of agent "coordinator" spent`)
}

// Corrective calls and translations are paid as any call is.
func TestCostBudgetPaysEveryKindOfCall(t *testing.T) {
	t.Parallel()
	t.Run("a corrective call", func(t *testing.T) {
		t.Parallel()
		m := &corrected{first: unfit, then: right}
		tm := countingTeam(t, m, func(c *engine.Member) {
			c.Agent, c.MaxTokenBudget = agent.New(m, agent.Options{Settings: llm.Settings{MaxTokens: 10}}), 110
		})
		res := run(t, tm, nil, counting()...)
		require.Equal(t, codes.Budget, of(t, res, "count").Error.Code)
		require.Equal(t, 1, m.count())
	})
	t.Run("a translation", func(t *testing.T) {
		t.Parallel()
		reader := asks("reader", takes(20, 80))
		reader.Model = "m"
		tm, err := engine.New(engine.Config{Agents: []engine.Member{member("maker", says("a long story")), reader}, Policy: summarizing(50), Prices: mills})
		require.NoError(t, err)
		res := run(t, tm, &engine.RunOptions{Budget: plan.Budget{MaxCostBudget: llm.Dollars(0.23)}}, spec("maker"), spec("reader", "maker"))
		require.Equal(t, codes.CostBudget, of(t, res, "reader").Error.Code)
		require.Contains(t, of(t, res, "reader").Error.Message, "$0.10 of $0.23 spent", "the translation is told though its task has not ended")
	})
	t.Run("a call that fails is charged, and retried within the budget", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { // waits between calls
			calls := 0
			m := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
				calls++
				return llm.Response{}, &llm.Error{Kind: callfault.BadResponse}
			})
			one := engine.Member{Name: "a", Agent: agent.New(m, agent.Options{Settings: llm.Settings{MaxTokens: 100}})}
			res := run(t, pricedTeam(t, one), &engine.RunOptions{Budget: plan.Budget{MaxCostBudget: llm.Dollars(0.3)}}, spec("a"))
			require.Equal(t, 2, calls, "each takes what was reserved for it")
			require.Equal(t, engine.StatusBudget, res.Status)
		})
	})
	t.Run("a team inside an agent counts for both", func(t *testing.T) {
		t.Parallel()
		inner := pricedTeam(t, asks("in", takes(20, 80)))
		var status engine.Status
		outer := func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
			res, err := inner.RunTasks(ctx, []task.Spec{by("in", spec("one")), by("in", spec("two"))}, &engine.RunOptions{MaxConcurrency: 1, Budget: plan.Budget{MaxTokenBudget: 10_000}})
			status = res.Status
			return agent.Reply{Text: "x", Usage: res.Usage}, err
		}
		res := run(t, pricedTeam(t, member("a", outer)), &engine.RunOptions{Budget: plan.Budget{MaxTokenBudget: 150}}, spec("a"))
		require.Equal(t, engine.StatusError, status, "its own budget had enough left")
		require.Equal(t, engine.StatusBudget, res.Status)
		require.Equal(t, 100, res.Usage.InputTokens+res.Usage.OutputTokens)
	})
}

// What earlier processes spent counts, with the prices of calls that had one.
func TestCostBudgetContinuesAfterResume(t *testing.T) {
	t.Parallel()
	worker := func(model string) *engine.Team {
		m := asks("worker", takes(20, 80))
		m.Model, m.Version, m.Accepts = model, "1", label.Confidential
		tm, err := engine.New(engine.Config{Agents: []engine.Member{m}, Prices: mills})
		require.NoError(t, err)
		return tm
	}
	first, second, third := by("worker", spec("a")), by("worker", spec("b")), by("worker", spec("c"))
	journal := &memory{}
	res := run(t, worker("m"), &engine.RunOptions{RunID: "r", Journal: journal, MaxConcurrency: 1}, first, second)
	require.NoError(t, res.Err())
	past := journal.history(journal.len())
	for _, tt := range []struct {
		name   string
		model  string
		change func(*record.AgentCall)
		limit  float64
		want   engine.Status
	}{
		{"enough is left", "m", nil, 0.4, engine.StatusOK},
		{"not enough is left", "m", nil, 0.29, engine.StatusBudget},
		{"the cost of old journals is computed", "m", func(x *record.AgentCall) { x.Cost = 0 }, 0.29, engine.StatusBudget},
		{"another model went on", "free", nil, 0.19, engine.StatusOK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := *past
			before.Log = nil
			for _, e := range past.Log {
				if e.Exchange != nil && tt.change != nil {
					x := *e.Exchange
					tt.change(&x)
					e.Exchange = &x
				}
				before.Log = append(before.Log, e)
			}
			res := run(t, worker(tt.model), &engine.RunOptions{RunID: "r", Budget: plan.Budget{MaxCostBudget: llm.Dollars(tt.limit)}, Journal: after(&before)}, first, second, third)
			require.Equal(t, tt.want, res.Status, "%v", res.Err())
			if tt.want == engine.StatusBudget {
				require.Contains(t, of(t, res, "c").Error.Message, "$0.20 of $0.29 spent")
			}
		})
	}
	t.Run("a model that had no price", func(t *testing.T) {
		t.Parallel()
		before := *past
		before.Log = slices.Clone(before.Log)
		last := slices.IndexFunc(before.Log, func(e record.Entry) bool { return e.Exchange != nil && e.Exchange.Title == "b" })
		x := *before.Log[last].Exchange
		x.Model, x.Cost = "old", 0
		before.Log[last].Exchange = &x
		_, err := start(t.Context(), worker("m"), []task.Spec{first, second, third}, &engine.RunOptions{RunID: "r", Budget: plan.Budget{MaxCostBudget: llm.Dollars(1)}, Journal: after(&before)})
		requireFaults(t, err, fault{"/prices", `the run already called the model "old", which has no price`, plan.ErrNoPrice})
	})
	t.Run("a replay costs nothing", func(t *testing.T) {
		t.Parallel()
		res := run(t, worker("m"), &engine.RunOptions{RunID: "r", Replay: &engine.Replay{}, Budget: plan.Budget{MaxCostBudget: 1}, Journal: after(past)}, first, second)
		require.NoError(t, res.Err())
	})
	t.Run("reuse costs nothing", func(t *testing.T) {
		t.Parallel()
		res := run(t, worker("m"), &engine.RunOptions{Journal: &memory{others: journal.exchanges()}, Reuse: true, Budget: plan.Budget{MaxCostBudget: 1}}, first, second)
		require.NoError(t, res.Err())
		require.Equal(t, llm.Usage{InputTokens: 20, OutputTokens: 80}, of(t, res, "b").Saved)
	})
}

// For a caller who may not see the prompts, the event of a spent budget has a cost
// by rounded tokens, as results do.
func TestSpentCostIsRoundedAboveTheCaller(t *testing.T) {
	t.Parallel()
	reader := func(exact int) string {
		m := asks("a", takes(exact, 80))
		m.Accepts, m.Model = label.Confidential, "m"
		tm, err := engine.New(engine.Config{Agents: []engine.Member{m, member("end", says("x"))}, Prices: mills})
		require.NoError(t, err)
		var heard audience
		o := &engine.RunOptions{
			Subscribers: []func(event.Event){heard.take}, Budget: plan.Budget{MaxCostBudget: llm.Dollars(4)}, MaxConcurrency: 1, UserAccepts: new(label.Internal), Output: "end",
			Inputs: []engine.Input{{Name: "pin", Text: strings.Repeat("7", 300), Classification: label.Confidential}},
		}
		var specs []task.Spec
		for i := range 80 {
			s := by("a", spec(fmt.Sprint("task ", i)))
			s.Uses, s.Classification = []task.Use{{Name: "pin"}}, label.Confidential
			specs = append(specs, s)
		}
		specs = append(specs, spec("end"))
		specs[len(specs)-1].Priority = task.Low
		res := run(t, tm, o, specs...)
		require.Equal(t, engine.StatusBudget, res.Status)
		require.Equal(t, codes.CostBudget, res.Errors[0].Code)
		told := heard.only(event.Budget)
		require.Len(t, told, 1)
		words, _, ok := strings.Cut(told[0].Message, " of $4.00 spent")
		require.True(t, ok, told[0].Message)
		require.Equal(t, fmt.Sprint("cost budget exceeded: ", mills["m"].Cost(res.Usage)), words)
		require.Zero(t, res.Usage.CachedTokens)
		return words
	}
	require.Equal(t, reader(310), reader(311), "the exact count does not show")
}

// However calls overlap, a budget is never overdrawn by calls that stay within
// their estimate, and by the others at most by what those under way at once take
// beyond theirs. When all has ended, nothing stays reserved: another run of calls
// finds all that is left.
func TestBudgetsAreNotOverdrawn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		price := llm.Price{
			Input: float64(rapid.IntRange(0, 5000).Draw(rt, "input")), Output: float64(rapid.IntRange(1, 5000).Draw(rt, "output")),
			CachedInput: new(float64(rapid.IntRange(0, 5000).Draw(rt, "cached input"))), Reasoning: new(float64(rapid.IntRange(0, 5000).Draw(rt, "reasoning"))),
		}
		excess := rapid.IntRange(0, 60).Draw(rt, "excess")
		at, most := rapid.IntRange(1, 6).Draw(rt, "at once"), 100
		agents := rapid.IntRange(1, 3).Draw(rt, "agents")
		o := &engine.RunOptions{
			MaxConcurrency: at, Budget: plan.Budget{MaxTokenBudget: rapid.IntRange(0, 3000).Draw(rt, "tokens"), MaxCostBudget: llm.Money(rapid.IntRange(0, 8).Draw(rt, "cost")) * llm.Dollars(1)},
		}
		own := rapid.SampledFrom([]int{0, 400, 1500}).Draw(rt, "own")
		var mu sync.Mutex // guards the rest
		tokens, cost, ofAgent := 0, llm.Money(0), map[string]int{}
		over := llm.Money(0) // the highest cost that one call takes beyond its estimate
		drawn := rapid.SliceOfN(rapid.IntRange(0, most+excess), 30, 30).Draw(rt, "replies")
		members := make([]engine.Member, agents)
		for i := range members {
			name, metered := fmt.Sprint("agent ", i), i == 1
			m := llm.ModelFunc(func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
				mu.Lock()
				defer mu.Unlock()
				n := drawn[0]
				drawn = append(drawn[1:], n)
				in := (len(r.System) + len(r.Messages[0].Text) + 3) / 4
				u := llm.Usage{InputTokens: in, OutputTokens: n + 1, CachedTokens: in * (n % 3) / 2, ReasoningTokens: n / 2}
				tokens, cost, ofAgent[name] = tokens+in+n+1, cost.Add(price.Cost(u)), ofAgent[name]+in+n+1
				over = max(over, price.Cost(u)-pricing.MaxCost(price, llm.Usage{InputTokens: in, OutputTokens: most}))
				return llm.Response{Text: "ok", CallInfo: llm.CallInfo{FinishReason: "stop"}, Usage: u}, nil
			})
			does := engine.Agent(agent.New(m, agent.Options{Settings: llm.Settings{MaxTokens: most}}))
			if metered {
				does = engine.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
					var wg sync.WaitGroup
					errs := make([]error, 2)
					for k := range errs { // side by side
						wg.Go(func() {
							_, errs[k] = agent.Metered(ctx, m).Call(ctx, llm.Request{Messages: []llm.Message{{Role: llm.User, Text: p.Text()}}, Settings: llm.Settings{MaxTokens: most}}, nil)
						})
					}
					wg.Wait()
					for _, err := range errs {
						if err != nil {
							return agent.Reply{}, err
						}
					}
					return agent.Reply{Text: "ok"}, nil
				})
			}
			members[i] = engine.Member{Name: name, Agent: does, Backend: plan.Backend{Model: "drawn"}, Budget: plan.Budget{MaxTokenBudget: own}}
		}
		tm, err := engine.New(engine.Config{Agents: members, Prices: map[string]llm.Price{"drawn": price}})
		require.NoError(rt, err)
		specs := make([]task.Spec, rapid.IntRange(1, 24).Draw(rt, "tasks"))
		for i := range specs {
			specs[i] = by(members[i%agents].Name, spec(fmt.Sprint("task ", i)))
		}
		res, err := tm.RunTasks(context.Background(), specs, o)
		require.NoError(rt, err)
		beside := 2 * at // an agent may make two calls side by side
		require.Equal(rt, tokens, res.Usage.InputTokens+res.Usage.OutputTokens, "all calls are recorded")
		if o.MaxTokenBudget > 0 {
			require.LessOrEqual(rt, tokens, o.MaxTokenBudget+beside*(excess+1))
		}
		if o.MaxCostBudget > 0 {
			require.LessOrEqual(rt, cost, o.MaxCostBudget+llm.Money(beside)*max(over, 0))
		}
		for name, n := range ofAgent {
			require.True(rt, own == 0 || n <= own+beside*(excess+1), "%s took %d of %d", name, n, own)
		}
		if res.Status == engine.StatusOK {
			require.Len(rt, res.Errors, 0)
		}
	})
}

// A call that finds too little of a cost budget waits for the calls in progress,
// which mostly take less than is reserved for them, also in another agent.
func TestCostBudgetWaitsForCallsInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := llm.ModelFunc(func(ctx context.Context, r llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
			time.Sleep(time.Minute)
			return takes(5, 5)(ctx, r, emit)
		})
		start := time.Now()
		res := run(t, pricedTeam(t, asks("a", slow), asks("b", slow), asks("c", slow)), &engine.RunOptions{Budget: plan.Budget{MaxCostBudget: llm.Dollars(0.13)}}, spec("a"), spec("b"), spec("c"))
		require.True(t, res.Success(), "%v", res.Err())
		require.Equal(t, 3*time.Minute, time.Since(start), "one after the other")
	})
}

// A run that ends while a call waits for the budget ends that call.
func TestWaitForABudgetEndsWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := llm.ModelFunc(func(ctx context.Context, _ llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
			<-ctx.Done()
			return llm.Response{}, context.Cause(ctx)
		})
		start := time.Now()
		res := run(t, pricedTeam(t, asks("a", hangs), asks("b", hangs)), &engine.RunOptions{Budget: plan.Budget{MaxCostBudget: llm.Dollars(0.13)}, Timeout: time.Minute}, spec("a"), spec("b"))
		require.Equal(t, engine.StatusTimeout, res.Status)
		require.Equal(t, time.Minute, time.Since(start))
	})
}
