package engine_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// takes is a model whose every call takes so many tokens.
func takes(in, out int) llm.ModelFunc {
	return func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: "ok", CallInfo: llm.CallInfo{FinishReason: "stop"}, Usage: llm.Usage{InputTokens: in, OutputTokens: out}}, nil
	}
}

// asks is a member that asks a model, with replies of at most 100 tokens.
func asks(name string, m llm.Model) engine.Member {
	return engine.Member{Name: name, Agent: agent.New(m, agent.Options{Settings: llm.Settings{MaxTokens: 100}, Retry: llm.RetryOptions{Extra: -1}})}
}

func TestBudgetEndsARun(t *testing.T) {
	t.Parallel()
	var heard audience
	o := heard.options()
	o.MaxTokenBudget, o.MaxConcurrency = 290, 1
	res := run(t, newTeam(t, asks("a", takes(20, 80)), asks("b", takes(20, 80)), asks("c", takes(20, 80)), asks("d", takes(20, 80))), o,
		spec("a"), spec("b", "a"), spec("c", "b"), spec("d"))
	require.Equal(t, engine.StatusBudget, res.Status)
	require.Equal(t, 200, res.Usage.InputTokens+res.Usage.OutputTokens)
	var statuses []task.Status
	for _, r := range res.Tasks {
		statuses = append(statuses, r.Status)
	}
	require.Equal(t, []task.Status{task.Completed, task.Completed, task.Failed, task.Skipped}, statuses, "what is done is returned")
	require.Equal(t, "Skipped: token budget spent.", res.Tasks[3].Result)
	require.Len(t, res.Errors, 1)
	require.Equal(t, "BUDGET_EXCEEDED", res.Errors[0].Code)
	require.ErrorIs(t, res.Err(), engine.ErrBudget)
	require.Contains(t, heard.types(), "budget_exceeded c")
	for _, e := range heard.events {
		if e.Type == event.Budget {
			require.Regexp(t, `a call of "c" does not fit into what is left of 290 tokens: it needs 151 with a short reply`, e.Message)
		}
	}
}

// A call that finds too little waits for the calls in progress, which mostly use
// less than was set aside for them.
func TestBudgetWaitsForCallsInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := llm.ModelFunc(func(ctx context.Context, r llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
			time.Sleep(time.Minute)
			return takes(5, 5)(ctx, r, emit)
		})
		start := time.Now()
		res := run(t, newTeam(t, asks("a", slow), asks("b", slow), asks("c", slow)), &engine.RunOptions{Budget: plan.Budget{MaxTokenBudget: 130}}, spec("a"), spec("b"), spec("c"))
		require.True(t, res.Success(), "%v", res.Err())
		require.Equal(t, 3*time.Minute, time.Since(start), "one after the other")
	})
}

func TestBudgetEstimatesUncountedTokens(t *testing.T) {
	t.Parallel()
	silent := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: strings.Repeat("four", 400), CallInfo: llm.CallInfo{FinishReason: "stop"}}, nil
	})
	res := run(t, newTeam(t, asks("a", silent), asks("b", silent)), &engine.RunOptions{Budget: plan.Budget{MaxTokenBudget: 450}, MaxConcurrency: 1}, spec("a"), spec("b", "a"))
	require.Equal(t, task.Completed, res.Tasks[0].Status)
	require.Equal(t, "BUDGET_EXCEEDED", res.Tasks[1].Error.Code, "400 tokens of text were taken")
}

// An endpoint that counts the tokens of the prompt alone, or of the reply alone, or
// calls tools instead of writing a text, makes nothing cheaper.
func TestBudgetEstimatesMissingTokenCounts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("four", 450)
	for name, res := range map[string]llm.Response{
		"no count of the reply":  {Text: long, CallInfo: llm.CallInfo{FinishReason: "stop"}, Usage: llm.Usage{InputTokens: 1}},
		"no count of the prompt": {Text: "ok", CallInfo: llm.CallInfo{FinishReason: "stop"}, Usage: llm.Usage{OutputTokens: 1}},
		"a tool call":            {ToolCalls: []llm.ToolCall{{Name: "x", Arguments: long}}, CallInfo: llm.CallInfo{FinishReason: "tool_calls"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			m := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
				calls++
				return res, nil
			})
			first, second := by("a", spec("one")), by("a", spec("two"))
			if res.Text == "ok" {
				first.Description, second.Description = long[:1400], long[:1400]
			}
			got := run(t, newTeam(t, engine.Member{Name: "a", Agent: agent.New(m, agent.Options{Settings: llm.Settings{MaxTokens: 145}, Retry: llm.RetryOptions{Extra: -1}})}), &engine.RunOptions{Budget: plan.Budget{MaxTokenBudget: 600}, MaxConcurrency: 1}, first, second)
			require.Equal(t, 1, calls, "what the first call left of 600 tokens is not enough for the second")
			require.Equal(t, engine.StatusBudget, got.Status)
		})
	}
}

func TestBudgetOfAgentsWrittenInGo(t *testing.T) {
	t.Parallel()
	spends := func(context.Context, prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: "x", Usage: llm.Usage{InputTokens: 60, OutputTokens: 60}}, nil
	}
	res := run(t, newTeam(t, member("a", spends), member("b", never(t))), &engine.RunOptions{Budget: plan.Budget{MaxTokenBudget: 100}, MaxConcurrency: 1}, spec("a"), spec("b", "a"))
	require.Equal(t, engine.StatusBudget, res.Status)
	require.Equal(t, "BUDGET_EXCEEDED", res.Tasks[1].Error.Code)

	// One that asks a model under the same context pays once.
	inner := agent.New(takes(20, 20), agent.Options{Settings: llm.Settings{MaxTokens: 30}})
	wraps := func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) { return inner.Run(ctx, p) }
	res = run(t, newTeam(t, member("a", wraps), member("b", wraps)), &engine.RunOptions{Budget: plan.Budget{MaxTokenBudget: 150}, MaxConcurrency: 1}, spec("a"), spec("b", "a"))
	require.True(t, res.Success(), "%v", res.Err())
}

func TestBudgetOfTheCoordinator(t *testing.T) {
	t.Parallel()
	planning := llm.ModelFunc(func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: `[{"title": "A", "description": "a", "assignee": "a"}]`, CallInfo: llm.CallInfo{FinishReason: "stop"}, Usage: llm.Usage{InputTokens: 1900, OutputTokens: 100}}, nil
	})
	lead := agent.New(planning, agent.Options{Settings: llm.Settings{MaxTokens: 100}})
	for _, tt := range []struct {
		name   string
		budget int
		want   []engine.StepKind
		code   string
		tasks  int
	}{
		{"nothing for a plan", 50, []engine.StepKind{engine.StepPlan}, "COORDINATOR_DECOMPOSITION_FAILED", 0},
		{"nothing for the task", 2050, []engine.StepKind{engine.StepPlan}, "BUDGET_EXCEEDED", 1},
		{"nothing for the answer", 2200, []engine.StepKind{engine.StepPlan, engine.StepSynthesis}, "COORDINATOR_SYNTHESIS_FAILED", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res, err := led(t, lead, asks("a", takes(20, 80))).RunTeam(t.Context(), engine.Goal{Text: "x"}, &engine.RunOptions{Budget: plan.Budget{MaxTokenBudget: tt.budget}})
			require.NoError(t, err)
			require.Equal(t, engine.StatusBudget, res.Status)
			require.Equal(t, tt.want, kinds(res))
			require.Len(t, res.Tasks, tt.tasks)
			require.Equal(t, tt.code, res.Errors[0].Code)
			require.Empty(t, res.Output)
		})
	}
}

// Only the run's own budget ends it: an agent may be a team with another.
func TestBudgetOfAnotherRunEndsNothing(t *testing.T) {
	t.Parallel()
	res := run(t, newTeam(t, member("a", fails(fmt.Errorf("inner run: %w", engine.ErrBudget))), member("b", says("x"))), &engine.RunOptions{MaxConcurrency: 1}, spec("a"), spec("b"))
	require.Equal(t, engine.StatusError, res.Status)
	require.Equal(t, []task.Status{task.Failed, task.Completed}, statuses(res))
}

// An endpoint that counts tokens wrongly makes nothing cheaper. Counts below zero are
// refused; each refused call costs at least its reservation, so the budget ends the
// run after as many calls as fit into it.
func TestBudgetIgnoresAbsurdTokenCounts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		bound   int // on a reply
		budget  int
		in, out int
		calls   int
	}{
		{"a bound on replies that overflows", math.MaxInt, 10, 500, 500, 0},
		{"counts below zero", 100, 300, -5000, 500, 1},
		{"nothing but counts below zero", 100, 300, -5000, -5000, 2},
		{"counts that overflow", 100, 300, math.MaxInt, math.MaxInt, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // waits between calls
				calls := 0
				m := llm.ModelFunc(func(ctx context.Context, r llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
					calls++
					return takes(tt.in, tt.out)(ctx, r, emit)
				})
				tm := newTeam(t, engine.Member{Name: "a", Agent: agent.New(m, agent.Options{Settings: llm.Settings{MaxTokens: tt.bound}})})
				res := run(t, tm, &engine.RunOptions{Budget: plan.Budget{MaxTokenBudget: tt.budget}, MaxConcurrency: 1}, by("a", spec("one")), by("a", spec("two")), by("a", spec("three")))
				require.Equal(t, tt.calls, calls)
				require.Equal(t, engine.StatusBudget, res.Status)
			})
		})
	}
}

// A model whose call is the run of another team is paid once, and does not wait
// for what was set aside for itself.
func TestBudgetOfATeamInsideAModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := newTeam(t, asks("in", takes(5, 5)))
		outer := llm.ModelFunc(func(ctx context.Context, r llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
			res, err := inner.RunAgent(ctx, "in", "do", nil)
			require.NoError(t, err)
			require.True(t, res.Success(), "%v", res.Err())
			return takes(5, 5)(ctx, r, emit)
		})
		start := time.Now()
		res := run(t, newTeam(t, asks("a", outer)), &engine.RunOptions{Budget: plan.Budget{MaxTokenBudget: 150}, Timeout: time.Hour}, spec("a"))
		require.True(t, res.Success(), "%v", res.Err())
		require.Zero(t, time.Since(start))
	})
}

// Replies without a limit may be long, so only one at a time may overdraw a small budget.
func TestRepliesWithoutALimitOverdrawABudgetOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := llm.ModelFunc(func(ctx context.Context, r llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
			require.Zero(t, r.MaxTokens, "none was set")
			time.Sleep(time.Second)
			return takes(20, 9000)(ctx, r, emit)
		})
		res := run(t, newTeam(t, engine.Member{Name: "a", Agent: agent.New(long, agent.Options{})}, engine.Member{Name: "b", Agent: agent.New(long, agent.Options{})}), &engine.RunOptions{Budget: plan.Budget{MaxTokenBudget: 3000}}, spec("a"), spec("b"))
		require.Equal(t, engine.StatusBudget, res.Status)
		require.Equal(t, 9000, res.Usage.OutputTokens, "one reply")
	})
}

// A reply whose limit is above what is left of a budget is limited to that, rounded down to a power of two, once no other
// call is in progress; if that is too little for a short one, the call is not made.
func TestRepliesAreLimitedToWhatIsLeft(t *testing.T) {
	for _, tt := range []struct {
		name   string
		budget plan.Budget
		limits []int
	}{
		{"tokens", plan.Budget{MaxTokenBudget: 7000}, []int{4000, 2048}},
		{"cost", plan.Budget{MaxCostBudget: llm.Dollars(7)}, []int{4000, 2048}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var limits []int
				m := llm.ModelFunc(func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
					limits = append(limits, r.MaxTokens)
					time.Sleep(time.Second)
					u := llm.Usage{InputTokens: 20, OutputTokens: r.MaxTokens}
					if r.MaxTokens < 4000 {
						return llm.Response{Text: "half an", CallInfo: llm.CallInfo{FinishReason: "length"}, Usage: u}, nil
					}
					return llm.Response{Text: "an answer", CallInfo: llm.CallInfo{FinishReason: "stop"}, Usage: u}, nil
				})
				member := func(name string) engine.Member {
					return engine.Member{Name: name, Agent: agent.New(m, agent.Options{Settings: llm.Settings{MaxTokens: 4000}})}
				}
				res := run(t, pricedTeam(t, member("a"), member("b"), member("c")), &engine.RunOptions{Budget: tt.budget}, spec("a"), spec("b"), spec("c"))
				require.Equal(t, tt.limits, limits)
				require.Equal(t, engine.StatusBudget, res.Status)
				cut := slices.IndexFunc(res.Tasks, func(r engine.TaskResult) bool { return r.Error != nil && r.Error.Code == codes.Truncated })
				require.Contains(t, res.Tasks[cut].Error.Message, "the 2048 tokens to which the budget limited the reply")
				require.LessOrEqual(t, res.Usage.OutputTokens, 7000)
			})
		})
	}
}
