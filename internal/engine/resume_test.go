package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// ended runs two tasks, of which the second reads the first, and returns what
// the journal has of it.
func ended(t *testing.T, specs []task.Spec) *record.History {
	journal := &memory{}
	res := run(t, teamOf(t, &counter{}), &engine.RunOptions{RunID: "r", Journal: journal}, specs...)
	require.NoError(t, res.Err())
	return journal.history(journal.len())
}

func two() []task.Spec {
	return []task.Spec{
		{Title: "a", Description: "A.", Assignee: "worker"},
		{Title: "b", Description: "B.", Assignee: "worker", DependsOn: task.On("a")},
	}
}

// alter changes what completed of a task.
func alter(h *record.History, title string, change func(*record.AgentCall)) {
	for i := range h.Log {
		if x := h.Log[i].Exchange; x != nil && x.Title == title {
			changed := *x
			rec := *x.Result
			changed.Result = &rec
			change(&changed)
			h.Log[i].Exchange = &changed
		}
	}
}

// A result that cannot be relied on any more does not keep a run from its end:
// its task runs again, and what reads it only if it reads something else.
//
// Requirement: G16.
func TestUnusablePriorResultsRunAgain(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*record.AgentCall)
	}{
		{"expired", func(x *record.AgentCall) {
			h := x.Result.Header
			h.CreatedAt, h.ExpiresAt = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
			x.Result.Header = h
		}},
		{"altered", func(x *record.AgentCall) { x.Result.Text = "something else" }},
		{"relabelled", func(x *record.AgentCall) { x.Result.Classification = label.Public }},
		{"without its key", func(x *record.AgentCall) { x.Result.Text, x.Missing = "", "no key" }},
		{"not kept", func(x *record.AgentCall) { x.Result = nil }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			past := ended(t, two())
			alter(past, "a", tt.change)
			c := &counter{}
			res := run(t, teamOf(t, c), &engine.RunOptions{RunID: "r", Journal: after(past)}, two()...)
			require.NoError(t, res.Err())
			require.Equal(t, map[string]int{"a": 1}, c.count(), "b would read the same as before")
			require.NotContains(t, of(t, res, "b").Result, "something else")
		})
	}
}

// The gate decides again: context that the current policy does not deliver is
// withheld, although it was delivered before.
//
// Requirement: G18.
func TestResumeAppliesTheNewPolicy(t *testing.T) {
	t.Parallel()
	past := ended(t, two())
	c := &counter{}
	held := teamOf(t, c, func(cfg *engine.Config) {
		cfg.Policy = &handoff.Policy{Rules: []handoff.PairRule{{From: "worker", To: "worker", Mode: handoff.Scoped, Allow: []task.Path{"/x"}}}}
	})
	res := run(t, held, &engine.RunOptions{RunID: "r", Journal: after(past)}, two()...)
	require.Equal(t, []task.Status{task.Completed, task.Failed}, statuses(res))
	require.Equal(t, gate.CodeWithheld, of(t, res, "b").Error.Code)
	require.Empty(t, c.count())
}

func TestFreshTaskRunsAgainWithItsReaders(t *testing.T) {
	t.Parallel()
	past := ended(t, two())
	c := &counter{}
	res := run(t, teamOf(t, c), &engine.RunOptions{RunID: "r", Fresh: []string{"A"}, Journal: after(past)}, two()...)
	require.NoError(t, res.Err())
	require.Equal(t, map[string]int{"a": 1}, c.count(), "it answers as before, so nobody else is asked")
	require.Equal(t, 2, of(t, res, "a").Metrics.Attempts)

	_, err := start(t.Context(), teamOf(t, c), two(), &engine.RunOptions{RunID: "r", Fresh: []string{"aa"}, Journal: after(past)})
	require.ErrorContains(t, err, `unknown task "aa"`)
	_, err = teamOf(t, c).Resume(t.Context(), "", &engine.RunOptions{Tasks: two(), Journal: after(past)})
	require.ErrorContains(t, err, "the ID of the run is empty")
	_, err = teamOf(t, c).Resume(t.Context(), "r", &engine.RunOptions{Tasks: two()})
	require.ErrorContains(t, err, "there is no journal")
	_, err = teamOf(t, c).RunTasks(t.Context(), two(), &engine.RunOptions{Reuse: true})
	require.ErrorContains(t, err, "there is none")
}

// What was spent before counts, also what was interrupted.
func TestBudgetContinuesAfterResume(t *testing.T) {
	t.Parallel()
	past := ended(t, two()) // 30 tokens
	past.Log = append(past.Log, record.Entry{Asked: &record.CallStart{Session: "r/" + string(task.NewID("c")) + "/1", Task: task.NewID("c"), Agent: "worker", Attempt: 1, Bytes: 40}})
	specs := append(two(), task.Spec{Title: "c", Description: "C.", Assignee: "worker"})
	worker := engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: "c", Usage: llm.Usage{OutputTokens: 1}}, nil
	})
	for limit, want := range map[int]engine.Status{40: engine.StatusBudget, 41: engine.StatusOK} {
		res := run(t, teamOf(t, versioned{worker}), &engine.RunOptions{RunID: "r", Budget: plan.Budget{MaxTokenBudget: limit}, Journal: after(past)}, specs...)
		require.Equal(t, want, res.Status, "%d", limit)
		if want == engine.StatusOK {
			c := of(t, res, "c")
			require.Equal(t, 1, c.Metrics.Interrupted)
			require.Equal(t, llm.Usage{InputTokens: 10, OutputTokens: 1}, c.Metrics.Usage)
			require.Equal(t, llm.Usage{InputTokens: 30, OutputTokens: 11}, res.Usage)
		}
	}
}

// An optional dependency that had failed and completes now is in the prompt of who
// ran without it, who is therefore asked again.
func TestOptionalDependencyThatCompletesLater(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{
		{Title: "a", Description: "A.", Assignee: "worker"},
		{Title: "b", Description: "B.", Assignee: "worker", DependsOn: []task.Ref{{Task: "a", Optional: true}}},
	}
	journal := &memory{}
	res := run(t, teamOf(t, &counter{fail: map[string]bool{"a": true}}), &engine.RunOptions{RunID: "r", Journal: journal}, specs...)
	require.Equal(t, []task.Status{task.Failed, task.Completed}, statuses(res))
	c := &counter{}
	res = run(t, teamOf(t, c), &engine.RunOptions{RunID: "r", Journal: after(journal.history(journal.len()))}, specs...)
	require.NoError(t, res.Err())
	require.Equal(t, map[string]int{"a": 1, "b": 1}, c.count())
}

// An aborted run can be resumed.
func TestCanceledRunResumes(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	journal := &memory{}
	dies := engine.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		if len(p.Sections()) > 0 {
			cancel()
			<-ctx.Done()
			return agent.Reply{}, ctx.Err()
		}
		return (&counter{}).Run(ctx, p)
	})
	res, err := teamOf(t, versioned{dies}).RunTasks(ctx, two(), &engine.RunOptions{RunID: "r", Journal: journal})
	require.NoError(t, err)
	require.Equal(t, engine.StatusCanceled, res.Status)
	c := &counter{}
	res = run(t, teamOf(t, c), &engine.RunOptions{RunID: "r", Journal: after(journal.history(journal.len()))}, two()...)
	require.NoError(t, res.Err())
	require.Equal(t, map[string]int{"b": 1}, c.count())
	require.Equal(t, 1, of(t, res, "b").Metrics.Interrupted)
}

// A translation by a model is not repeated, however the run comes back.
func TestTranslationIsNotPaidTwice(t *testing.T) {
	t.Parallel()
	long := says("It was a long day, and nothing came of it, but for the rain in the evening.")
	tm := func(a agentFunc, does agentFunc) *engine.Team {
		maker, reader := member("maker", does), member("reader", a)
		maker.Version, reader.Version = "1", "1"
		return governed(t, summarizing(200), maker, reader)
	}
	work := retells(spends(7, 3, says("It rained.")), spends(5, 2, says("So what.")))
	specs := []task.Spec{spec("maker"), spec("reader", "maker")}
	journal := &memory{}
	want := run(t, tm(work, long), &engine.RunOptions{RunID: "r", Journal: journal}, specs...)
	require.NoError(t, want.Err())
	asked := func(context.Context, prompt.Prompt) (agent.Reply, error) {
		t.Error("somebody was asked")
		return agent.Reply{}, errBroken
	}
	for n := range journal.len() + 1 {
		past := journal.history(n)
		retold := false
		for _, e := range past.Log {
			retold = retold || e.Exchange != nil && e.Exchange.Part != ""
		}
		again := work
		if retold {
			again = retells(asked, work)
		}
		res := run(t, tm(again, long), &engine.RunOptions{RunID: "r", Journal: after(past)}, specs...)
		require.NoError(t, res.Err())
		require.Equal(t, answers(want), answers(res), "after %d commits", n)
		require.GreaterOrEqual(t, res.Usage.OutputTokens, want.Usage.OutputTokens)
	}
	whole := journal.history(journal.len())
	for i := range whole.Log {
		if a := whole.Log[i].Asked; a != nil && strings.Contains(a.Session, "/retell/") {
			late := *a
			late.Time = late.Time.Add(time.Second) // the task still started when it was dispatched
			whole.Log[i].Asked = &late
		}
	}
	res := run(t, tm(asked, asked), &engine.RunOptions{RunID: "r", Journal: after(whole)}, specs...)
	require.Equal(t, answers(want), answers(res))
	require.Equal(t, want.Usage, res.Usage)
	same(t, document(t, want), document(t, run(t, tm(asked, asked), &engine.RunOptions{RunID: "r", Replay: &engine.Replay{}, Journal: after(whole)}, specs...)))
	res = run(t, tm(asked, asked), &engine.RunOptions{Journal: &memory{others: journal.exchanges()}, Reuse: true}, specs...)
	require.Equal(t, answers(want), answers(res))
	require.Zero(t, res.Usage)
}
